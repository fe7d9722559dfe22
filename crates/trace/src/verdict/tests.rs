//! Room: sums, what is kept of many transactions, and what lost events make of the ones kept.

use super::*;
use crate::event::{Binder, Context, Flavour, Prio, Transaction as Sent};

struct Feed {
    names: Names,
    analyst: Analyst,
}

impl Feed {
    fn new(question: Question) -> Self {
        Self { names: Names::default(), analyst: Analyst::new(question) }
    }

    fn take(&mut self, ts: u64, cpu: u32, tid: i32, kind: Kind) {
        let event = Event { ts, cpu, tid, tgid: None, comm: Name::NONE, context: Context::default(), kind };
        self.analyst.take(&event, &self.names);
    }

    /// A call of `ns` that begins at `ts`; its numbers are `id` and the next.
    fn call(&mut self, ts: u64, ns: u64, id: i32) {
        let sent = |debug_id, reply, to_thread| {
            let sent = Sent { debug_id, reply, to_thread, to_proc: 20, ..Sent::default() };
            Kind::Binder(Flavour::C, Binder::Transaction(sent))
        };
        let received = |debug_id| Kind::Binder(Flavour::C, Binder::Received { debug_id });
        self.take(ts, 0, 10, sent(id, false, 0));
        self.take(ts + 1, 1, 20, received(id));
        self.take(ts + 2, 1, 20, sent(id + 1, true, 10));
        self.take(ts + ns, 0, 10, received(id + 1));
    }

    fn finish(self) -> Analysis {
        self.analyst.finish(&self.names, &Report::default())
    }
}

#[test]
fn the_slowest_hundredth_has_sums_of_its_own() {
    let mut feed = Feed::new(Question { worst: 3, ..Question::default() });
    for index in 0..1000_u64 {
        let ns = if index % 100 == 50 { 1_000_000 + index } else { 1000 };
        feed.call(index * 10_000_000, ns, i32::try_from(index * 2).expect("small"));
    }
    let analysis = feed.finish();
    assert_eq!((analysis.all.calls, analysis.slowest.calls), (1000, 10));
    assert_eq!((analysis.slowest.min_ns, analysis.slowest.max_ns), (1_000_050, 1_000_950));
    assert_eq!((analysis.all.p50_ns, analysis.all.max_ns), (1000, 1_000_950));
    let kept: Vec<_> = analysis.slow.iter().map(|call| call.ns).collect();
    assert_eq!(kept, [1_000_950, 1_000_850, 1_000_750]);
}

#[test]
fn misses_are_all_counted_and_the_slowest_told() {
    let mut feed = Feed::new(Question { deadline_ns: Some(5000), ..Question::default() });
    for index in 0..2000_u64 {
        feed.call(index * 1_000_000, 5000 + index, i32::try_from(index * 2).expect("small"));
    }
    let analysis = feed.finish();
    assert_eq!(analysis.counts.missed, 1999, "5000 is not longer than 5000");
    assert!(analysis.slow.len() >= MOST_MISSES && analysis.slow.len() < 2 * MOST_MISSES);
    assert_eq!((analysis.slow[0].ns, analysis.slow[0].missed), (6999, true));
    assert!(analysis.slow.is_sorted_by_key(|call| std::cmp::Reverse(call.ns)));
}

#[test]
fn a_miss_that_a_test_told_of_is_the_call_it_was_told_of() {
    let mut feed = Feed::new(Question { worst: 1, ..Question::default() });
    let own = |verb: &str, words: &str| Kind::Print(format!("binderperf: {verb} {words}").into());
    for number in 0..100_u64 {
        let ts = 1000 + number * 1_000_000;
        feed.take(ts, 0, 10, own("call", &format!("pair=0 class=fifo number={number}")));
        // The slowest one is another.
        feed.call(ts + 10, if number == 7 { 9000 } else { 2000 }, i32::try_from(number * 2).expect("small"));
        if number == 42 {
            let words = "pair=0 class=fifo number=42 took_ns=2600 deadline_ns=2500";
            feed.take(ts + 2700, 0, 10, own("miss", words));
        }
        if number == 50 {
            let words = "pair=0 class=fifo number=49 took_ns=2600 deadline_ns=2500";
            feed.take(ts + 2700, 0, 10, own("miss", words));
        }
    }
    let analysis = feed.finish();
    assert_eq!(analysis.counts.missed, 1);
    let [slowest, missed] = &analysis.slow[..] else { panic!("{:?}", analysis.slow) };
    assert!(!slowest.missed && slowest.ns == 9010);
    assert_eq!(missed.label.as_deref(), Some("pair=0 class=fifo number=42"));
    assert_eq!(missed.told, Some(Told { took_ns: 2600, deadline_ns: 2500 }));
    assert!(missed.verdict.starts_with("P0 fifo #42: call 84 "), "{}", missed.verdict);
    assert!(
        missed.verdict.contains("(2.60 us by the caller's clock, deadline 2.50 us)"),
        "{}",
        missed.verdict
    );
    assert_eq!(
        analysis.problems.len(),
        1,
        "the other was told of a call that is not there: {:?}",
        analysis.problems
    );
}

#[test]
fn a_gap_that_shows_late_takes_back_what_was_concluded_in_it() {
    let mut feed = Feed::new(Question { worst: 9, ..Question::default() });
    let idle = Kind::CpuIdle { cpu: 7, state: Some(1) };
    feed.call(100, 50, 1);
    feed.take(1000, 7, 0, idle);
    feed.call(2000, 60, 3);
    feed.take(3000, 7, -1, Kind::Lost { count: None });
    feed.call(4000, 70, 5);
    let analysis = feed.finish();
    let doubtful: Vec<_> = analysis.slow.iter().map(|call| (call.debug_id, call.doubtful)).collect();
    assert_eq!(doubtful, [(5, false), (3, true), (1, false)]);
    assert!(analysis.slow[1].verdict.contains("not judged"), "{}", analysis.slow[1].verdict);
}

#[test]
fn an_empty_trace_has_an_answer() {
    let analysis = Feed::new(Question { worst: 5, ..Question::default() }).finish();
    assert_eq!((analysis.all.calls, analysis.span_ns, analysis.slow.len()), (0, 0, 0));
    assert!(analysis.to_string().contains("0 calls"));
}

#[test]
fn a_tracer_in_the_way_is_called_tracing() {
    let mut feed = Feed::new(Question { worst: 1, ..Question::default() });
    let tracer = feed.names.intern("trace-cmd");
    let task = |tid, comm| crate::event::Task { tid, comm, prio: Prio(120) };
    let (server, tracer) = (task(20, Name::NONE), task(30, tracer));
    let sleeps = crate::event::State::Sleeping;
    feed.take(1, 1, 20, Kind::Switch { prev: server, state: sleeps, next: tracer });
    feed.take(
        2,
        0,
        10,
        Kind::Binder(Flavour::C, Binder::Transaction(Sent { debug_id: 1, to_proc: 20, ..Sent::default() })),
    );
    feed.take(10, 0, 10, Kind::Waking(crate::event::Wake { task: server, target_cpu: 1 }));
    feed.take(90, 1, 30, Kind::Switch { prev: tracer, state: sleeps, next: server });
    feed.take(100, 1, 20, Kind::Binder(Flavour::C, Binder::Received { debug_id: 1 }));
    let reply = Sent { debug_id: 2, reply: true, to_thread: 10, ..Sent::default() };
    feed.take(110, 1, 20, Kind::Binder(Flavour::C, Binder::Transaction(reply)));
    feed.take(120, 0, 10, Kind::Binder(Flavour::C, Binder::Received { debug_id: 2 }));
    let analysis = feed.finish();
    let reason = &analysis.slow[0].reasons[0];
    assert_eq!((reason.cause.as_str(), reason.ns), ("tracing", 80));
}

#[test]
fn who_computes_for_a_call_that_the_server_makes_back_has_the_name_that_the_outer_call_gives() {
    let mut feed = Feed::new(Question { worst: 9, ..Question::default() });
    let task = |tid| crate::event::Task { tid, comm: Name::NONE, prio: Prio(120) };
    let sleeps = crate::event::State::Sleeping;
    for (cpu, tid) in [(0, 10), (1, 20)] {
        feed.take(1, cpu, 0, Kind::Switch { prev: task(0), state: sleeps, next: task(tid) });
    }
    let sent = |debug_id, to_proc, reply| {
        let to_thread = if reply { to_proc } else { 0 };
        let sent = Sent { debug_id, to_proc, to_thread, reply, ..Sent::default() };
        Kind::Binder(Flavour::C, Binder::Transaction(sent))
    };
    let received = |debug_id| Kind::Binder(Flavour::C, Binder::Received { debug_id });
    // 10 calls 20, which calls 10 back.
    for (ts, tid, kind) in [
        (10, 10, sent(1, 20, false)),
        (20, 20, received(1)),
        (120, 20, sent(2, 10, false)),
        (130, 10, received(2)),
        (430, 10, sent(3, 20, true)),
        (440, 20, received(3)),
        (540, 20, sent(4, 10, true)),
        (550, 10, received(4)),
    ] {
        feed.take(ts, u32::from(tid == 20), tid, kind);
    }
    let analysis = feed.finish();
    let call = &analysis.slow[0];
    let computed: Vec<_> = call.reasons.iter().filter(|reason| reason.cause.ends_with("_running")).collect();
    let computed: Vec<_> =
        computed.iter().map(|reason| (reason.cause.as_str(), reason.role.as_str(), reason.ns)).collect();
    assert_eq!(computed, [("client_running", "caller", 300), ("server_running", "server", 200)]);
}
