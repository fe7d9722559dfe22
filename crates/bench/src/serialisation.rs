//! Serialisation cost of a `sendVec` call alone: no driver, no other process.
//! Not here: the whole round trip (`measure`), printing, the steps of a call and their instructions (the crate `steps`).

use std::fmt;
use std::hint::black_box;

use record::stats;
use steps::{Steps, binder, checked, hwbinder, lap};
use sys::clock::monotonic_ns;

pub use steps::Flavour;

use crate::spread::Spread;

/// Limit for both directions of a 4 B call, in ns.
pub const LIMIT_NS: f64 = 150.0;
/// Payload of the limit, in bytes.
pub const LIMIT_PAYLOAD: usize = 4;
/// Largest payload in bytes: a driver's buffer takes no more.
pub const LARGEST_PAYLOAD: usize = 1 << 20;

/// Serialisation cost of a flavour at a payload.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Wire format.
    pub flavour: Flavour,
    /// Bytes of the vector.
    pub payload: usize,
    /// ns per call, both directions.
    pub ns: Spread,
    /// ns per clock reading, measured alternately with it.
    pub clock_ns: f64,
}

impl Cost {
    /// Returns true if the limit is kept; `None` where it does not apply.
    #[must_use]
    pub fn is_kept(&self) -> Option<bool> {
        (self.payload == LIMIT_PAYLOAD).then_some(self.ns.median < LIMIT_NS)
    }
}

/// Header line of the table.
pub const HEAD: &str = "flavour    payload     median ns      least       most   x clock reading   limit\n";

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flavour, payload, ns, clock_ns } = self;
        let ratio = ns.median / clock_ns;
        write!(f, "{flavour:<10} {payload:>7} {:>13.1} {:>10.1} {:>10.1}", ns.median, ns.least, ns.most)?;
        write!(f, " {ratio:>17.2}   ")?;
        match self.is_kept() {
            Some(true) => write!(f, "<{LIMIT_NS:.0}: met"),
            Some(false) => write!(f, "<{LIMIT_NS:.0}: MISSED"),
            None => f.write_str("none"),
        }
    }
}

/// Duration of a lap, in ns; short, so that an interrupt spoils only one of many laps.
const LAP_NS: u64 = 2_000_000;

/// Measures a flavour in `rounds` rounds, at least one, together with the clock's own cost.
///
/// # Errors
/// The returned vector differs from the sent one.
pub fn measure(flavour: Flavour, payload: usize, rounds: usize) -> Result<Cost, String> {
    match flavour {
        Flavour::Binder => measure_steps(binder::Call::new(payload), flavour, payload, rounds),
        Flavour::Hwbinder => measure_steps(hwbinder::Call::new(payload), flavour, payload, rounds),
    }
}

fn measure_steps(
    mut steps: impl Steps,
    flavour: Flavour,
    payload: usize,
    rounds: usize,
) -> Result<Cost, String> {
    let calls = calls_per_lap(&mut steps);
    checked(&steps, flavour)?;
    let (mut costs, mut clocks) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for _ in 0..rounds.max(1) {
        costs.push(timed(calls, || lap(&mut steps, calls)));
        clocks.push(timed(CLOCK_READINGS, || {
            for _ in 0..CLOCK_READINGS {
                black_box(monotonic_ns());
            }
        }));
    }
    checked(&steps, flavour)?;
    let ns = Spread::of(&costs).expect("there was a round");
    let clock_ns = stats::median(&clocks).expect("there was a round");
    Ok(Cost { flavour, payload, ns, clock_ns })
}

const CLOCK_READINGS: u64 = 10_000;

/// Returns the time of `job` divided by `count`, in ns.
fn timed(count: u64, job: impl FnOnce()) -> f64 {
    let start = monotonic_ns();
    job();
    (monotonic_ns() - start) as f64 / count as f64
}

/// Returns the number of calls that fill a lap; also warms up.
fn calls_per_lap(steps: &mut impl Steps) -> u64 {
    let mut calls = 1_u64;
    loop {
        let start = monotonic_ns();
        lap(steps, calls);
        let took = monotonic_ns() - start;
        if took * 2 >= LAP_NS || calls >= 1 << 30 {
            return (calls * LAP_NS / took.max(1)).max(1);
        }
        calls *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Forgetful;

    impl Steps for Forgetful {
        fn call(&mut self) {}

        fn came_back(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_vector_that_does_not_come_back_is_no_measurement() {
        let error = measure_steps(Forgetful, Flavour::Binder, 4, 1).expect_err("nothing came back");
        assert!(error.contains("did not come back"), "{error}");
    }

    #[test]
    fn a_cost_says_what_it_is_held_to() {
        let cost = |payload, ns: f64| Cost {
            flavour: Flavour::Binder,
            payload,
            ns: Spread::of(&[ns]).expect("a value"),
            clock_ns: 20.0,
        };
        assert_eq!(cost(4, 149.9).is_kept(), Some(true));
        assert_eq!(cost(4, 150.0).is_kept(), Some(false));
        assert_eq!(cost(64, 1000.0).is_kept(), None);
        let row = cost(4, 200.0).to_string();
        assert!(row.ends_with("10.00   <150: MISSED"), "{row}");
        assert!(cost(64, 200.0).to_string().ends_with("none"));
    }

    #[test]
    fn measuring_yields_what_was_asked_for() {
        let cost = measure(Flavour::Binder, 4, 3).expect("measured");
        assert_eq!((cost.ns.rounds, cost.payload), (3, 4));
        assert!(cost.ns.least > 0.0 && cost.clock_ns > 0.0);
    }
}
