//! Time limits that know how busy the machine is: a limit is a time of an idle machine, and runs out later where more
//! threads want the CPUs than there are CPUs. Without load it is an ordinary time limit, and nothing is read before that
//! has passed.
//! Not here: limits that a user names in seconds of wall time (`--time-limit`), waits that only expect nothing to happen.
//! Facts: `/proc/loadavg` in `proc(5)`: the first field is the average number of threads that ran or wanted to over the
//! last minute, the fourth begins with those of this moment.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The most that a limit is stretched: a hang is found, however busy the machine is.
const MOST: f64 = 16.0;
/// Pause between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(2);

/// Returns true if `limit`, counted from `since`, has passed on this machine as busy as it is now.
#[must_use]
pub fn is_over(since: Instant, limit: Duration) -> bool {
    let elapsed = since.elapsed();
    elapsed >= limit && elapsed >= stretched(limit)
}

/// The wall time that a limit takes on this machine as busy as it is now: for waits that take a time.
#[must_use]
pub fn stretched(limit: Duration) -> Duration {
    limit.mul_f64(demand())
}

/// Waits until something is so, looking every other ms; false if `limit` has passed before.
#[must_use]
pub fn until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !is_so() {
        if is_over(since, limit) {
            return is_so();
        }
        std::thread::sleep(PAUSE);
    }
    true
}

/// Waits for a message.
///
/// # Errors
/// No sender is left, or `limit` has passed.
pub fn receive<T>(from: &Receiver<T>, limit: Duration) -> Result<T, RecvTimeoutError> {
    let since = Instant::now();
    loop {
        match from.recv_timeout(limit.saturating_sub(since.elapsed()).max(PAUSE)) {
            Err(RecvTimeoutError::Timeout) if !is_over(since, limit) => {}
            result => return result,
        }
    }
}

/// Variable with the [`demand`] of the machine that emulates this one, which is not seen from inside.
pub const HOST_VARIABLE: &str = "BINDERPERF_HOST_DEMAND";

/// Threads that want a CPU, per CPU; from 1 to 16.
#[must_use]
pub fn demand() -> f64 {
    // A machine that does not tell counts as idle.
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let host = std::env::var(HOST_VARIABLE).ok().and_then(|value| value.parse().ok()).unwrap_or(1.0);
    (host * (wanting(&text) / f64::from(crate::sched::online_cpus())).max(1.0)).clamp(1.0, MOST)
}

/// Threads that want a CPU, over the last minute or at this moment, whichever is more.
fn wanting(loadavg: &str) -> f64 {
    let mut fields = loadavg.split_whitespace();
    let average = fields.next().and_then(|field| field.parse().ok()).unwrap_or(0.0);
    let now = fields.nth(2).and_then(|field| field.split('/').next()?.parse().ok()).unwrap_or(0.0);
    f64::max(average, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busier_of_now_and_the_last_minute_counts() {
        assert_eq!(wanting("0.20 0.18 0.12 17/80 11206\n"), 17.0);
        assert_eq!(wanting("12.50 0.18 0.12 1/80 11206\n"), 12.5);
        assert_eq!((wanting(""), wanting("nonsense"), wanting("1.5 0.2")), (0.0, 0.0, 1.5));
        assert!((1.0..=MOST).contains(&demand()));
    }

    #[test]
    fn a_limit_is_never_shorter_than_its_time_and_ends() {
        let (limit, since) = (Duration::from_millis(20), Instant::now());
        assert!(!is_over(since, Duration::from_secs(3600)) && stretched(limit) >= limit);
        assert!(!until(limit, || false) && since.elapsed() >= limit);
        assert!(until(Duration::ZERO, || true));
        let (sender, receiver) = std::sync::mpsc::channel();
        assert_eq!(receive::<()>(&receiver, limit), Err(RecvTimeoutError::Timeout));
        sender.send(()).expect("it listens");
        assert_eq!(receive(&receiver, limit), Ok(()));
    }

    #[test]
    fn a_limit_runs_out_later_while_more_threads_than_cpus_want_to_run() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let cpus = crate::sched::online_cpus();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..6 * cpus {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let limit = Duration::from_secs(1);
            // As many run as were started, once all of them are there.
            let came = until(Duration::from_secs(20), || stretched(limit) > 3 * limit);
            over.store(true, Ordering::Relaxed);
            assert!(came, "{:?}", stretched(limit));
        });
    }
}
