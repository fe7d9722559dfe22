//! Random event streams: segments always cover the call, and memory stays bounded.

use super::*;
use fastrand::Rng;

fn random_line(rng: &mut Rng, ts: u64) -> String {
    let (cpu, tid) = (rng.u64(..3), rng.u64(..7));
    let (other, id, proc) = (rng.u64(..7), rng.u64(..12), rng.u64(..4));
    let letter = ["S", "R", "D", "T", "X", "?"][rng.usize(..6)];
    let what = match rng.u64(..30) {
        0..=4 => format!("switch {letter} {other}"),
        5 | 6 => format!("waking {other} {proc}"),
        7 | 8 => format!("wakeup {other} {proc}"),
        9 => format!("migrate {other} 0 {proc}"),
        10..=12 => format!("send {id} {proc}"),
        13 => format!("back {id} {proc} {other}"),
        14 => format!("oneway {id} {proc}"),
        15..=17 => format!("reply {id} {proc} {other}"),
        18..=21 => format!("recv {id}"),
        22 => ["wait", "ioctl", "done", "alloc 1", "lost"][rng.usize(..5)].to_owned(),
        23 => format!("return {}", ["7211", "7205", "7212", "7214", "1"][rng.usize(..5)]),
        24 => format!("boost {other} {}", rng.u64(..140)),
        25 => format!("idle {cpu} {}", rng.i64(-1..2)),
        26 => format!("{} 3", ["irq+", "irq-", "soft+", "soft-"][rng.usize(..4)]),
        27 => ["reclaim+", "reclaim-"][rng.usize(..2)].to_owned(),
        28 => format!("blocked {other} futex_wait"),
        _ => format!("khz {cpu} {}", rng.u64(..9)),
    };
    format!("{ts} {cpu} {tid} {what}")
}

#[test]
fn the_parts_are_the_whole_whatever_the_stream() {
    let mut calls = 0;
    for seed in 1..400_u64 {
        let mut rng = Rng::with_seed(seed);
        let mut script = Script::new(&[(1, 0), (2, 50), (3, 100)]);
        let mut model = Model::new();
        let mut ts = 1000_u64;
        let mut check = |call: Transaction| {
            whole(&call);
            calls += 1;
        };
        for _ in 0..500 {
            // Sometimes a clock goes backwards.
            ts = if rng.u64(..50) == 0 { ts - rng.u64(..100).min(ts) } else { ts + rng.u64(..20) };
            let event = script.event(&random_line(&mut rng, ts));
            model.take(&event, &script.names, &mut check);
        }
        model.finish(&script.names, &mut check);
    }
    assert!(calls > 10_000, "only {calls} transactions came of it");
}

#[test]
fn a_call_that_stays_open_does_not_keep_everything() {
    let mut script = Script::new(&[]);
    let mut model = Model::new();
    let mut found = Vec::new();
    let open = script.event("1 0 10 send 1 20");
    model.take(&open, &script.names, &mut |call| found.push(call));
    let mut away = script.event("2 1 30 switch R 31");
    let mut back = script.event("2 1 31 switch R 30");
    for ts in (64..40_000_000_u64).step_by(8) {
        for event in [&mut away, &mut back] {
            event.ts = ts;
            model.take(event, &script.names, &mut |call| found.push(call));
        }
    }
    let (steps, _) = model.history.size();
    assert!(steps <= (1 << 22) + 1000, "{steps} steps are kept");
    model.finish(&script.names, &mut |call| found.push(call));
    assert_eq!((found.len(), found[0].begin), (1, 1));
    whole(&found[0]);
}

#[test]
fn a_model_of_calls_alone_has_the_same_calls_without_segments() {
    for seed in 1..100_u64 {
        let mut rng = Rng::with_seed(seed);
        let mut script = Script::new(&[]);
        let (mut whole, mut calls) = (Model::bounded(1 << 18), Model::of_calls(1 << 18));
        let (mut of_whole, mut of_calls) = (Vec::new(), Vec::new());
        for ts in 0..500 {
            let event = script.event(&random_line(&mut rng, 1000 + 10 * ts));
            whole.take(&event, &script.names, &mut |call| of_whole.push(call));
            calls.take(&event, &script.names, &mut |call| of_calls.push(call));
        }
        let bare = |call: Transaction| Transaction {
            parts: vec![],
            links: vec![],
            slow_clock: None,
            failure: None,
            ..call
        };
        assert_eq!(of_calls, of_whole.into_iter().map(bare).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn threads_that_come_and_go_for_ever_are_forgotten() {
    let mut script = Script::new(&[]);
    let mut model = Model::bounded(1 << 18);
    let mut calls = Vec::new();
    let mut take = |model: &mut Model, line: String| {
        let event = script.event(&line);
        model.take(&event, &script.names, &mut |call| calls.push(call));
    };
    take(&mut model, "1 0 10 send 1 20".to_owned());
    take(&mut model, "2 1 20 recv 1".to_owned());
    for tid in 100..60_000 {
        let ts = 10 * tid;
        for line in [
            format!("{ts} 0 {tid} send {tid} 30"),
            format!("{} 1 30 recv {tid}", ts + 1),
            format!("{} 1 30 reply {} 0 {tid}", ts + 2, -tid),
            format!("{} 0 {tid} recv {}", ts + 3, -tid),
            format!("{} 0 {tid} switch S {}", ts + 4, tid + 1),
        ] {
            take(&mut model, line);
        }
    }
    let (steps, threads) = model.history.size();
    assert!(threads <= 20_000 && steps <= 100_000, "{threads} threads with {steps} steps");
    take(&mut model, "900000 1 20 reply 2 0 10".to_owned());
    take(&mut model, "900001 0 10 recv 2".to_owned());
    let first = calls.iter().find(|call| call.debug_id == 1).expect("it has ended");
    assert_eq!((first.outcome, first.ns()), (Outcome::Replied, 900_000));
    assert!(calls.iter().all(Transaction::is_sound), "{}", calls.len());
}
