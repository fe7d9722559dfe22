//! Conditions of a watch: a figure, a comparison, a limit, as `p99>5ms`.
//! Not here: the source of the figures (`look`), what happens when one is met.

use std::fmt;
use std::str::FromStr;

use explain::{Load, OldCall};

use crate::look::{Look, named};

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Time,
    Share,
    Count,
    /// A count that can be compared with the size of the pool.
    Threads,
}

/// A figure of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    P50,
    P99,
    Longest,
    Oldest,
    Rate,
    Failed,
    Dead,
    Buffers,
    Backlog,
    Threads,
    Reports,
}

/// Name and unit of each figure.
const FIGURES: [(&str, Figure, Unit); 11] = [
    ("p50", Figure::P50, Unit::Time),
    ("p99", Figure::P99, Unit::Time),
    ("longest", Figure::Longest, Unit::Time),
    ("oldest", Figure::Oldest, Unit::Time),
    ("calls", Figure::Rate, Unit::Count),
    ("failed", Figure::Failed, Unit::Count),
    ("reports", Figure::Reports, Unit::Count),
    ("dead", Figure::Dead, Unit::Count),
    ("buffers", Figure::Buffers, Unit::Share),
    ("backlog", Figure::Backlog, Unit::Count),
    ("threads", Figure::Threads, Unit::Threads),
];

/// Comparisons, the longer ones first.
const COMPARISONS: [&str; 4] = [">=", "<=", ">", "<"];

/// Units of time in ns.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The limit of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Nanoseconds, parts of 1, or a count.
    Number(f64),
    /// The size of the process's pool.
    Pool,
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    name: &'static str,
    figure: Figure,
    unit: Unit,
    comparison: &'static str,
    limit: Limit,
}

/// A figure that meets a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// Key of the process, or of the call, whose figure it is; empty for one of all together.
    pub subject: String,
    /// The figure in words.
    pub said: String,
}

/// Why a text is no condition; the text says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhenError(String);

impl fmt::Display for WhenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WhenError {}

impl FromStr for Condition {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<Self, WhenError> {
        let wrong = |why: String| WhenError(why);
        let found = COMPARISONS.iter().filter_map(|sign| Some((text.find(sign)?, *sign)));
        let (at, comparison) = found.min_by_key(|(at, sign)| (*at, 2 - sign.len())).ok_or_else(|| {
            wrong(
                "it has no comparison: write a figure, one of > >= < <=, and a limit, as in p99>5ms"
                    .to_owned(),
            )
        })?;
        let (left, right) = (text[..at].trim(), text[at + comparison.len()..].trim());
        let figure = FIGURES.iter().find(|(name, ..)| *name == left);
        let (name, figure, unit) = figure.copied().ok_or_else(|| {
            let known: Vec<&str> = FIGURES.iter().map(|(name, ..)| *name).collect();
            wrong(format!("there is no figure {left:?}; there are {}", known.join(", ")))
        })?;
        let limit = limit(unit, right).ok_or_else(|| {
            wrong(match unit {
                Unit::Time => format!("{name} is a time: {right:?} is none such as 500us, 5ms or 2s"),
                Unit::Share => format!("{name} is a share: {right:?} is none such as 80%"),
                Unit::Count => format!("{name} is a count: {right:?} is no whole number"),
                Unit::Threads => format!("{name} is a count: {right:?} is neither a whole number nor `pool`"),
            })
        })?;
        Ok(Self { text: text.split_whitespace().collect(), name, figure, unit, comparison, limit })
    }
}

fn limit(unit: Unit, text: &str) -> Option<Limit> {
    let decimal = |digits: &str| {
        let is_plain = digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.contains(['e', 'E']);
        digits.parse::<f64>().ok().filter(|number| is_plain && number.is_finite())
    };
    let number = match unit {
        Unit::Threads if text == "pool" => return Some(Limit::Pool),
        Unit::Threads | Unit::Count => f64::from(text.parse::<u32>().ok()?),
        Unit::Share => decimal(text.strip_suffix('%')?.trim_end()).filter(|share| *share <= 100.0)? / 100.0,
        Unit::Time => {
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let (_, ns) = TIMES.iter().find(|(name, _)| *name == &text[digits.len()..])?;
            decimal(digits.trim_end())? * ns
        }
    };
    Some(Limit::Number(number))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// The figure's name: letters and digits.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if its figure comes from the trace alone.
    #[must_use]
    pub fn needs_trace(&self) -> bool {
        matches!(self.figure, Figure::P50 | Figure::P99 | Figure::Longest | Figure::Rate)
    }

    /// True if its figure comes from the driver's reports over netlink alone.
    #[must_use]
    pub fn needs_reports(&self) -> bool {
        self.figure == Figure::Reports
    }

    /// Figures of a look that meet it; none also if the figure is not known.
    #[must_use]
    pub fn met(&self, look: &Look) -> Vec<Met> {
        let of_each = || look.loads.iter().enumerate().flat_map(|(at, load)| self.of_process(look, at, load));
        match self.figure {
            Figure::Dead => {
                let count = look.dead.len();
                if count == 0 {
                    return self.of_all(look).into_iter().collect();
                }
                let dead = look.dead.iter().filter(|_| self.holds(count as f64, None));
                dead.map(|load| Met {
                    subject: subject(load),
                    said: format!("dead is {count}: {}", named(load)),
                })
                .collect()
            }
            // The trace shows the same failures, of all processes together, and those of processes that ended meanwhile.
            Figure::Failed => Some(of_each().collect::<Vec<_>>())
                .filter(|met| !met.is_empty())
                .unwrap_or_else(|| self.of_all(look).into_iter().collect()),
            Figure::Oldest | Figure::Buffers | Figure::Backlog | Figure::Threads => of_each().collect(),
            _ => self.of_all(look).into_iter().collect(),
        }
    }

    /// Figures of one process, or of its calls, that meet it.
    fn of_process(&self, look: &Look, at: usize, load: &Load) -> Vec<Met> {
        let met = |value: f64, subject: &dyn Fn() -> String, of: &dyn Fn() -> String| {
            self.holds(value, Some(load)).then(|| {
                let said = format!("{} of {} is {}", self.name, of(), self.written(value));
                Met { subject: subject(), said }
            })
        };
        if self.figure != Figure::Oldest {
            let value = self.of_one(look, at, load);
            return value
                .and_then(|value| met(value, &|| subject(load), &|| named(load)))
                .into_iter()
                .collect();
        }
        let of_call = |call: &OldCall| {
            let of =
                || format!("{} in call {} (code {}) to process {}", named(load), call.id, call.code, call.to);
            met(call.age_ms as f64 * 1e6, &|| format!("{} {}", subject(load), call.id), &of)
        };
        load.waiting.iter().filter_map(of_call).collect()
    }

    /// The figure of all processes together, if it meets the condition; a rate needs a look before.
    fn of_all(&self, look: &Look) -> Option<Met> {
        let value = self.value_of_all(look).filter(|value| self.holds(*value, None))?;
        Some(Met { subject: String::new(), said: format!("{} is {}", self.name, self.written(value)) })
    }

    fn value_of_all(&self, look: &Look) -> Option<f64> {
        let ended = look.ended.as_ref();
        let mut ns = ended.filter(|_| self.needs_trace()).map(|ended| ended.ns.clone()).unwrap_or_default();
        ns.sort_unstable();
        let at = |percent| units::percentile(&ns, percent).map(|ns| ns as f64);
        match self.figure {
            Figure::P50 => at(50.0),
            Figure::P99 => at(99.0),
            Figure::Longest => at(100.0),
            Figure::Rate => {
                let seconds = Some(look.span.as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
                ended.map(|ended| ended.answered as f64 / seconds)
            }
            Figure::Dead => Some(look.dead.len() as f64),
            Figure::Reports => look.reports.map(|reports| reports as f64),
            Figure::Failed => ended.map(|ended| ended.failed as f64),
            _ => None,
        }
    }

    /// The figure of one process.
    fn of_one(&self, look: &Look, at: usize, load: &Load) -> Option<f64> {
        match self.figure {
            Figure::Failed => look.failed.get(at).copied().flatten().map(|failed| failed as f64),
            Figure::Buffers => {
                load.area_bytes.filter(|area| *area > 0).map(|area| load.buffer_bytes as f64 / area as f64)
            }
            Figure::Backlog => Some(load.backlog as f64),
            Figure::Threads => load.pool.map(|_| load.busy as f64),
            _ => None,
        }
    }

    fn holds(&self, value: f64, load: Option<&Load>) -> bool {
        let limit = match self.limit {
            Limit::Number(number) => number,
            Limit::Pool => load.and_then(|load| load.pool).map_or(f64::NAN, |pool| pool as f64),
        };
        match self.comparison {
            ">" => value > limit,
            ">=" => value >= limit,
            "<" => value < limit,
            _ => value <= limit,
        }
    }

    fn written(&self, value: f64) -> String {
        match self.unit {
            Unit::Time => units::duration(value),
            Unit::Share => format!("{:.0} %", value * 100.0),
            Unit::Count | Unit::Threads => format!("{value:.0}"),
        }
    }
}

/// Key of a process.
fn subject(load: &Load) -> String {
    format!("{} {}", load.pid, load.context)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::look::Ended;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn first(text: &str, look: &Look) -> Option<String> {
        condition(text).met(look).into_iter().map(|met| met.said).next()
    }

    fn look() -> Look {
        let waiting =
            [(1, 2500), (4, 900)].map(|(id, age_ms)| OldCall { id, code: 2, to: 3, age_ms }).to_vec();
        let client = Load { pid: 5, name: "client".to_owned(), waiting, failed: Some(3), ..Load::default() };
        let (buffer_bytes, area_bytes) = (900, Some(1000));
        let server = Load {
            pid: 6,
            buffer_bytes,
            area_bytes,
            backlog: 101,
            busy: 4,
            pool: Some(4),
            ..Load::default()
        };
        let ended =
            Ended { ns: (1..=200).map(|ms| ms * 1_000_000).rev().collect(), answered: 200, failed: 0 };
        let first =
            Look::after(None, Some(vec![Load { failed: Some(1), ..client.clone() }]), None, Duration::ZERO);
        let dead = [8, 9].map(|pid| Load { pid, ..Load::default() }).to_vec();
        let after =
            Look::after(Some(&first), Some(vec![client, server]), Some(ended), Duration::from_secs(2));
        Look { dead, reports: Some(3), ..after }
    }

    #[test]
    fn a_condition_is_met_by_a_figure_over_its_limit() {
        let look = look();
        for (text, said) in [
            ("p50>99.9ms", Some("p50 is 100 ms")),
            ("p99 >= 198ms", Some("p99 is 198 ms")),
            ("p99>198ms", None),
            ("longest>0.15s", Some("longest is 200 ms")),
            ("oldest>2s", Some("oldest of client (5) in call 1 (code 2) to process 3 is 2.50 s")),
            ("oldest>2500000us", None),
            ("calls<=100", Some("calls is 100")),
            ("calls<100", None),
            ("failed>1", Some("failed of client (5) is 2")),
            ("failed>2", None),
            ("dead>1", Some("dead is 2: process 8")),
            ("dead>2", None),
            ("reports>2", Some("reports is 3")),
            ("reports>3", None),
            ("buffers>=90%", Some("buffers of process 6 is 90 %")),
            ("buffers>90 %", None),
            ("backlog>100", Some("backlog of process 6 is 101")),
            ("threads>=pool", Some("threads of process 6 is 4")),
            ("threads>pool", None),
            ("threads>3", Some("threads of process 6 is 4")),
        ] {
            assert_eq!(first(text, &look).as_deref(), said, "{text}");
        }
        let subjects =
            |text| condition(text).met(&look).into_iter().map(|met| met.subject).collect::<Vec<_>>();
        assert_eq!(subjects("oldest>500ms"), ["5  1", "5  4"], "each call");
        assert_eq!(subjects("buffers>1%"), ["6 "]);
        assert_eq!(subjects("failed>1"), ["5 "]);
        assert_eq!(subjects("p99>1ms"), [""], "of all processes together");
        assert_eq!(subjects("dead>1"), ["8 ", "9 "], "each that ended");
        assert_eq!(condition(" p99 > 5 ms ").to_string(), "p99>5ms");
    }

    #[test]
    fn what_nothing_tells_meets_no_condition() {
        let nothing = Look { loads: vec![Load { pid: 1, ..Load::default() }], ..Look::default() };
        for text in [
            "p99<5ms",
            "calls<1",
            "oldest<1s",
            "failed<=0",
            "reports<1",
            "dead>0",
            "buffers<1%",
            "threads<pool",
            "threads<9",
        ] {
            assert_eq!(condition(text).met(&nothing), [], "{text}");
        }
    }

    #[test]
    fn nobody_dead_is_a_figure_too() {
        assert_eq!(first("dead<=0", &Look::default()).as_deref(), Some("dead is 0"));
    }

    #[test]
    fn a_failed_call_that_only_the_trace_shows_counts() {
        let ended = Some(Ended { failed: 2, ..Ended::default() });
        let look = Look { ended, ..Look::default() };
        assert_eq!(first("failed>0", &look).as_deref(), Some("failed is 2"));
    }

    #[test]
    fn the_first_look_has_no_rate() {
        let begin = Look { ended: Some(Ended::default()), ..Look::default() };
        assert_eq!(condition("calls<1").met(&begin), []);
        let next = Look { span: Duration::from_secs(1), ..begin };
        assert_eq!(first("calls<1", &next).as_deref(), Some("calls is 0"));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (text, why) in [
            ("p98>5ms", "there is no figure \"p98\"; there are p50, p99"),
            ("p99", "no comparison"),
            ("", "no comparison"),
            (">5", "there is no figure \"\""),
            ("p99>5", "\"5\" is none such as 500us, 5ms"),
            ("p99=>5ms", "there is no figure \"p99=\""),
            ("p99>5 parsecs", "is none such as"),
            ("p99>-5ms", "is none such as"),
            ("p99>infs", "is none such as"),
            ("buffers>80", "\"80\" is none such as 80%"),
            ("buffers>180%", "is none such as 80%"),
            ("backlog>many", "\"many\" is no whole number"),
            ("backlog>pool", "\"pool\" is no whole number"),
            ("failed>1.5", "is no whole number"),
            ("threads>=all", "neither a whole number nor `pool`"),
        ] {
            let said = text.parse::<Condition>().expect_err(text).to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(?s).{0,40}", limit in "[0-9a-z%. ]{0,12}") {
            let _ = text.parse::<Condition>();
            let _ = format!("p99>{limit}").parse::<Condition>();
            let _ = format!("buffers<={limit}").parse::<Condition>();
        }
    }
}
