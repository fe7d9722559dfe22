//! A stream for each cause: it is found, to the nanosecond; the sentence about the call has its phrase; it is followed if the
//! table has it as followed; and without the events that prove it, it is gone.
//! Not here: further streams of the model (`model::tests`).

use std::collections::{BTreeMap, BTreeSet};

use crate::cause::phrase::filled;
use crate::cause::{Evidence, Label, Shown};
use crate::event::{Event, Names};
use crate::model::Transaction;
use crate::model::chain::Next;
use crate::model::tests::Script;
use crate::verdict::{AnalysisOptions, Analyzer, ReportedMiss, TransactionEvent};

/// A stream in which call 1, of thread 10 to process 20, has a cause: for how many nanoseconds, and the words that say so.
fn scene(label: Label) -> (String, u64, &'static str) {
    let working = |begin, end| format!("START REACHED 150 1 20 {begin}; 180 1 20 {end}; BACK");
    let behind = |tid: i32| {
        format!(
            "START 50 1 0 switch R {tid}; 100 0 10 send 1 20; 110 0 10 waking 20 1; 110 1 {tid} wakeup 20 1;
             112 0 10 switch S 0; 135 1 {tid} switch R 20; REST"
        )
    };
    let (lines, ns, says) = match label {
        Label::ClientRunning => (
            "START 60 0 10 print binderperf: call a; REACHED BACK 250 0 10 print binderperf: done".to_owned(),
            80,
            "caller t10 10 ran for 80 ns",
        ),
        Label::ServerRunning => ("START REACHED BACK".to_owned(), 60, "server t20 20 ran for 60 ns"),
        Label::Running => (asleep("S", "150 2 0 switch R 9", "", ""), 40, "which ran 40 ns"),
        Label::Driver => ("START REACHED BACK".to_owned(), 50, "the driver took 35 ns in server t20 20"),
        Label::Runnable => (behind(30), 25, "server t20 20 was runnable 25 ns on cpu1 behind t30 30 (nice 0)"),
        Label::WrongCpu => (
            "START 50 1 0 switch R 30; 60 2 40 switch S 0; 100 0 10 send 1 20; 110 0 10 waking 20 1;
             110 1 30 wakeup 20 1; 112 0 10 switch S 0; 130 2 0 migrate 20 1 2; 132 2 0 switch R 20;
             140 2 20 recv 1; 200 2 20 reply 2 10 10; 205 2 20 waking 10 0; 205 0 0 wakeup 10 0; 205 0 0 switch R 10;
             210 0 10 recv 2"
                .to_owned(),
            20,
            "server t20 20 was runnable 20 ns on cpu1 behind t30 30 (nice 0) while cpu2 was idle",
        ),
        Label::Tracing => (behind(77), 25, "server t20 20 waited 25 ns on cpu1 for the recording itself: trace-cmd 77 (nice 0)"),
        Label::Handover => (
            "START 100 0 10 send 1 20; 110 0 10 waking 20 0; 110 0 10 wakeup 20 0; 130 0 10 switch S 20;
             140 0 20 recv 1; 200 0 20 reply 2 10 10; 205 0 20 waking 10 0; 205 0 20 wakeup 10 0; 205 0 20 switch S 10;
             210 0 10 recv 2"
                .to_owned(),
            20,
            "server t20 20 waited 20 ns until the other side left cpu0",
        ),
        Label::WakeLatency => (
            "START 100 0 10 send 1 20; 110 0 10 waking 20 1; 110 1 0 wakeup 20 1; 112 0 10 switch S 0;
             135 1 0 switch R 20; REST"
                .to_owned(),
            25,
            "server t20 20 was woken 25 ns before it ran",
        ),
        Label::WakeInterrupt => (
            "START 60 1 0 switch R 30; 100 0 10 send 1 20; 110 0 10 waking 20 0; 112 0 10 switch S 0;
             125 1 30 wakeup 20 1; 125 1 30 switch R 20; REST"
                .to_owned(),
            15,
            "server t20 20 was woken, and the interrupt took 15 ns to reach cpu1",
        ),
        Label::IdleExit => (
            "START 60 1 0 idle 1 2; 100 0 10 send 1 20; 110 0 10 waking 20 1; 112 0 10 switch S 0;
             130 1 0 idle 1 -1; 131 1 0 wakeup 20 1; 135 1 0 switch R 20; REST"
                .to_owned(),
            20,
            "server t20 20 waited 20 ns for cpu1 to leave idle state 2",
        ),
        Label::Interrupt => (working("irq+ 5", "irq- 5"), 30, "interrupt eth0 took 30 ns of cpu1 from server t20 20"),
        Label::SoftInterrupt => (working("soft+ 3", "soft- 3"), 30, "softirq NET_RX took 30 ns of cpu1 from server t20 20"),
        Label::NoFreeThread => (
            "START 50 0 11 send 7 20; 55 0 11 waking 20 1; 55 1 0 switch R 20; 60 1 20 recv 7; 70 0 11 switch S 10;
             100 0 10 send 1 20; 108 0 10 switch S 0; 130 1 20 reply 8 11 11; REST"
                .to_owned(),
            30,
            "no thread was free for 30 ns; server t20 20 was busy with call 7",
        ),
        Label::OnewayQueue => (
            "START 100 0 10 oneway 5 20; 105 0 10 waking 20 1; 105 1 0 switch R 20; 110 1 20 recv 5;
             120 0 10 oneway 1 20; 125 0 10 switch S 0; 190 1 20 recv 1"
                .to_owned(),
            70,
            "it was queued for 70 ns",
        ),
        Label::Frozen => (asleep("S", "", "190 2 9 blocked 20 __refrigerator", ""), 40, "the receiver was frozen for 40 ns"),
        Label::KernelReclaim => (asleep("D", "150 1 20 reclaim+", "", "195 1 20 reclaim-"), 45, "server t20 20 waited 45 ns: kernel memory reclaim"),
        Label::UserReclaim => (in_slice("GC: Wait For Completion Alloc"), 45, "server t20 20 waited 45 ns: userspace memory reclaim"),
        Label::Monitor => (in_slice("monitor contention with owner t9 (9) at int a.B.c()(B.java:1)"), 40, "server t20 20 waited 40 ns for a monitor held by t9 9 in B.c"),
        Label::ArtLock => (in_slice("Lock contention on thread list lock"), 40, "server t20 20 waited 40 ns for a lock of the runtime until 9 woke it"),
        Label::Mutex => (in_slice("Contending for pthread mutex"), 40, "server t20 20 waited 40 ns in a futex until 9 woke it"),
        Label::Io => (asleep("D", "", "190 2 9 blocked 20 io_schedule io", ""), 40, "server t20 20 waited 40 ns for I/O until 9 woke it (io_schedule)"),
        Label::KernelLock => (asleep("D", "150 1 20 lock+ MUTEX", "", "195 1 20 lock-"), 45, "server t20 20 waited 45 ns for a lock of the kernel until 9 woke it (mutex)"),
        Label::Nested => (deep(), 73, "the call waited 73 ns: binder"),
        Label::Uninterruptible => (asleep("D", "", "", ""), 40, "server t20 20 waited 40 ns until 9 woke it"),
        Label::ThreadWait => (
            asleep("S", "145 1 20/20 print x", "", "").replace("2 9 waking", "2 9/20 waking"),
            40,
            "server t20 20 slept 40 ns until 9 of its own process woke it",
        ),
        Label::Sleeping => (asleep("S", "", "", ""), 40, "server t20 20 slept 40 ns until 9 woke it"),
        Label::Stopped => (asleep("T", "", "", ""), 40, "server t20 20 waited 40 ns: stopped"),
        Label::Stolen => (silent(), 2_200_000, "server t20 20 had no CPU for 2.20 ms: no event on cpu1 past a due interrupt"),
        Label::Silent => (silent(), 3_000_000, "no event on cpu1 for 3.00 ms: server t20 20 computed, or the CPU was taken from it"),
        Label::NotShown => {
            ("100 0 10 send 1 20; 150 1 20 recv 1; 190 1 20 reply 2 10 10; 200 0 10 recv 2".to_owned(), 100, "the trace does not show where the call was for 60 ns")
        }
    };
    let lines = ["START", "REACHED", "REST", "BACK"]
        .iter()
        .fold(lines, |lines, word| lines.replace(word, &format!("\n{word}\n")));
    (lines.replace(';', "\n"), ns, says)
}

/// The server sleeps from 150 to 190, when thread 9 of another process wakes it on CPU 2.
fn asleep(state: &str, before: &str, woken: &str, after: &str) -> String {
    format!(
        "START REACHED {before}; 150 1 20 switch {state} 0; 190 2 9 waking 20 1; {woken}; 190 1 0 switch R 20; {after}; BACK"
    )
}

fn in_slice(name: &str) -> String {
    asleep("S", &format!("150 1 20 print B|20|{name}"), "", "195 1 20 print E|20")
}

/// Nested calls, each 2 ns after its caller's, more than the model keeps as separate segments.
fn deep() -> String {
    let down: Vec<String> = (0..20)
        .map(|call| {
            let (at, client) = (100 + 2 * call, 10 + call);
            format!(
                "{at} 0 {client} send {} {}; {} 1 {} recv {}",
                call + 1,
                client + 1,
                at + 1,
                client + 1,
                call + 1
            )
        })
        .collect();
    let up: Vec<String> = (0..20)
        .rev()
        .map(|call| {
            let (at, client) = (240 - 2 * call, 10 + call);
            format!(
                "{at} 1 {} reply {} {client} {client}; {} 0 {client} recv {}",
                client + 1,
                call + 101,
                at + 1,
                call + 101
            )
        })
        .collect();
    format!("{}; {}", down.join("; "), up.join("; "))
}

/// The server works from 20 ms on; its CPU's tick of 23 ms comes at 25.2 ms.
fn silent() -> String {
    let ticks: String =
        [7, 11, 15, 19].map(|ms| format!("{ms}000000 1 20 timer+; {ms}000000 1 20 timer-; ")).concat();
    format!(
        "START 2 1 0 switch R 20; 3 1 -1 tick 4000000; {ticks}
         20000000 0 10 send 1 20; 20000000 0 10 switch S 0; 20000000 1 20 recv 1;
         25200000 1 20 timer+; 25200000 1 20 timer-; 25210000 1 20 reply 2 10 10; 25210000 1 20 waking 10 0;
         25210000 0 0 switch R 10; 25210000 0 10 recv 2"
    )
}

/// Call 1 of a stream, and the sentence about it.
fn call(events: &[Event], names: &Names) -> Option<(Transaction, String)> {
    let mut analyzer = Analyzer::new(AnalysisOptions::default());
    let mut found = None;
    let mut met = |met: TransactionEvent<'_>| {
        if let TransactionEvent::Ended(call) = met
            && call.debug_id == 1
        {
            found = Some(call.clone());
        }
    };
    events.iter().for_each(|event| analyzer.take_with(event, names, &mut met));
    analyzer.end_with(names, &mut met);
    let call = found?;
    let slow = analyzer.describe_miss(&call, Some(ReportedMiss { took_ns: 0, deadline_ns: 0 }), names);
    Some((call, slow.expect("a miss").verdict))
}

/// Nanoseconds of a call by cause; for a cause of chains of waits, those of its links.
fn times(call: &Transaction) -> BTreeMap<Label, u64> {
    let mut times = BTreeMap::new();
    for part in &call.parts {
        *times.entry(part.cause.label()).or_default() += part.ns();
    }
    for link in call.links.iter().filter(|link| link.cause.label() == Label::Running) {
        *times.entry(Label::Running).or_default() += link.ns();
    }
    times
}

fn shows(event: &Event, one: Evidence) -> bool {
    let mut shown = Shown::default();
    shown.see(event);
    shown.has(one)
}

#[test]
fn each_cause_is_found_said_and_followed() {
    let mut faults = Vec::new();
    for label in Label::ALL {
        let (lines, ns, says) = scene(*label);
        let mut script = Script::new(&[]);
        let events = script.events(&lines);
        let (call, sentence) = call(&events, &script.names).expect("the call");
        let found = times(&call).get(label).copied().unwrap_or(0);
        if found != ns {
            faults.push(format!("{label:?} took {found} ns, not {ns}: {:#?}", times(&call)));
        }
        if says.is_empty() || !sentence.contains(says) {
            faults.push(format!("{label:?} is not said as {says:?}: {sentence}"));
        }
        let segments: Vec<u64> =
            call.parts.iter().filter(|part| part.cause.label() == *label).map(|part| part.begin).collect();
        let mut heads = call.links.iter().filter(|link| link.depth == 0 && segments.contains(&link.begin));
        if heads.any(|link| matches!(link.next, Next::Thread(..))) != label.is_followed() {
            faults.push(format!("{label:?} is followed: {}; {:#?}", label.is_followed(), call.links));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_phrase_says_how_long() {
    for label in Label::ALL {
        // As a reason with all its details, as one without any, and behind "which" in a chain.
        for known in [&["who", "time", "cpus", "behind", "detail", "until"][..], &["who", "time"], &["time"]]
        {
            let value = |name: &str| known.contains(&name).then(|| format!("<{name}>"));
            let text = filled(label.phrase(), &value);
            assert!(text.contains("<time>") && text.len() > "<time>".len(), "{label:?}: {text}");
        }
    }
}

#[test]
fn without_the_events_that_prove_it_a_cause_is_gone() {
    for label in Label::ALL {
        let (lines, ..) = scene(*label);
        let mut script = Script::new(&[]);
        let events = script.events(&lines);
        let (whole, _) = call(&events, &script.names).expect("the call");
        let before = times(&whole);
        let proofs: BTreeSet<&Evidence> = label.proof().iter().copied().flatten().collect();
        for one in proofs {
            let less: Vec<Event> = events.iter().filter(|event| !shows(event, *one)).cloned().collect();
            let mut shown = Shown::default();
            less.iter().for_each(|event| shown.see(event));
            let Some((call, _)) = call(&less, &script.names) else { continue };
            let after = times(&call);
            let of = |times: &BTreeMap<Label, u64>, label: &Label| times.get(label).copied().unwrap_or(0);
            if !label.is_proven_by(shown) {
                assert_eq!(of(&after, label), 0, "{label:?} without {one:?}: {after:?}");
            }
            for (grown, ns) in
                after.iter().filter(|(grown, ns)| **grown != Label::NotShown && **ns > of(&before, grown))
            {
                let lenders = before.keys().filter(|from| of(&after, from) < of(&before, from));
                assert!(
                    lenders.clone().any(|from| from.coarser().contains(grown)),
                    "{label:?} without {one:?}: {grown:?} has {ns} ns, {before:?} {after:?}"
                );
            }
        }
    }
}
