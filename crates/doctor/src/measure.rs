//! Measurements of the doctor: less than two seconds, without spinning.
//! Not here: judging them (`probes`), the benchmarks' own overhead (`bench::measure`).

use sys::clock::monotonic_ns;

use super::facts::{Measured, Realtime, Wake};
use host::clock_cost::overhead;
use host::parse::total_and_stolen;
use host::realtime::become_fifo;

/// Number of sleeps.
const SLEEPS: u64 = 200;
/// Duration of each: long enough for deep idle states.
const SLEEP_NS: u64 = 2_500_000;
/// Time limit for all sleeps.
const LONGEST_NS: u64 = 1_500_000_000;
/// Kernel limit for a real-time thread that does not sleep; exceeding it kills the process.
const RUNAWAY_US: u64 = 200_000;

/// Measures. Meanwhile the process has a limit on real-time CPU time.
#[must_use]
pub fn measure() -> Measured {
    let before = ticks();
    let thread = sys::title::thread("wake-up probe", sleeper).ok().and_then(|thread| thread.join().ok());
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

/// Sleeps, as a real-time thread if possible.
fn sleeper() -> (Option<Wake>, Option<Realtime>) {
    // Required before any thread becomes real-time. Only the soft limit is changed, so it can be restored.
    let (soft, hard) = sys::limits::realtime_us();
    let hard = hard.unwrap_or(u64::MAX);
    let limited = sys::limits::set_realtime_us(RUNAWAY_US.min(hard), hard).map_err(|error| {
        format!("no limit on real-time CPU time could be set: {}", sys::errno::describe(&error))
    });
    let refused = limited.err().or_else(|| become_fifo(1).err().map(|problem| problem.to_string()));
    // The timers of ordinary threads are late by this slack; a failure does no harm.
    let _ = sys::clock::set_timer_slack_ns(1);
    let start = monotonic_ns();
    let mut late = Vec::with_capacity(SLEEPS as usize);
    while late.len() < SLEEPS as usize && monotonic_ns() - start < LONGEST_NS {
        let until = monotonic_ns() + SLEEP_NS;
        sys::clock::sleep_until(until);
        late.push(monotonic_ns().saturating_sub(until));
    }
    let wake = quantiles(&late, refused.is_none());
    // The soft limit may be raised to the hard one; the thread ends here.
    let _ = sys::limits::set_realtime_us(soft.unwrap_or(hard), hard);
    (wake, Some(Realtime { refused }))
}

fn quantiles(late: &[u64], realtime: bool) -> Option<Wake> {
    let mut late = late.to_vec();
    late.sort_unstable();
    let at = |percent| units::percentile(&late, percent);
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
        let before = sys::limits::realtime_us();
        let measured = measure();
        assert_eq!(sys::limits::realtime_us(), before, "the limit is put back");
        let wake = measured.wake.expect("it slept");
        assert!(wake.sleeps > 0 && wake.p50_ns <= wake.p99_ns && wake.p99_ns <= wake.max_ns, "{wake:?}");
        assert!(measured.clock_pair_ns.is_some_and(|ns| ns > 0.0));
        assert_eq!(wake.realtime, measured.realtime.expect("it was tried").refused.is_none());
        assert!(measured.steal_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
