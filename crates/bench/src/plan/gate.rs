//! Gate on the ratio of the test's cost to a control's, and its verdict on a run.
//! Not here: the ratio in a printed row (`record::render`).

use std::fmt;
use std::str::FromStr;

use record::{CaseKind, Run};

use super::Family;

/// A limit on the ratio; typed `x_raw=1.10`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// The control to compare with.
    pub control: Family,
    /// The highest permitted ratio.
    pub limit: f64,
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, limit) =
            text.split_once('=').ok_or("a limit is typed x_CONTROL=RATIO, as in x_raw=1.10")?;
        let control = name.strip_prefix("x_").and_then(Family::control).ok_or_else(|| {
            format!("{name:?} is no ratio to a control; there are x_pipe, x_unix, x_futex, x_spin and x_raw")
        })?;
        match limit.parse::<f64>() {
            Ok(limit) if limit.is_finite() && limit > 0.0 => Ok(Self { control, limit }),
            _ => Err(format!("{limit:?} is no ratio")),
        }
    }
}

/// A limit applied to one case of the test.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The case.
    pub case: String,
    /// The limit.
    pub gate: Gate,
    /// Its median cost over the control's; `None` if one of the two was not measured.
    pub ratio: Option<f64>,
}

impl Verdict {
    /// Returns true if the limit was kept. A missing measurement counts as a violation.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio <= self.gate.limit)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, gate: Gate { control, limit }, ratio } = self;
        let name = control.word();
        match ratio {
            Some(ratio) => {
                let word = if self.is_kept() { "ok" } else { "EXCEEDED" };
                write!(f, "{case}: x_{name} is {ratio:.3}, limit {limit:.3}: {word}")
            }
            None => write!(f, "{case}: x_{name} could not be measured, limit {limit:.3}: NOT KEPT"),
        }
    }
}

impl Gate {
    /// Applies the limit to every test case of a run.
    #[must_use]
    pub fn judge(self, run: &Run) -> Vec<Verdict> {
        let control = |payload| run.case(&self.control.case_name(payload))?.median_real();
        let tests = run.cases.iter().filter(|case| case.kind == CaseKind::Test);
        tests
            .map(|case| Verdict {
                case: case.name.clone(),
                gate: self,
                ratio: case
                    .median_real()
                    .zip(control(case.payload_bytes))
                    .map(|(test, control)| test / control),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Clock, ClockUnit, Distribution, HostClass, Measurement, Outcome, Repetition};

    fn run(costs: &[(Family, u64, Option<u64>)]) -> Run {
        let clock = Clock { name: String::new(), unit: ClockUnit::Ns, read_cost: None, resolution: None };
        let host = host::facts(HostClass::Bare);
        let mut run = Run::new(host::tool(), String::new(), record::Plan::default(), host, clock);
        for &(family, payload, cost) in costs {
            let mut case = family.case(payload, 0, 0);
            let outcome = match cost {
                Some(cost) => Outcome::Measured(Measurement {
                    iterations: 1,
                    real_total: cost,
                    samples: Distribution::of([cost]),
                    ..Measurement::default()
                }),
                None => Outcome::Failed { reason: "died".to_owned(), partial: None },
            };
            case.repetitions.push(Repetition { index: 0, outcome });
            run.cases.push(case);
        }
        run
    }

    #[test]
    fn limits_are_read() {
        let gate: Gate = "x_raw=1.10".parse().expect("valid");
        assert_eq!(gate, Gate { control: Family::Raw, limit: 1.1 });
        for bad in ["raw=1", "x_raw", "x_raw=", "x_raw=-1", "x_raw=nan", "x_binder=1", "p99=3"] {
            assert!(bad.parse::<Gate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_is_judged_case_by_case() {
        let run = run(&[
            (Family::Raw, 4, Some(100)),
            (Family::Raw, 8, Some(100)),
            (Family::Raw, 16, None),
            (Family::Binder, 4, Some(110)),
            (Family::Binder, 8, Some(111)),
            (Family::Binder, 16, Some(100)),
            (Family::Binder, 32, Some(100)),
        ]);
        let verdicts = Gate { control: Family::Raw, limit: 1.1 }.judge(&run);
        let kept: Vec<bool> = verdicts.iter().map(Verdict::is_kept).collect();
        assert_eq!(kept, [true, false, false, false], "what was not measured did not keep it");
        assert!(verdicts[1].to_string().contains("EXCEEDED"), "{}", verdicts[1]);
        assert!(verdicts[3].to_string().contains("could not be measured"), "{}", verdicts[3]);
    }
}
