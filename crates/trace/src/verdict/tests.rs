//! Tests of sums, of the choice among many transactions, and of lost events.

mod chains;

use super::*;
use crate::event::fixtures::{event, received, reply, sent, switch, task};
use crate::event::{Binder, Flavour, State, Transaction, Wake};

struct Feed {
    names: Names,
    analyzer: Analyzer,
}

impl Feed {
    fn new(options: AnalysisOptions) -> Self {
        Self { names: Names::default(), analyzer: Analyzer::new(options) }
    }

    fn take(&mut self, ts: u64, cpu: u32, tid: i32, kind: Kind) {
        self.analyzer.take(&event(ts, cpu, tid, kind), &self.names);
    }

    /// Call of `ns` that begins at `ts`; its numbers are `id` and the next.
    fn call(&mut self, ts: u64, ns: u64, id: i32) {
        self.take(ts, 0, 10, sent(id, 20));
        self.take(ts + 1, 1, 20, received(id));
        self.take(ts + 2, 1, 20, reply(id + 1, 10));
        self.take(ts + ns, 0, 10, received(id + 1));
    }

    fn finish(self) -> Analysis {
        self.analyzer.finish(&self.names, &Report::default())
    }
}

#[test]
fn the_slowest_hundredth_has_sums_of_its_own() {
    let mut feed = Feed::new(AnalysisOptions { worst: 3, ..AnalysisOptions::default() });
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
fn all_misses_are_counted_and_the_slowest_reported() {
    let mut feed = Feed::new(AnalysisOptions { deadline_ns: Some(5000), ..AnalysisOptions::default() });
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
fn a_reported_miss_is_matched_to_its_call() {
    let mut feed = Feed::new(AnalysisOptions { worst: 1, ..AnalysisOptions::default() });
    let own = |verb: &str, words: &str| Kind::Print(format!("binderperf: {verb} {words}").into());
    for number in 0..100_u64 {
        let ts = 1000 + number * 1_000_000;
        feed.take(ts, 0, 10, own("call", &format!("pair=0 class=fifo number={number}")));
        // The slowest one differs.
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
    assert_eq!(missed.reported_miss, Some(ReportedMiss { took_ns: 2600, deadline_ns: 2500 }));
    assert!(missed.verdict.starts_with("P0 fifo #42: call 84 "), "{}", missed.verdict);
    assert!(
        missed.verdict.contains("(2.60 us by the caller's clock, deadline 2.50 us)"),
        "{}",
        missed.verdict
    );
    let strays = analysis.problems.iter().filter(|problem| problem.contains("does not hold the call"));
    assert_eq!(strays.count(), 1, "the other was told of a call that is not there: {:?}", analysis.problems);
}

#[test]
fn a_gap_that_shows_late_takes_back_what_was_concluded_in_it() {
    let mut feed = Feed::new(AnalysisOptions { worst: 9, ..AnalysisOptions::default() });
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
    let analysis = Feed::new(AnalysisOptions { worst: 5, ..AnalysisOptions::default() }).finish();
    assert_eq!((analysis.all.calls, analysis.span_ns, analysis.slow.len()), (0, 0, 0));
    assert!(analysis.to_string().contains("0 calls"));
}

#[test]
fn a_tracer_in_the_way_is_called_tracing() {
    let mut feed = Feed::new(AnalysisOptions { worst: 1, ..AnalysisOptions::default() });
    let tracer = feed.names.intern("trace-cmd");
    let (server, tracer) = (task(20, Name::NONE), task(30, tracer));
    feed.take(1, 1, 20, switch(server, State::Sleeping, tracer));
    feed.take(2, 0, 10, sent(1, 20));
    feed.take(10, 0, 10, Kind::Waking(Wake { task: server, target_cpu: 1 }));
    feed.take(90, 1, 30, switch(tracer, State::Sleeping, server));
    feed.take(100, 1, 20, received(1));
    feed.take(110, 1, 20, reply(2, 10));
    feed.take(120, 0, 10, received(2));
    let analysis = feed.finish();
    let reason = &analysis.slow[0].reasons[0];
    assert_eq!((reason.cause, reason.ns), (Label::Tracing, 80));
}

#[test]
fn a_call_back_into_the_caller_uses_the_roles_of_the_outer_call() {
    let mut feed = Feed::new(AnalysisOptions { worst: 9, ..AnalysisOptions::default() });
    for (cpu, tid) in [(0, 10), (1, 20)] {
        feed.take(1, cpu, 0, switch(task(0, Name::NONE), State::Sleeping, task(tid, Name::NONE)));
    }
    // 10 calls 20, which calls 10 back.
    for (ts, tid, kind) in [
        (10, 10, sent(1, 20)),
        (20, 20, received(1)),
        (120, 20, sent(2, 10)),
        (130, 10, received(2)),
        (430, 10, reply(3, 20)),
        (440, 20, received(3)),
        (540, 20, reply(4, 10)),
        (550, 10, received(4)),
    ] {
        feed.take(ts, u32::from(tid == 20), tid, kind);
    }
    let analysis = feed.finish();
    let call = &analysis.slow[0];
    let computed: Vec<_> =
        call.reasons.iter().filter(|reason| reason.cause.name().ends_with("_running")).collect();
    let computed: Vec<_> =
        computed.iter().map(|reason| (reason.cause.name(), reason.role.name(), reason.ns)).collect();
    assert_eq!(computed, [("client_running", "caller", 300), ("server_running", "server", 200)]);
}

/// Slices as a proxy and a stub write them.
fn begin(name: &str) -> Kind {
    Kind::Print(format!("B|1|{name}").into())
}

fn end() -> Kind {
    Kind::Print("E|1".into())
}

#[test]
fn a_call_is_named_by_its_proxy_or_its_stub_and_by_no_other_slice() {
    let mut feed = Feed::new(AnalysisOptions { worst: 9, ..AnalysisOptions::default() });
    // The proxy names the first; the second comes after the proxy's end, and its stub names it.
    feed.take(0, 0, 10, begin("AIDL::java::IOne::get::client"));
    feed.call(1, 1000, 2);
    feed.take(1002, 0, 10, end());
    feed.take(2000, 0, 10, sent(4, 20));
    feed.take(2001, 1, 20, received(4));
    feed.take(2002, 1, 20, begin("draw"));
    feed.take(2003, 1, 20, begin("AIDL::cpp::ITwo::put::cppServer"));
    // What the stub calls without a proxy of its own has no name.
    feed.take(2010, 1, 20, sent(6, 30));
    feed.take(2011, 0, 30, received(6));
    feed.take(2012, 0, 30, reply(7, 20));
    feed.take(2020, 1, 20, received(7));
    feed.take(2021, 1, 20, end());
    feed.take(2022, 1, 20, end());
    feed.take(2023, 1, 20, reply(5, 10));
    feed.take(2900, 0, 10, received(5));
    let analysis = feed.finish();
    let mut named: Vec<_> = analysis.slow.iter().map(|call| (call.debug_id, call.method.clone())).collect();
    named.sort();
    assert_eq!(named, [(2, Some("IOne.get".into())), (4, Some("ITwo.put".into()))]);
    let rows: Vec<_> = analysis.groups.iter().map(|group| (group.name.as_str(), group.sum.calls)).collect();
    assert_eq!(rows, [("IOne.get", 1), ("ITwo.put", 1), ("code 0 of node 0 of process 30", 1)]);
    assert!(analysis.slow[0].verdict.starts_with("IOne.get, call 2 of "), "{}", analysis.slow[0].verdict);
    assert!(analysis.to_string().contains("IOne.get: "), "{analysis}");
}

#[test]
fn a_slice_whose_end_was_lost_names_no_later_call() {
    let method = |more: &dyn Fn(&mut Feed)| {
        let mut feed = Feed::new(AnalysisOptions { worst: 9, ..AnalysisOptions::default() });
        more(&mut feed);
        feed.call(2000, 1000, 2);
        feed.finish().slow[0].method.clone()
    };
    let open = |feed: &mut Feed| feed.take(0, 0, 10, begin("AIDL::java::IOne::get::client"));
    assert_eq!(method(&open).as_deref(), Some("IOne.get"));
    let lost = method(&|feed| {
        open(feed);
        feed.take(10, 1, 0, Kind::Lost { count: Some(1) });
    });
    assert_eq!(lost, None, "its end may be among the lost events");
    let deep = method(&|feed| {
        (0..300).for_each(|ts| feed.take(ts, 0, 10, begin("x")));
        feed.take(300, 0, 10, begin("AIDL::java::IOne::get::client"));
        feed.take(301, 0, 10, end());
    });
    assert_eq!(deep, None, "it has ended, however deep it was");
}

#[test]
fn a_trace_without_names_has_a_table_only_if_asked_for() {
    let groups = |by| {
        let mut feed = Feed::new(AnalysisOptions { by, ..AnalysisOptions::default() });
        feed.call(0, 1000, 2);
        feed.finish().groups.into_iter().map(|group| group.name).collect::<Vec<_>>()
    };
    assert!(groups(None).is_empty());
    let mut feed = Feed::new(AnalysisOptions::default());
    for code in 1..6_u32 {
        let ts = u64::from(code) * 1000;
        let call = Transaction { debug_id: 100, to_proc: 20, code, ..Transaction::default() };
        feed.take(ts, 0, 10, Kind::Binder(Flavour::C, Binder::Transaction(call)));
        feed.take(ts + 1, 1, 20, received(100));
        feed.take(ts + 2, 1, 20, reply(101, 10));
        feed.take(ts + u64::from(code), 0, 10, received(101));
    }
    let many = feed.finish();
    assert_eq!((many.by, many.groups.len()), (Some(By::Method), 5));
    assert_eq!(many.groups[0].name, "code 5 of node 0 of process 20");
    assert_eq!(groups(Some(By::Pair)), ["process 10 -> process 20"]);
    assert_eq!(groups(Some(By::Interface)), ["node 0 of process 20"]);
}

#[test]
fn what_sleeps_in_nearly_each_call_waits_by_design() {
    let found = |sleepers: u64| {
        let mut feed = Feed::new(AnalysisOptions { by: Some(By::Pair), ..AnalysisOptions::default() });
        let swapper = task(0, Name::NONE);
        let server = task(20, Name::NONE);
        for index in 0..10 {
            let (ts, id) = (index * 20_000_000, i32::try_from(index * 2 + 2).expect("small"));
            feed.take(ts, 1, 0, switch(swapper, State::of_letter(b'R'), server));
            feed.take(ts + 10, 0, 10, sent(id, 20));
            feed.take(ts + 20, 1, 20, received(id));
            if index < sleepers {
                feed.take(ts + 30, 1, 20, switch(server, State::Sleeping, swapper));
                feed.take(ts + 9_000_000, 0, 7, Kind::Waking(Wake { task: server, target_cpu: 1 }));
                feed.take(ts + 9_000_010, 1, 0, switch(swapper, State::of_letter(b'R'), server));
            }
            feed.take(ts + 9_000_020, 1, 20, reply(id + 1, 10));
            feed.take(ts + 9_000_030, 0, 10, received(id + 1));
            feed.take(ts + 9_000_040, 1, 20, switch(server, State::Sleeping, swapper));
        }
        feed.finish().groups
    };
    assert!(found(10)[0].waits_by_design && found(9)[0].waits_by_design, "{:#?}", found(10));
    assert!(!found(8)[0].waits_by_design, "two of ten computed");
}
