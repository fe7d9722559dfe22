//! Times of a thread without calls, as steps.
//! Not here: which of its waits ended by time (`super::rhythm`).
//!
//! - The time in which it ran is `Work`.
//! - A wait for a CPU is nothing: the scheduler of the replay makes its own.
//! - A wait for anything else is `Sleep` from [`LEAST_SLEEP_NS`] on. A shorter one is `Work`: the timer of a sleep is not that short.
//! - Without events of the scheduler, a time up to [`LEAST_SLEEP_NS`] is `Work`, and a longer one `Sleep`.

use crate::description::Step;
use crate::recording::{Does, Slice};

/// Shortest wait that is a sleep, in ns: what Linux adds to a timer at most by default.
pub(super) const LEAST_SLEEP_NS: u64 = 50_000;
/// Work below this is left out, in ns: it is less than what a call itself costs.
const LEAST_WORK_NS: u64 = 500;
/// Longest time of a description, in ns: a day.
pub(super) const LONGEST_NS: u64 = 86_400_000_000_000;
/// Maximum number of steps of one pause; those of a longer one are one `Work` and one `Sleep`.
const MOST_STEPS: usize = 64;

/// Whether a slice is a wait of which a replay makes a sleep.
pub(super) fn is_sleep(slice: &Slice) -> bool {
    matches!(slice.does, Does::Sleeps { .. } | Does::Unknown) && slice.ns() >= LEAST_SLEEP_NS
}

/// Steps for slices of a thread's time.
pub(super) fn of(slices: &[Slice]) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut work, mut all_work, mut all_sleep) = (0_u64, 0_u64, 0_u64);
    for slice in slices {
        if is_sleep(slice) {
            flush(&mut steps, &mut work);
            all_sleep = slice.ns().saturating_add(all_sleep);
            match steps.last_mut() {
                Some(Step::Sleep(ns)) => *ns += slice.ns(),
                _ => steps.push(Step::Sleep(slice.ns())),
            }
        } else if slice.does != Does::Queues {
            work += slice.ns();
            all_work = slice.ns().saturating_add(all_work);
        }
    }
    flush(&mut steps, &mut work);
    if steps.len() > MOST_STEPS {
        steps = vec![Step::Work(all_work), Step::Sleep(all_sleep)];
    }
    for step in &mut steps {
        if let Step::Work(ns) | Step::Sleep(ns) = step {
            *ns = rounded(*ns);
        }
    }
    steps
}

fn flush(steps: &mut Vec<Step>, work: &mut u64) {
    if *work >= LEAST_WORK_NS {
        steps.push(Step::Work(*work));
    }
    *work = 0;
}

/// A time with three significant digits: more would be noise, and two descriptions are easier to compare. A description has no time
/// beyond a day.
pub(super) fn rounded(ns: u64) -> u64 {
    let (ns, mut unit) = (ns.min(LONGEST_NS), 1);
    while ns / unit >= 1000 {
        unit *= 10;
    }
    (ns + unit / 2) / unit * unit
}
