//! Room: what the doctor measures on this machine: in less than two seconds, without spinning.
//! Not here: judging it (`probes`), the benchmarks' own overhead (`crate::measure`).

use record::stats;
use sys::clock::monotonic_ns;

use super::facts::{Measured, Realtime, Wake};
use super::parse::total_and_stolen;
use crate::measure::overhead;
use crate::realtime::become_fifo;

/// Sleeps of the thread that is to be woken.
const SLEEPS: u64 = 200;
/// Each of them: longer than an idle state needs to be worth it.
const SLEEP_NS: u64 = 2_500_000;
/// When it is enough, however many sleeps there were.
const LONGEST_NS: u64 = 1_500_000_000;
/// A real-time thread of this process that does not sleep for so long is ended with it.
const RUNAWAY_US: u64 = 200_000;

/// Measures. Meanwhile the process has a limit on real-time CPU time.
#[must_use]
pub fn measure() -> Measured {
    let before = ticks();
    let thread = std::thread::Builder::new().spawn(sleeper).ok().and_then(|thread| thread.join().ok());
    let (wake, realtime) = thread.unwrap_or_default();
    let steal_share = before.zip(ticks()).and_then(|(before, after)| {
        let (passed, stolen) = (after.0.checked_sub(before.0)?, after.1.checked_sub(before.1)?);
        (passed > 0).then(|| stolen as f64 / passed as f64)
    });
    Measured { wake, realtime, steal_share, clock_pair_ns: overhead().read_cost }
}

fn ticks() -> Option<(u64, u64)> {
    total_and_stolen(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// A thread that tries to be real-time and then only sleeps.
fn sleeper() -> (Option<Wake>, Option<Realtime>) {
    // Without the limit no thread of this process becomes real-time. Only the soft one is changed, which may be
    // put back.
    let (soft, hard) = sys::rt_limit::realtime_us();
    let hard = hard.unwrap_or(u64::MAX);
    let limited = sys::rt_limit::limit_realtime_us(RUNAWAY_US.min(hard), hard).map_err(|error| {
        format!("no limit on real-time CPU time could be set: {}", sys::errno::describe(&error))
    });
    let refused = limited.err().or_else(|| become_fifo(1).err().map(|problem| problem.to_string()));
    // An ordinary thread's timers may be late by its slack; nothing is lost if it stays.
    let _ = sys::timer_slack::set_ns(1);
    let start = monotonic_ns();
    let mut late = Vec::with_capacity(SLEEPS as usize);
    while late.len() < SLEEPS as usize && monotonic_ns() - start < LONGEST_NS {
        let until = monotonic_ns() + SLEEP_NS;
        sys::clock_sleep::until(until);
        late.push(monotonic_ns().saturating_sub(until));
    }
    let wake = quantiles(&late, refused.is_none());
    // It may always be raised up to the hard one; the thread is real-time no longer than until here.
    let _ = sys::rt_limit::limit_realtime_us(soft.unwrap_or(hard), hard);
    (wake, Some(Realtime { refused }))
}

fn quantiles(late: &[u64], realtime: bool) -> Option<Wake> {
    let values: Vec<f64> = late.iter().map(|ns| *ns as f64).collect();
    let at = |percent| stats::percentile(&values, percent).map(|ns| ns as u64);
    Some(Wake {
        realtime,
        sleeps: late.len() as u64,
        p50_ns: at(50.0)?,
        p90_ns: at(90.0)?,
        p99_ns: at(99.0)?,
        max_ns: at(100.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured_and_the_limit_is_put_back() {
        let before = sys::rt_limit::realtime_us();
        let measured = measure();
        assert_eq!(sys::rt_limit::realtime_us(), before, "the limit is put back");
        let wake = measured.wake.expect("it slept");
        assert!(wake.sleeps > 0 && wake.p50_ns <= wake.p99_ns && wake.p99_ns <= wake.max_ns, "{wake:?}");
        assert!(measured.clock_pair_ns.is_some_and(|ns| ns > 0.0));
        assert_eq!(wake.realtime, measured.realtime.expect("it was tried").refused.is_none());
        assert!(measured.steal_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
