//! Script language for event streams, and tests of the model: pairing, nesting, ends of calls.
//! Not here: causes (`causes`), random streams (`random`).

mod causes;
mod chains;
mod random;
mod silences;

use super::*;
use crate::event::{
    Buffer, CodeLocation, Context, Irq, Prio, Softirq, State, Task, Transaction as Sent, Wake,
};

/// Parser of event scripts: one event per line, with time, CPU, running thread (and its process: `9/20`), action. Priorities
/// default to 120. Thread 77 is a tracer.
pub(crate) struct Script {
    pub(crate) names: Names,
    prios: Vec<(i32, i32)>,
}

impl Script {
    pub(crate) fn new(prios: &[(i32, i32)]) -> Self {
        Self { names: Names::default(), prios: prios.to_vec() }
    }

    fn task(&mut self, tid: i32) -> Task {
        let prio = self.prios.iter().find(|(of, _)| *of == tid).map_or(120, |(_, prio)| *prio);
        let comm = match tid {
            0 => "swapper".to_owned(),
            77 => "trace-cmd".to_owned(),
            _ => format!("t{tid}"),
        };
        Task { tid, comm: self.names.intern(&comm), prio: Prio(prio) }
    }

    pub(crate) fn event(&mut self, line: &str) -> Event {
        let mut words = line.split_whitespace();
        let number = |word: Option<&str>| word.expect("a number").parse::<i64>().expect("a number");
        let (ts, cpu) = (number(words.next()) as u64, number(words.next()) as u32);
        let mut who = words.next().expect("a thread").split('/');
        let tid = number(who.next()) as i32;
        let tgid = who.next().map(|tgid| number(Some(tgid)) as i32);
        let rest: Vec<&str> = words.collect();
        let kind = self.kind(tid, &rest);
        Event { ts, cpu, tid, tgid, comm: Name::NONE, context: Context::default(), kind }
    }

    /// Events of a script, in which a word in capitals stands for a stretch of events.
    pub(crate) fn events(&mut self, lines: &str) -> Vec<Event> {
        let lines = lines.replace("START", START).replace("REST", "140 1 20 recv 1\nBACK");
        let lines = lines.replace("REACHED", REACHED).replace("BACK", BACK);
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| self.event(line)).collect()
    }

    fn kind(&mut self, tid: i32, words: &[&str]) -> Kind {
        let at = |index: usize| words[index].parse::<i32>().expect("a number");
        let binder = |binder| Kind::Binder(Flavour::C, binder);
        let debug_id = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let sent = |to_thread, flags, reply| {
            let to_proc = at(2);
            binder(Binder::Transaction(Sent {
                debug_id,
                to_proc,
                to_thread,
                reply,
                flags,
                ..Sent::default()
            }))
        };
        let wake = |script: &mut Self| Wake { task: script.task(at(1)), target_cpu: at(2).cast_unsigned() };
        match words[0] {
            "switch" => Kind::Switch {
                prev: self.task(tid),
                state: State::of_letter(words[1].as_bytes()[0]),
                next: self.task(at(2)),
            },
            "waking" => Kind::Waking(wake(self)),
            "wakeup" => Kind::Wakeup(wake(self)),
            "migrate" => Kind::Migrate {
                task: self.task(at(1)),
                from_cpu: at(2).cast_unsigned(),
                to_cpu: at(3).cast_unsigned(),
            },
            "blocked" => {
                let symbol = self.names.intern(words[2]);
                Kind::BlockedReason {
                    tid: at(1),
                    io_wait: words.len() > 3,
                    caller: CodeLocation { address: 0, symbol },
                }
            }
            "send" => sent(0, 0, false),
            "back" => sent(at(3), 0, false),
            "oneway" => sent(0, 1, false),
            "reply" => sent(at(3), 0, true),
            "recv" => binder(Binder::Received { debug_id }),
            "undo" => binder(Binder::FailedBufferRelease(Buffer { debug_id, ..Buffer::default() })),
            "command" => binder(Binder::Command { cmd: u32::from_str_radix(words[1], 16).expect("hex") }),
            "alloc" => binder(Binder::AllocBuf(Buffer { debug_id, ..Buffer::default() })),
            "wait" => {
                binder(Binder::WaitForWork { proc_work: true, transaction_stack: false, thread_todo: false })
            }
            "ioctl" => binder(Binder::Ioctl { cmd: 0, arg: 0 }),
            "done" => binder(Binder::IoctlDone { ret: 0 }),
            "return" => binder(Binder::Return { cmd: u32::from_str_radix(words[1], 16).expect("hex") }),
            "boost" => binder(Binder::SetPriority {
                proc: 0,
                thread: at(1),
                old: Prio(120),
                new: Prio(at(2)),
                desired: Prio(at(2)),
            }),
            "idle" => Kind::CpuIdle { cpu: at(1).cast_unsigned(), state: at(2).try_into().ok() },
            "khz" => Kind::CpuFrequency { cpu: at(1).cast_unsigned(), khz: at(2).cast_unsigned() },
            "irq+" => Kind::IrqEntry { irq: Irq::Line(at(1)), name: self.names.intern("eth0") },
            "irq-" => Kind::IrqExit { irq: Irq::Line(at(1)), name: Name::NONE },
            "soft+" => Kind::SoftirqEntry(Softirq(debug_id.cast_unsigned())),
            "soft-" => Kind::SoftirqExit(Softirq(debug_id.cast_unsigned())),
            "reclaim+" => Kind::ReclaimBegin { order: 0 },
            "reclaim-" => Kind::ReclaimEnd { reclaimed: 1 },
            "lock+" => {
                let flags = LockKind::flags_of_words(words[1].as_bytes());
                Kind::ContentionBegin(LockKind::of_flags(flags))
            }
            "lock-" => Kind::ContentionEnd,
            "work+" => {
                let function = CodeLocation { address: 0, symbol: self.names.intern(words[1]) };
                Kind::WorkStart { work: 1, function }
            }
            "work-" => Kind::WorkEnd { work: 1 },
            "print" => Kind::Print(words[1..].join(" ").into()),
            "tick" => Kind::Tick { period: at(1).cast_unsigned().into() },
            "timer+" => Kind::IrqEntry { irq: Irq::Vector(236), name: self.names.intern("local_timer") },
            "timer-" => Kind::IrqExit { irq: Irq::Vector(236), name: Name::NONE },
            "ipi" => Kind::IpiSend { to_cpu: Some(at(1).cast_unsigned()), reason: Name::NONE },
            "resched+" => Kind::IrqEntry { irq: Irq::Vector(253), name: self.names.intern("reschedule") },
            "resched-" => Kind::IrqExit { irq: Irq::Vector(253), name: Name::NONE },
            "lost" => Kind::Lost { count: Some(1) },
            // Any other event, as the kernel prints it.
            other => {
                let text = words[1..].join(" ");
                let kind = crate::fields::parse(other.as_bytes(), text.as_bytes(), &mut self.names);
                kind.filter(|kind| !matches!(kind, Kind::Other { .. })).expect(other)
            }
        }
    }
}

/// Transactions of a stream.
pub(super) fn rebuilt(prios: &[(i32, i32)], lines: &str) -> (Vec<Transaction>, Names) {
    rebuilt_with(prios, lines, |_| {})
}

/// Transactions of a stream whose events are changed first.
pub(super) fn rebuilt_with(
    prios: &[(i32, i32)],
    lines: &str,
    change: impl Fn(&mut Event),
) -> (Vec<Transaction>, Names) {
    let mut script = Script::new(prios);
    let mut model = Model::new();
    let mut found = Vec::new();
    for mut event in script.events(lines) {
        change(&mut event);
        model.take(&event, &script.names, &mut |call| found.push(call));
    }
    model.finish(&script.names, &mut |call| found.push(call));
    found.iter().for_each(whole);
    (found, script.names)
}

/// Transactions of a stream that begins with [`START`].
pub(super) fn after_start(lines: &str) -> Vec<Transaction> {
    rebuilt(&[], &format!("{START}{lines}")).0
}

/// Asserts that the segments cover the call without gap or overlap, and that each chain of waits covers its segment so.
pub(super) fn whole(call: &Transaction) {
    chains::whole(call);
    let mut at = call.begin;
    for part in &call.parts {
        assert!(part.begin == at && part.end > at, "a gap or an overlap at {at}: {call:#?}");
        at = part.end;
    }
    assert_eq!(at, call.end, "the parts end elsewhere: {call:#?}");
}

/// Client 10 on CPU 0 calls process 20, whose thread 20 sleeps on the idle CPU 1; both are known.
pub(super) const START: &str = "
    1 0 0 switch R 10
    1 1 20 switch S 0
";

/// A call that its server has at 140.
const REACHED: &str = "
    100 0 10 send 1 20
    110 0 10 waking 20 1
    110 1 0 switch R 20
    110 0 10 switch S 0
    140 1 20 recv 1
";

/// The reply, without delay.
const BACK: &str = "
    200 1 20 reply 2 10 10
    205 1 20 waking 10 0
    205 0 0 wakeup 10 0
    205 0 0 switch R 10
    210 0 10 recv 2
";

#[test]
fn a_call_is_followed_to_its_reply() {
    let (found, _) = rebuilt(
        &[(10, 0)],
        &format!(
            "{START}
        100 0 10 send 1 20
        110 0 10 waking 20 1
        112 0 10 wakeup 20 1
        120 0 10 switch S 0
        130 1 0 switch R 20
        140 1 20 recv 1
        200 1 20 reply 2 10 10
        205 1 20 waking 10 0
        206 1 20 wakeup 10 0
        215 0 0 switch R 10
        220 0 10 recv 2
    "
        ),
    );
    let [call] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((call.debug_id, call.begin, call.end, call.outcome), (1, 100, 220, Outcome::Replied));
    assert_eq!((call.received, call.replied), (Some(140), Some(200)));
    assert_eq!((call.client.tid, call.client.tgid, call.client.prio), (10, Some(10), Some(Prio(0))));
    assert_eq!(call.server.map(|server| (server.tid, server.tgid)), Some((20, Some(20))));
    assert!(call.is_sound() && !call.nested && !call.oneway);
}

#[test]
fn the_ioctl_belongs_to_the_call_where_the_trace_shows_it() {
    let found = after_start(
        "
        90 0 10 ioctl
        100 0 10 send 1 20
        140 1 20 recv 1
        200 1 20 reply 2 10 10
        220 0 10 recv 2
        230 0 10 done
    ",
    );
    assert_eq!((found.len(), found[0].end), (1, 230));
}

#[test]
fn nested_calls_end_before_the_ones_they_were_made_for_and_fill_their_time() {
    // 20 calls 30, which calls back into 10, the thread that waits for the outermost call.
    let found = after_start(
        "
        100 0 10 send 1 20
        110 1 20 recv 1
        120 1 20 send 2 30
        130 1 30 recv 2
        140 1 30 back 3 10 10
        150 0 10 recv 3
        160 0 10 reply 4 30 30
        170 1 30 recv 4
        180 1 30 reply 5 20 20
        190 1 20 recv 5
        200 1 20 reply 6 10 10
        210 0 10 recv 6
    ",
    );
    let order: Vec<_> = found.iter().map(|call| (call.debug_id, call.nested, call.outcome)).collect();
    assert_eq!(
        order,
        [(3, true, Outcome::Replied), (2, true, Outcome::Replied), (1, false, Outcome::Replied)]
    );
    let outer = &found[2];
    assert!(outer.is_sound());
    let deepest = outer.parts.iter().filter(|part| part.depth == 2).map(Segment::ns).sum::<u64>();
    assert_eq!(deepest, 30, "{:#?}", outer.parts);
    assert!(outer.parts.iter().all(|part| (part.depth == 0) == (part.end <= 120 || part.begin >= 190)));
}

#[test]
fn a_oneway_call_ends_where_it_is_received() {
    let found = after_start(
        "
        100 0 10 oneway 1 20
        150 0 10 oneway 2 20
        160 1 20 recv 1
        170 1 20 recv 2
    ",
    );
    let ends: Vec<_> =
        found.iter().map(|call| (call.debug_id, call.end, call.outcome, call.oneway)).collect();
    assert_eq!(ends, [(1, 160, Outcome::Delivered, true), (2, 170, Outcome::Delivered, true)]);
}

#[test]
fn failures_are_distinguished_from_replies() {
    for (line, outcome) in [
        ("110 0 10 return 7211", Outcome::Failed),
        ("110 0 10 return 7205", Outcome::Dead),
        ("110 0 10 return 7212", Outcome::Frozen),
        // Without returns in the trace, the next call shows that the last one is over.
        ("110 0 10 send 5 20", Outcome::Failed),
        ("110 0 10 switch X 0", Outcome::Dead),
    ] {
        let found = after_start(&format!("100 0 10 send 1 20\n{line}"));
        assert_eq!((found[0].debug_id, found[0].end, found[0].outcome), (1, 110, outcome), "{line}");
        assert!(!found[0].is_sound());
    }
    // The same words in a thread that waits for nothing have no effect.
    let found = after_start("90 0 10 return 7211\n100 0 10 send 1 20");
    assert_eq!(found[0].outcome, Outcome::Cut);
}

#[test]
fn a_failure_has_the_reason_that_events_show() {
    // An earlier call shows that the trace has the events of buffers.
    let start = format!(
        "{START}\n20 0 12 send 90 20\n21 0 12 alloc 90\n22 1 20 recv 90\n23 1 20 reply 91 12 12\n24 1 20 alloc 91\n25 0 12 recv 91"
    );
    let word = |name| (Some(name), None);
    for (lines, (name, why)) in [
        ("100 0 10 send 1 20\n110 0 10 return 7211", (Some(Word::Failed), Some(Why::NoRoom))),
        (
            "100 0 10 send 1 20\n101 0 10 alloc 1\n102 0 10 undo 1\n110 0 10 return 7211",
            (Some(Word::Failed), Some(Why::BadData)),
        ),
        ("100 0 10 send 1 20\n101 0 10 alloc 1\n110 0 10 return 7211", word(Word::Failed)),
        ("100 0 10 send 1 20\n110 0 10 return 7212", word(Word::Frozen)),
        (
            "100 0 10 send 1 20\n101 0 10 alloc 1\nREST_\n130 1 20 reply 2 10 10\n140 0 10 return 7211",
            (Some(Word::Failed), Some(Why::NoRoomForReply)),
        ),
        (
            "100 0 10 send 1 20\n101 0 10 alloc 1\nREST_\n130 1 20 switch X 0\n140 0 10 return 7205",
            (Some(Word::Dead), Some(Why::ProcessExited)),
        ),
        ("95 0 10 command 40406300\n110 0 10 return 7205", (Some(Word::Dead), Some(Why::NoTarget))),
        ("100 0 10 send 1 20\n110 0 10 switch X 0", (None, Some(Why::CallerExited))),
        ("100 0 10 send 1 20\n110 0 10 send 5 20", (None, Some(Why::CallerWentOn))),
    ] {
        let lines = lines.replace("REST_", "110 0 10 switch S 0\n112 1 0 switch R 20\n120 1 20 recv 1");
        let (found, _) = rebuilt(&[], &format!("{start}\n{lines}"));
        let call = found.iter().find(|call| call.client.tid == 10).expect("the call");
        let want = Failure { word: name, why };
        // Here the serving thread is the first of its process.
        let got = call.failure.map(|failure| match failure.why {
            Some(Why::ServerExited) => Failure { why: Some(Why::ProcessExited), ..failure },
            _ => failure,
        });
        assert_eq!(got, Some(want), "{lines}");
    }
}

#[test]
fn a_call_that_nobody_took_is_behind_those_that_its_receiver_serves() {
    let found = after_start(
        "
        100 0 11 send 1 20
        110 1 20 recv 1
        120 0 10 send 3 20
        900 1 20 switch S 0
    ",
    );
    let waiting = found.iter().find(|call| call.debug_id == 3).expect("the second call");
    assert!(waiting.is_unanswered() && waiting.is_over(700) && !waiting.is_over(800));
    assert_eq!(waiting.behind, [1]);
}

#[test]
fn a_trace_that_begins_and_ends_in_the_middle_joins_nothing_wrongly() {
    let (found, _) = rebuilt(
        &[],
        "
        100 1 20 reply 8 10 10
        110 0 10 recv 8
        120 1 21 recv 7
        130 0 10 send 9 20
        140 1 20 recv 9
        150 1 20 reply 11 10 10
        160 1 21 reply 10 12 12
        170 0 12 recv 10
        180 0 10 recv 11
        190 0 10 send 12 20
        200 1 20 recv 12
    ",
    );
    let all: Vec<_> = found.iter().map(|call| (call.debug_id, call.outcome, call.doubtful)).collect();
    assert_eq!(all, [(9, Outcome::Replied, false), (12, Outcome::Cut, false)]);
}

#[test]
fn what_spans_lost_events_is_not_judged() {
    let found = after_start(
        "
        100 0 10 send 1 20
        140 1 20 recv 1
        190 1 20 lost
        200 1 20 reply 2 10 10
        220 0 10 recv 2
        300 0 10 send 3 20
        340 1 20 recv 3
        400 1 20 reply 4 10 10
        420 0 10 recv 4
    ",
    );
    let all: Vec<_> = found.iter().map(|call| (call.debug_id, call.doubtful)).collect();
    assert_eq!(all, [(1, true), (3, false)]);
}

#[test]
fn a_lost_reply_does_not_lend_its_call_to_the_next() {
    let found = after_start(
        "
        100 0 10 send 1 20
        140 1 20 recv 1
        300 0 10 send 3 20
        330 1 20 wait
        340 1 20 recv 3
        400 1 20 reply 4 10 10
        420 0 10 recv 4
    ",
    );
    let all: Vec<_> = found.iter().map(|call| (call.debug_id, call.outcome, call.is_sound())).collect();
    assert_eq!(all, [(1, Outcome::Unanswered, false), (3, Outcome::Replied, true)]);
}

#[test]
fn a_mark_names_the_next_call_of_its_thread() {
    let found = after_start(
        "
        90 0 10 print binderperf: call pair=1 class=fifo number=7
        95 0 11 send 9 20
        96 0 10 oneway 8 20
        100 0 10 send 1 20
        140 1 20 recv 1
        200 1 20 reply 2 10 10
        220 0 10 recv 2
        230 0 10 send 3 20
    ",
    );
    let named: Vec<_> = found.iter().filter(|call| call.label.is_some()).map(|call| call.debug_id).collect();
    assert_eq!(named, [1]);
    assert_eq!(found[0].label.as_deref(), Some("pair=1 class=fifo number=7"));
}

#[test]
fn a_call_that_its_caller_says_is_over_is_whole_from_mark_to_mark() {
    // Preempted before it sends, and again once it has the reply; long before, so that history would be dropped.
    let found = after_start(
        "
        90 0 10 print binderperf: call pair=1 class=fifo number=7
        100 0 10 switch R 30
        192 0 30 switch S 10
        200 0 10 ioctl
        210 0 10 send 1 20
        240 1 20 recv 1
        300 1 20 reply 2 10 10
        320 0 10 recv 2
        330 0 10 done
        340 0 10 switch R 31
        540 0 31 switch S 10
        560 0 10 print binderperf: done pair=1 class=fifo number=7
        600 0 10 send 3 20
        640 1 20 recv 3
        700 1 20 reply 4 10 10
        720 0 10 recv 4
    ",
    );
    let [marked, plain] = &found[..] else { panic!("{found:?}") };
    assert_eq!((marked.begin, marked.sent, marked.end), (90, 210, 560));
    assert_eq!((plain.begin, plain.sent), (600, 600));
    let behind = |tid| {
        let of = |part: &&crate::cause::Segment| part.cause.behind().is_some_and(|behind| behind.tid == tid);
        marked.parts.iter().filter(of).map(crate::cause::Segment::ns).sum::<u64>()
    };
    assert_eq!((behind(30), behind(31)), (92, 200), "{:#?}", marked.parts);
}

#[test]
fn drivers_count_apart() {
    let lines = "
        100 0 10 send 1 20
        101 0 11 send 1 21
        110 1 21 recv 1
        120 1 20 recv 1
    ";
    let (found, _) = rebuilt_with(&[], lines, |event| {
        if let Kind::Binder(flavour, _) = &mut event.kind
            && [11, 21].contains(&event.tid)
        {
            *flavour = Flavour::Embedded;
        }
    });
    let mut pairs: Vec<_> =
        found.iter().map(|call| (call.client.tid, call.server.map(|server| server.tid))).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [(10, Some(20)), (11, Some(21))]);
}

#[test]
fn calls_of_an_inheritance_scene_are_marked_until_their_thread_dies() {
    let call = |id: i32, from: u64| {
        [
            format!("{from} 0 10 send {id} 20"),
            format!("{} 1 20 recv {id}", from + 5),
            format!("{} 1 20 reply {} 10 10", from + 10, id + 50),
            format!("{} 0 10 recv {}", from + 15, id + 50),
        ]
        .join("\n")
    };
    let lines = format!(
        "{START}\n{}\n130 0 10 print binderperf: scene\n{}\n180 0 10 switch X 0\n190 0 0 switch R 10\n{}",
        call(1, 100),
        call(2, 150),
        call(3, 200)
    );
    let scenes: Vec<_> = rebuilt(&[], &lines).0.iter().map(|call| (call.debug_id, call.scene)).collect();
    assert_eq!(scenes, [(1, false), (2, true), (3, false)]);
}

#[test]
fn a_forged_trace_with_many_waiting_calls_names_a_few() {
    let mut lines = String::new();
    for id in 1..200 {
        lines += &format!("{id} 0 {} send {id} 20\n", 1000 + id);
        if id < 100 {
            lines += &format!("{id} 1 {} recv {id}\n", 2000 + id);
        }
    }
    let (found, _) = rebuilt(&[], &lines);
    let waiting: Vec<_> = found.iter().filter(|call| call.received.is_none()).collect();
    assert!(waiting.len() == 100 && waiting.iter().all(|call| call.behind.len() == 16));
}
