//! Room: scenes and their geometry, of recordings and of streams made to be awkward.
//! Not here: what a browser makes of the page (the program's own tests).

use std::fs::File;
use std::path::Path;

use super::layout::Layout;
use super::paint::Paint;
use super::*;
use crate::event::{
    Binder, Context, Event, Flavour, Kind, Name, Names, Prio, State, Task, Transaction as Sent, Wake,
};
use crate::report::Report;
use crate::verdict::{Analysis, Analyst, Question};

struct Drawn {
    analysis: Analysis,
    busiest: Option<Scene>,
    slow: Vec<Scene>,
}

impl Drawn {
    fn page(&self) -> String {
        page("a <b>trace</b>", &self.analysis, (self.busiest.as_ref(), &self.slow)).expect("into memory")
    }
}

fn recorded(name: &str, question: Question, most: usize) -> Drawn {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let open = || crate::open(File::open(&path).expect("a fixture")).expect("ftrace's text");
    let (mut reader, mut analyst) = (open(), Analyst::new(question));
    while let Some(event) = reader.next() {
        analyst.take(&event, reader.names());
    }
    let analysis = analyst.finish(reader.names(), reader.report());
    let (mut reader, mut watch) = (open(), Watch::new(&analysis, most));
    while let Some(event) = reader.next() {
        watch.take(&event, reader.names());
    }
    let (busiest, slow) = watch.finish(reader.names());
    Drawn { analysis, busiest, slow }
}

/// Events made by hand, read twice.
#[derive(Default)]
struct Made {
    names: Names,
    events: Vec<Event>,
}

impl Made {
    fn take(&mut self, ts: u64, cpu: u32, tid: i32, kind: Kind) {
        let context = Context::default();
        self.events.push(Event { ts, cpu, tid, tgid: None, comm: Name::NONE, context, kind });
    }

    fn task(&mut self, tid: i32, comm: &str) -> Task {
        Task { tid, comm: self.names.intern(comm), prio: Prio(120) }
    }

    fn sent(debug_id: i32, reply: bool, to_thread: i32) -> Kind {
        Self::sent_to(20, debug_id, reply, to_thread)
    }

    fn sent_to(to_proc: i32, debug_id: i32, reply: bool, to_thread: i32) -> Kind {
        let sent = Sent { debug_id, reply, to_thread, to_proc, ..Sent::default() };
        Kind::Binder(Flavour::C, Binder::Transaction(sent))
    }

    fn received(debug_id: i32) -> Kind {
        Kind::Binder(Flavour::C, Binder::Received { debug_id })
    }

    fn drawn(self, most: usize) -> Drawn {
        let mut analyst = Analyst::new(Question { worst: 100, ..Question::default() });
        self.events.iter().for_each(|event| analyst.take(event, &self.names));
        let analysis = analyst.finish(&self.names, &Report::default());
        let mut watch = Watch::new(&analysis, most);
        self.events.iter().for_each(|event| watch.take(event, &self.names));
        let (busiest, slow) = watch.finish(&self.names);
        Drawn { analysis, busiest, slow }
    }
}

fn covers<T: std::fmt::Debug>(slices: &[Slice<T>], scene: &Scene) {
    assert_eq!(slices.first().map(|slice| slice.begin), Some(scene.from));
    assert_eq!(slices.last().map(|slice| slice.end), Some(scene.to));
    for two in slices.windows(2) {
        assert!(two[0].end == two[1].begin && two[0].begin < two[0].end, "{two:?}");
    }
}

fn sound(layout: &Layout, scene: &Scene) {
    for two in layout.lanes.windows(2) {
        assert!(two[0].bottom() < two[1].y, "{} and {} overlap", two[0].key, two[1].key);
    }
    assert!(layout.lanes.last().is_none_or(|lane| lane.bottom() <= layout.height));
    let whole = f64::from(u32::try_from(scene.to - scene.from).unwrap_or(u32::MAX));
    for lane in &layout.lanes {
        for bar in lane.bars.iter().chain(&lane.over) {
            assert!(bar.x >= 0.0 && bar.x + bar.width <= 1.0 + 1e-9, "{bar:?}");
            let (ns, offset) = (f64::from(u32::try_from(bar.ns).unwrap_or(u32::MAX)), bar.at_ns);
            let at = i128::from(scene.zero) + i128::from(offset) - i128::from(scene.from);
            let at = f64::from(u32::try_from(at).unwrap_or(u32::MAX));
            assert!((bar.width - ns / whole).abs() < 1e-6 && (bar.x - at / whole).abs() < 1e-6, "{bar:?}");
        }
        for two in lane.bars.windows(2) {
            assert!(two[0].x + two[0].width <= two[1].x + 1e-9, "bars overlap: {two:?}");
        }
    }
    for arrow in &layout.arrows {
        for (tid, x, y) in [arrow.from, arrow.to] {
            let key = format!("thread-{tid}");
            let lane = layout.lanes.iter().find(|lane| lane.key == key).expect("its lane");
            assert!(y == lane.y || y == lane.bottom(), "{arrow:?} is off {key}");
            assert!((0.0..=1.0).contains(&x));
        }
    }
}

#[test]
fn a_recorded_call_is_drawn_whole() {
    let question = Question { deadline_ns: Some(2_000_000), worst: 3, ..Question::default() };
    let drawn = recorded("inversion.txt", question, 20);
    assert_eq!(drawn.slow.len(), drawn.analysis.slow.len());
    for (slow, scene) in drawn.analysis.slow.iter().zip(&drawn.slow) {
        assert!(scene.from < slow.begin_ns && scene.to > slow.begin_ns + slow.ns);
        let threads: Vec<_> = scene.threads.iter().map(|thread| (thread.who.tid, thread.role)).collect();
        let server = slow.server.as_ref().expect("it was served").tid;
        assert_eq!(threads, [(slow.caller.tid, Role::Caller), (server, Role::Server)]);
        assert_eq!(scene.cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(), [0]);
        scene.threads.iter().for_each(|thread| covers(&thread.slices, scene));
        covers(&scene.cpus[0].slices, scene);
        let hop = scene.hops.iter().find(|hop| hop.debug_id == slow.debug_id).expect("its arrows");
        assert!(hop.sent <= hop.woken && hop.woken < hop.received, "the server slept: {hop:?}");
        assert!(hop.replied.is_some_and(|replied| hop.received < replied && replied < hop.end));
        let layout = Layout::new(scene, Some(slow));
        sound(&layout, scene);
        // The causes are the whole call, from its beginning to its end.
        let causes = &layout.lanes[0].bars;
        assert_eq!(causes.iter().map(|bar| bar.ns).sum::<u64>(), slow.ns);
        assert_eq!(causes[0].at_ns, 0);
        assert!(layout.rules.iter().any(|rule| rule.label.as_deref() == Some("deadline 2.00 ms")));
        // Hogs in the way are told from those that merely were there.
        assert!(layout.paints().contains(&Paint::InTheWay) && layout.paints().contains(&Paint::Waits));
    }
}

#[test]
fn a_queue_and_everybodys_calls_are_drawn() {
    let drawn = recorded("queued.txt", Question { worst: 20, ..Question::default() }, 20);
    for (slow, scene) in drawn.analysis.slow.iter().zip(&drawn.slow) {
        sound(&Layout::new(scene, Some(slow)), scene);
    }
    let busiest = drawn.busiest.as_ref().expect("there are calls");
    let layout = Layout::new(busiest, None);
    sound(&layout, busiest);
    assert!(layout.arrows.len() >= 8, "{}", layout.arrows.len());
    let queued =
        drawn.analysis.slow.iter().position(|slow| slow.debug_id == 853).expect("the call that waits");
    let layout = Layout::new(&drawn.slow[queued], Some(&drawn.analysis.slow[queued]));
    assert!(layout.paints().contains(&Paint::Queued));
}

#[test]
fn pairs_have_hues_and_a_single_one_has_none() {
    let mut made = Made::default();
    for round in 0..8 {
        for pair in 0..2_i32 {
            let (client, server, id) = (10 + pair, 20 + pair, 100 + round * 8 + pair * 2);
            let ts = u64::from(id.unsigned_abs()) * 1000;
            made.take(ts, 0, client, Made::sent_to(20 + pair, id, false, 0));
            made.take(ts + 100, 1, server, Made::received(id));
            made.take(ts + 200, 1, server, Made::sent_to(10 + pair, id + 1, true, client));
            made.take(ts + 300, 0, client, Made::received(id + 1));
        }
    }
    let drawn = made.drawn(0);
    let several = drawn.busiest.as_ref().expect("there are calls");
    let pairs: Vec<_> =
        several.threads.iter().map(|thread| (thread.who.tid, thread.pair, thread.role)).collect();
    assert_eq!(
        pairs,
        [(10, 1, Role::Caller), (20, 1, Role::Server), (11, 2, Role::Caller), (21, 2, Role::Server)]
    );
    assert!(drawn.page().contains("a hue of its own"));
    let drawn = recorded("inversion.txt", Question::default(), 0);
    let single = drawn.busiest.as_ref().expect("there are calls");
    assert!(
        single.threads.iter().all(|thread| thread.pair == 0) && !drawn.page().contains("a hue of its own")
    );
}

#[test]
fn a_page_needs_nothing_else() {
    let drawn = recorded("inversion.txt", Question { worst: 3, ..Question::default() }, 20);
    let page = drawn.page();
    for foreign in ["<script", "src=", "href=", "http:", "https:", "@import", "<b>"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for slow in &drawn.analysis.slow {
        assert!(page.contains(&slow.verdict));
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert_eq!(page.matches("role=\"img\"").count(), 4);
}

#[test]
fn calls_beyond_the_most_have_a_sentence_only() {
    let drawn = recorded("inversion.txt", Question { worst: 5, ..Question::default() }, 2);
    assert_eq!((drawn.slow.len(), drawn.analysis.slow.len()), (2, 5));
    let page = drawn.page();
    assert!(page.contains("The slowest 2 of 5 calls have a picture"), "{page}");
    assert!(drawn.analysis.slow.iter().all(|slow| page.contains(&slow.verdict)));
}

/// A call of 100 s on 64 CPUs, among threads with names that would be markup, switching all the time.
#[test]
fn a_monstrous_call_is_cut_down_and_that_is_said() {
    let hostile = "</svg><script>alert(\"1\")</script>";
    let mut made = Made::default();
    let (idle, server) = (made.task(0, "swapper"), made.task(20, hostile));
    let hogs: Vec<Task> = (0..64).map(|n| made.task(100 + n, hostile)).collect();
    for cpu in 0..64 {
        made.take(1, cpu, 0, Kind::Switch { prev: idle, state: State::Runnable, next: idle });
    }
    made.take(10, 0, 10, Made::sent(1, false, 0));
    made.take(20, 0, 10, Kind::Waking(Wake { task: server, target_cpu: 0 }));
    let mut ts = 1000;
    for round in 0..8000_u32 {
        let cpu = round % 64;
        let hog = hogs[cpu as usize];
        ts += 10_000_000;
        made.take(ts, cpu, 0, Kind::Switch { prev: idle, state: State::Runnable, next: server });
        made.take(ts + 2, cpu, 20, Kind::Switch { prev: server, state: State::Runnable, next: hog });
        made.take(ts + 3, cpu, hog.tid, Kind::Switch { prev: hog, state: State::Sleeping, next: idle });
    }
    made.take(ts + 10, 5, 20, Made::received(1));
    made.take(ts + 10, 5, 20, Made::sent(2, true, 10));
    made.take(ts + 10, 0, 10, Made::received(2));
    // A call that took no time at all, which a trace in microseconds may well have.
    made.take(ts + 20, 0, 10, Made::sent(3, false, 0));
    made.take(ts + 20, 5, 20, Made::received(3));
    made.take(ts + 20, 5, 20, Made::sent(4, true, 10));
    made.take(ts + 20, 0, 10, Made::received(4));
    let drawn = made.drawn(20);
    let (long, short) = (&drawn.analysis.slow[0], &drawn.analysis.slow[1]);
    assert!(long.ns > 79_000_000_000 && short.ns == 0);
    let scene = &drawn.slow[0];
    assert!(scene.left_out.cpus >= 40 && scene.cpus.len() <= 16, "{:?}", scene.left_out);
    let slices = scene.threads.iter().map(|thread| thread.slices.len()).sum::<usize>()
        + scene.cpus.iter().map(|cpu| cpu.slices.len()).sum::<usize>();
    assert!(scene.left_out.slices > 0 && slices <= 2000, "{slices}, {:?}", scene.left_out);
    let causes = &Layout::new(scene, Some(long)).lanes[0].bars;
    assert!(long.parts.len() > 10_000 && causes.len() <= 1500, "{} bars", causes.len());
    assert_eq!(causes.iter().map(|bar| bar.ns).sum::<u64>(), long.ns, "merged parts lose no time");
    sound(&Layout::new(&drawn.slow[1], Some(short)), &drawn.slow[1]);
    let page = drawn.page();
    assert!(page.contains("slices not drawn") && page.contains("CPUs not drawn"));
    assert!(page.contains("drawn together with their neighbours"));
    assert!(!page.contains("<script"), "a name is no markup");
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
}
