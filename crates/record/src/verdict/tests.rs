//! Each verdict: good, bad and unknown.

use super::*;
use crate::fixtures::{Pair, case, latency_run, measured};

#[test]
fn sync_is_good_above_six_tenths_only() {
    let sync = |same_cpu, calls, migrated| Served { calls, same_cpu, migrated, untold: 0 }.sync();
    assert_eq!(sync(61, 100, 0), Some(SyncVerdict::Good));
    assert_eq!(sync(60, 100, 0), Some(SyncVerdict::Poor));
    assert_eq!(sync(0, 100, 0), Some(SyncVerdict::Poor));
    assert_eq!(sync(60, 100, 1), Some(SyncVerdict::Good), "a call that moved is no call served elsewhere");
    assert_eq!(sync(0, 100, 100), None, "nothing is left to judge");
    assert_eq!(sync(0, 0, 0), None);
    assert_eq!(Served { calls: 10, same_cpu: 6, migrated: 2, untold: 0 }.ratio(), Some(0.75));
    assert_eq!(Served { calls: 10, same_cpu: 0, migrated: 2, untold: 8 }.sync(), None);
}

#[test]
fn calls_of_failed_pairs_count_and_controls_do_not() {
    let mut run = latency_run(&[Pair::healthy(0), Pair::failed(1, "the server was killed")]);
    run.cases.push(case("BM_sendVec_pipe", 4, 0, vec![measured(10, 10, 10)]));
    let served = Served::of(&run.cases);
    let calls_of = |pair| {
        let cases = run.cases.iter();
        let of_pair = cases.filter(|case| case.latency.as_ref().is_some_and(|latency| latency.pair == pair));
        of_pair.map(calls).sum::<u64>()
    };
    assert_eq!(served.calls, calls_of(0) + calls_of(1));
    assert!(calls_of(1) > 0 && calls_of(1) < calls_of(0));
}

#[test]
fn meeting_the_deadline() {
    assert_eq!(met(2, 5000), Some(0.9996));
    assert_eq!(met(0, 5000), Some(1.0));
    assert_eq!(met(5000, 5000), Some(0.0));
    assert_eq!(met(0, 0), None);
}
