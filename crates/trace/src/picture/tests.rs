//! Tests of pictures and their layout, from recordings and from awkward synthetic streams.
//! Not here: browser rendering (tests/pages of the workspace).

use std::fs::File;
use std::path::Path;

use super::data::Slice;
use super::layout::{ArrowKind, Layout};
use super::*;
use crate::cause::paint::Paint;
use crate::event::fixtures::{event, received, reply, sent, switch, task};
use crate::event::{Event, Kind, Names, State, Task, Wake};
use crate::report::Report;
use crate::verdict::{Analysis, AnalysisOptions, Analyzer, Role};

struct Drawn {
    analysis: Analysis,
    busiest: Option<PictureData>,
    slow: Vec<PictureData>,
}

impl Drawn {
    fn page(&self) -> String {
        page("a <b>trace</b>", &self.analysis, (self.busiest.as_ref(), &self.slow)).expect("into memory")
    }
}

/// Reads a trace twice, as pictures need it.
fn drawn<R: Iterator<Item = Event>>(
    open: impl Fn() -> R,
    names: impl Fn(&R) -> &Names,
    options: AnalysisOptions,
    most: usize,
) -> Drawn {
    let (mut reader, mut analyzer) = (open(), Analyzer::new(options));
    while let Some(event) = reader.next() {
        analyzer.take(&event, names(&reader));
    }
    let analysis = analyzer.finish(names(&reader), &Report::default());
    let (mut reader, mut watch) = (open(), PictureCollector::new(&analysis, most));
    while let Some(event) = reader.next() {
        watch.take(&event, names(&reader));
    }
    let (busiest, slow) = watch.finish(names(&reader));
    Drawn { analysis, busiest, slow }
}

fn recorded(name: &str, options: AnalysisOptions, most: usize) -> Drawn {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let open = || crate::open(File::open(&path).expect("a fixture")).expect("ftrace's text");
    drawn(open, |reader| reader.names(), options, most)
}

/// Synthetic event stream, read in two passes.
#[derive(Default)]
struct Stream {
    names: Names,
    events: Vec<Event>,
}

impl Stream {
    fn take(&mut self, ts: u64, cpu: u32, tid: i32, kind: Kind) {
        self.events.push(event(ts, cpu, tid, kind));
    }

    fn drawn(self, most: usize) -> Drawn {
        let options = AnalysisOptions { worst: 100, ..AnalysisOptions::default() };
        drawn(|| self.events.iter().cloned(), |_| &self.names, options, most)
    }
}

fn covers<T: std::fmt::Debug>(slices: &[Slice<T>], data: &PictureData) {
    assert_eq!(slices.first().map(|slice| slice.begin), Some(data.from));
    assert_eq!(slices.last().map(|slice| slice.end), Some(data.to));
    for two in slices.windows(2) {
        assert!(two[0].end == two[1].begin && two[0].begin < two[0].end, "{two:?}");
    }
}

fn sound(layout: &Layout, data: &PictureData) {
    for two in layout.lanes.windows(2) {
        assert!(two[0].bottom() < two[1].y, "{} and {} overlap", two[0].key, two[1].key);
    }
    assert!(layout.lanes.last().is_none_or(|lane| lane.bottom() <= layout.height));
    let whole = f64::from(u32::try_from(data.to - data.from).unwrap_or(u32::MAX));
    for lane in &layout.lanes {
        for bar in lane.bars.iter().chain(&lane.over) {
            assert!(bar.x >= 0.0 && bar.x + bar.width <= 1.0 + 1e-9, "{bar:?}");
            let (ns, offset) = (f64::from(u32::try_from(bar.ns).unwrap_or(u32::MAX)), bar.at_ns);
            let at = i128::from(data.zero) + i128::from(offset) - i128::from(data.from);
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
    let options = AnalysisOptions { deadline_ns: Some(2_000_000), worst: 3, ..AnalysisOptions::default() };
    let drawn = recorded("inversion.txt", options, 20);
    assert_eq!(drawn.slow.len(), drawn.analysis.slow.len());
    for (slow, data) in drawn.analysis.slow.iter().zip(&drawn.slow) {
        assert!(data.from < slow.begin_ns && data.to > slow.begin_ns + slow.ns);
        let threads: Vec<_> = data.threads.iter().map(|thread| (thread.who.tid, thread.role)).collect();
        let server = slow.server.as_ref().expect("it was served").tid;
        assert_eq!(threads, [(slow.caller.tid, Role::Caller), (server, Role::Server)]);
        assert_eq!(data.cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(), [0]);
        data.threads.iter().for_each(|thread| covers(&thread.slices, data));
        covers(&data.cpus[0].slices, data);
        let hop = data.hops.iter().find(|hop| hop.debug_id == slow.debug_id).expect("its arrows");
        assert!(hop.sent <= hop.woken && hop.woken < hop.received, "the server slept: {hop:?}");
        assert!(hop.replied.is_some_and(|replied| hop.received < replied && replied < hop.end));
        let layout = Layout::new(data, Some(slow));
        sound(&layout, data);
        // The causes cover the call from begin to end.
        let causes = &layout.lanes[0].bars;
        assert_eq!(causes.iter().map(|bar| bar.ns).sum::<u64>(), slow.ns);
        assert_eq!(causes[0].at_ns, 0);
        assert!(layout.rules.iter().any(|rule| rule.label.as_deref() == Some("deadline 2.00 ms")));
        // Tasks in the way are distinguished from other running tasks.
        assert!(layout.paints().contains(&Paint::InTheWay) && layout.paints().contains(&Paint::Waits));
    }
}

#[test]
fn a_queue_and_everybodys_calls_are_drawn() {
    let drawn = recorded("queued.txt", AnalysisOptions { worst: 20, ..AnalysisOptions::default() }, 20);
    for (slow, data) in drawn.analysis.slow.iter().zip(&drawn.slow) {
        sound(&Layout::new(data, Some(slow)), data);
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
    let mut made = Stream::default();
    for round in 0..8 {
        for pair in 0..2_i32 {
            let (client, server, id) = (10 + pair, 20 + pair, 100 + round * 8 + pair * 2);
            let ts = u64::from(id.unsigned_abs()) * 1000;
            made.take(ts, 0, client, sent(id, 20 + pair));
            made.take(ts + 100, 1, server, received(id));
            made.take(ts + 200, 1, server, reply(id + 1, client));
            made.take(ts + 300, 0, client, received(id + 1));
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
    let drawn = recorded("inversion.txt", AnalysisOptions::default(), 0);
    let single = drawn.busiest.as_ref().expect("there are calls");
    assert!(
        single.threads.iter().all(|thread| thread.pair == 0) && !drawn.page().contains("a hue of its own")
    );
}

#[test]
fn a_page_needs_nothing_else() {
    let drawn = recorded("inversion.txt", AnalysisOptions { worst: 3, ..AnalysisOptions::default() }, 20);
    let page = drawn.page();
    assert_eq!(
        page.matches("href=").count(),
        page.matches("href=\"#call-").count(),
        "links lead to pictures"
    );
    for foreign in ["<script", "src=", "http:", "https:", "@import", "<b>"] {
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
    let drawn = recorded("inversion.txt", AnalysisOptions { worst: 5, ..AnalysisOptions::default() }, 2);
    assert_eq!((drawn.slow.len(), drawn.analysis.slow.len()), (2, 5));
    let page = drawn.page();
    assert!(page.contains("2 of 5 calls have a picture"), "{page}");
    assert!(drawn.analysis.slow.iter().all(|slow| page.contains(&slow.verdict)));
}

#[test]
fn a_chain_of_waits_is_drawn_with_each_of_its_threads_and_their_wake_ups() {
    let mut made = Stream::default();
    let named = |made: &mut Stream, tid: i32| task(tid, made.names.intern(&format!("t{tid}")));
    let (idle, server) = (task(0, Default::default()), named(&mut made, 20));
    let (middle, end) = (named(&mut made, 30), named(&mut made, 31));
    let wake = |task: Task, target_cpu: u32| Kind::Waking(Wake { task, target_cpu });
    made.take(1, 1, 0, switch(idle, State::Runnable, server));
    made.take(2, 2, 0, switch(idle, State::Runnable, middle));
    made.take(3, 3, 0, switch(idle, State::Runnable, end));
    made.take(1000, 0, 10, sent(1, 20));
    made.take(1100, 1, 20, received(1));
    made.take(1200, 2, 30, switch(middle, State::Sleeping, idle));
    made.take(1300, 1, 20, switch(server, State::Sleeping, idle));
    made.take(1300, 1, 0, switch(idle, State::Runnable, task(99, Default::default())));
    made.take(9000, 3, 31, wake(middle, 2));
    made.take(9000, 2, 0, switch(idle, State::Runnable, middle));
    made.take(9500, 2, 30, wake(server, 1));
    made.take(9500, 1, 99, switch(task(99, Default::default()), State::Sleeping, server));
    made.take(9800, 1, 20, reply(2, 10));
    made.take(9900, 0, 10, received(2));
    let drawn = made.drawn(20);
    let (slow, data) = (&drawn.analysis.slow[0], &drawn.slow[0]);
    let threads: Vec<_> = data.threads.iter().map(|thread| (thread.who.tid, thread.role)).collect();
    assert_eq!(threads, [(10, Role::Caller), (20, Role::Server), (30, Role::Further), (31, Role::Further)]);
    let layout = Layout::new(data, Some(slow));
    sound(&layout, data);
    let wakes = layout.arrows.iter().filter(|arrow| arrow.kind == ArrowKind::Wake);
    let wakes: Vec<_> = wakes.map(|arrow| (arrow.from.0, arrow.to.0, arrow.from_ns)).collect();
    assert_eq!(wakes, [(30, 20, 8500), (31, 30, 8000)]);
    // The lane of the path shows the end of the chain, and all of the wait.
    let path = layout.lanes.iter().find(|lane| lane.key == "path").expect("somebody was waited for");
    assert_eq!(path.bars.iter().map(|bar| bar.ns).collect::<Vec<_>>(), [7700, 500]);
    assert!(path.bars[0].title.starts_with("t31 31: running"), "{}", path.bars[0].title);
    let waits = layout.lanes.iter().find(|lane| lane.key == "thread-20").expect("the server");
    assert!(waits.bars.iter().any(|bar| bar.title.contains("waits for t30 30")), "{waits:?}");
    assert!(drawn.page().contains("class=\"arrow wake\""));
}

/// Call of 100 s on 64 CPUs, among threads that switch constantly and whose names contain markup.
#[test]
fn a_huge_call_is_truncated_and_the_page_says_so() {
    let hostile = "</svg><script>alert(\"1\")</script>";
    let mut made = Stream::default();
    let (swapper, hostile) = (made.names.intern("swapper"), made.names.intern(hostile));
    let (idle, server) = (task(0, swapper), task(20, hostile));
    let hogs: Vec<Task> = (0..64).map(|n| task(100 + n, hostile)).collect();
    for cpu in 0..64 {
        made.take(1, cpu, 0, switch(idle, State::Runnable, idle));
    }
    made.take(10, 0, 10, sent(1, 20));
    made.take(20, 0, 10, Kind::Waking(Wake { task: server, target_cpu: 0 }));
    let mut ts = 1000;
    for round in 0..8000_u32 {
        let cpu = round % 64;
        let hog = hogs[cpu as usize];
        ts += 10_000_000;
        made.take(ts, cpu, 0, switch(idle, State::Runnable, server));
        made.take(ts + 2, cpu, 20, switch(server, State::Runnable, hog));
        made.take(ts + 3, cpu, hog.tid, switch(hog, State::Sleeping, idle));
    }
    made.take(ts + 10, 5, 20, received(1));
    made.take(ts + 10, 5, 20, reply(2, 10));
    made.take(ts + 10, 0, 10, received(2));
    // Call of zero duration, as traces in microseconds may have.
    made.take(ts + 20, 0, 10, sent(3, 20));
    made.take(ts + 20, 5, 20, received(3));
    made.take(ts + 20, 5, 20, reply(4, 10));
    made.take(ts + 20, 0, 10, received(4));
    let drawn = made.drawn(20);
    let (long, short) = (&drawn.analysis.slow[0], &drawn.analysis.slow[1]);
    assert!(long.ns > 79_000_000_000 && short.ns == 0);
    let data = &drawn.slow[0];
    assert!(data.left_out.cpus >= 40 && data.cpus.len() <= 16, "{:?}", data.left_out);
    let slices = data.threads.iter().map(|thread| thread.slices.len()).sum::<usize>()
        + data.cpus.iter().map(|cpu| cpu.slices.len()).sum::<usize>();
    assert!(data.left_out.slices > 0 && slices <= 2000, "{slices}, {:?}", data.left_out);
    let causes = &Layout::new(data, Some(long)).lanes[0].bars;
    assert!(long.parts.len() > 10_000 && causes.len() <= 1500, "{} bars", causes.len());
    assert_eq!(causes.iter().map(|bar| bar.ns).sum::<u64>(), long.ns, "merged parts lose no time");
    sound(&Layout::new(&drawn.slow[1], Some(short)), &drawn.slow[1]);
    let page = drawn.page();
    assert!(page.contains("slices not drawn") && page.contains("CPUs not drawn"));
    assert!(page.contains("drawn together with their neighbours"));
    assert!(!page.contains("<script"), "a name is no markup");
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
}

#[test]
fn the_page_begins_with_its_answer() {
    let options = AnalysisOptions { deadline_ns: Some(2_500_000), worst: 5, ..AnalysisOptions::default() };
    let drawn = recorded("cases/hang.txt", options.clone(), 20);
    let page = drawn.page();
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}: {page}"));
    let line = at(
        "main 100 called IFoo.bar in Binder:200_1 201: unanswered after 8.00 s; server Binder:200_1 201 waited 8.00 s for a monitor held by worker 210",
    );
    assert!(at("<h3>No answer</h3>") < line && line < at("<h2>Call by call</h2>"));
    assert!(page[line..].contains("<a href=\"#call-1\">picture 1</a>") && page.contains("id=\"call-1\""));
    // In a page of others its lines lead to its own pictures.
    let part = fragment("call-7", &drawn.analysis, (None, &drawn.slow)).expect("into memory").html;
    assert!(
        part.contains("id=\"call-7-call-1\"") && !part.contains("\"call-1\"") && !part.contains("#call-1\"")
    );
    // The lane of each thread names it and its process.
    let names = recorded("cases/names.pftrace", options, 20);
    let layout = Layout::new(&names.slow[0], Some(&names.analysis.slow[0]));
    let lane = layout.lanes.iter().find(|lane| lane.key == "thread-201").expect("the server's lane");
    assert_eq!((lane.name.as_str(), lane.wide_name.as_str()), ("binder:200_1", "binder:200_1 201"));
    assert_eq!(lane.wide_detail, "server in …ardware.power-service");
    assert_eq!(lane.detail, "…power-service");

    let failed = recorded("cases/failed.txt", AnalysisOptions::default(), 20).page();
    let words = "client 100 called code 1 of node 5 in process 200: failed after 399 us: BR_FAILED_REPLY";
    assert!(failed.contains(words), "{failed}");
    // Methods that cost most come before the sums.
    let by = Some(crate::verdict::By::Pair);
    let page =
        recorded("inversion.txt", AnalysisOptions { by, worst: 3, ..AnalysisOptions::default() }, 20).page();
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}: {page}"));
    assert!(
        at("<h3>Slowest</h3>") < at("What cost most, by pair")
            && at("What cost most") < at("Where the time went")
    );
}
