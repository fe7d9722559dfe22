//! The figures of a latency test, each declared once: tables, reports, JSON, converted formats and the checks of a
//! record take them from [`FIGURES`].
//!
//! A new count of calls touches three files: its field in `schema::Latency`, its row here, and the counting itself in
//! `bench::latency::tally`.
//! Not here: the keys of Android's JSON, whose names and order are Android's (`render::latency::json`).

use crate::Distribution;
use crate::schema::{Case, ClockUnit, Latency, Percentiles};
use crate::verdict::{Served, calls, met, numbers};

/// One figure of the calls of a class.
pub(crate) struct Figure {
    /// Its name in converted formats and in messages.
    pub(crate) name: &'static str,
    /// Its column in tables and reports; `None` if it has none.
    pub(crate) head: Option<&'static str>,
    /// The meaning of its column, for pages; `None` where the head says it.
    pub(crate) means: Option<&'static str>,
    /// The key in our JSON of an object with a number for each class; `None` if Android's keys hold it, or nothing.
    pub(crate) json: Option<&'static str>,
    /// Whether it is a measure in converted formats: CSV, JUnit, KTAP, LAVA, KCIDB.
    pub(crate) converted: bool,
    /// Whether it is unknown if the called object told nothing of its thread.
    pub(crate) of_server: bool,
    /// How it is computed and shown.
    pub(crate) value: Value,
}

/// How a figure is computed from calls, which says how it is shown.
pub(crate) enum Value {
    /// A count of calls, given those of one case; counts of several cases are added up.
    Count {
        /// The count in a case with this many calls.
        of: fn(&Latency, u64) -> u64,
        /// The figure that it cannot exceed; a record in which it does is refused.
        part_of: Option<&'static str>,
    },
    /// A time in clock units.
    Time(fn(&Calls<'_>) -> Option<u64>),
    /// A share of the calls, 0 to 1.
    Share(fn(&Calls<'_>) -> Option<f64>),
    /// Words, which are no measure.
    Words(fn(&Calls<'_>) -> String),
}

/// All figures, in the order of columns and measures.
pub(crate) const FIGURES: [Figure; 11] = [
    count("calls", |_, calls| calls, None).in_table("number"),
    time("median", |calls| calls.percentiles.map(|exact| exact.p50)).in_table("median"),
    time("p99", |calls| calls.percentiles.map(|exact| exact.p99))
        .in_table("p99")
        .means("99 % of the calls were as quick or quicker"),
    time("worst", |calls| calls.any().then_some(calls.samples.max)).in_table("worst"),
    count("misses", |latency, _| latency.misses, Some("calls"))
        .in_table("misses")
        .means("calls over the deadline")
        .converted(),
    figure("meetR", Value::Share(|calls| met(calls.total(|latency| latency.misses), calls.served().calls)))
        .in_table("meetR")
        .means("the share of the calls that met the deadline")
        .converted(),
    figure("SYNC", Value::Words(sync)).in_table("SYNC").means(
        "the share of the calls that were served on their caller's CPU. GOOD is more than 0.6. POOR is no error: \
         client and server then run on two CPUs, and a kernel's driver pays for a wake-up of the other one in each call",
    ),
    count("migrated", |latency, _| latency.migrated, Some("calls"))
        .in_table("migrated")
        .means("calls whose caller moved to another CPU meanwhile; SYNC leaves them out"),
    count("bubbles", |latency, _| latency.bubbles, Some("misses"))
        .in_table("bubbles")
        .means(
            "misses in which neither side ran for more than half of the time: both waited, for a CPU, an interrupt \
             or a lock. In the other misses somebody computed",
        )
        .in_json("bubble")
        .converted()
        .of_server(),
    count("same_cpu", |latency, _| latency.same_cpu, Some("calls")).converted().of_server(),
    count("not_inherited", |latency, _| latency.not_inherited, Some("calls")).converted().of_server(),
];

const fn figure(name: &'static str, value: Value) -> Figure {
    Figure { name, head: None, means: None, json: None, converted: false, of_server: false, value }
}

const fn count(name: &'static str, of: fn(&Latency, u64) -> u64, part_of: Option<&'static str>) -> Figure {
    figure(name, Value::Count { of, part_of })
}

const fn time(name: &'static str, of: fn(&Calls<'_>) -> Option<u64>) -> Figure {
    figure(name, Value::Time(of))
}

impl Figure {
    const fn in_table(self, head: &'static str) -> Figure {
        Figure { head: Some(head), ..self }
    }

    const fn in_json(self, key: &'static str) -> Figure {
        Figure { json: Some(key), ..self }
    }

    const fn means(self, words: &'static str) -> Figure {
        Figure { means: Some(words), ..self }
    }

    const fn converted(self) -> Figure {
        Figure { converted: true, ..self }
    }

    const fn of_server(self) -> Figure {
        Figure { of_server: true, ..self }
    }

    /// The number; `None` for words, and if these calls have none.
    pub(crate) fn number(&self, calls: &Calls<'_>) -> Option<f64> {
        if self.of_server && calls.are_untold() {
            return None;
        }
        match self.value {
            Value::Count { of, .. } => Some(calls.sum(of) as f64),
            Value::Time(of) => of(calls).map(|time| time as f64),
            Value::Share(of) => of(calls),
            Value::Words(_) => None,
        }
    }

    /// The cell of a table, empty without a number.
    pub(crate) fn cell(&self, calls: &Calls<'_>, unit: ClockUnit) -> String {
        let show: &dyn Fn(f64) -> String = match self.value {
            Value::Words(of) => return of(calls),
            Value::Count { .. } => &|count| count.to_string(),
            Value::Time(_) => &|time| unit.show(time),
            Value::Share(_) => &share,
        };
        self.number(calls).map(show).unwrap_or_default()
    }
}

/// Up to six digits; 1 only if it is exactly 1.
fn share(share: f64) -> String {
    let share = if share < 1.0 { share.min(0.999_999) } else { 1.0 };
    units::without_zeros(&format!("{share:.6}")).to_owned()
}

fn sync(calls: &Calls<'_>) -> String {
    let served = calls.served();
    let verdict = served.sync().zip(served.ratio());
    verdict.map_or("-".to_owned(), |(sync, ratio)| format!("{} {ratio:.2}", sync.name()))
}

/// The calls of one class that figures are computed of: those of one pair, or of all pairs.
pub(crate) struct Calls<'r> {
    cases: Vec<&'r Case>,
    /// The distribution of their times.
    pub(crate) samples: Distribution,
    /// Exact percentiles of the times; `None` if the record does not have them for these calls together.
    pub(crate) percentiles: Option<Percentiles>,
}

impl<'r> Calls<'r> {
    /// The calls of these cases, with the exact percentiles of a single one.
    pub(crate) fn of(cases: Vec<&'r Case>) -> Calls<'r> {
        let times = cases.iter().filter_map(|case| numbers(case)).map(|numbers| &numbers.samples);
        let samples = Distribution::merged(times).unwrap_or_default();
        let percentiles = match cases[..] {
            [one] => one.latency.as_ref().and_then(|latency| latency.percentiles),
            _ => None,
        };
        Calls { cases, samples, percentiles }
    }

    /// Whether any call has a time.
    pub(crate) fn any(&self) -> bool {
        self.samples.count > 0
    }

    /// The CPUs on which the calls were served.
    pub(crate) fn served(&self) -> Served {
        Served::of(self.cases.iter().copied())
    }

    /// Whether the called object told nothing of its thread.
    fn are_untold(&self) -> bool {
        self.cases.iter().filter_map(|case| case.latency.as_ref()).any(|latency| latency.untold)
    }

    /// The sum of a count over all cases.
    pub(crate) fn total(&self, of: fn(&Latency) -> u64) -> u64 {
        self.sum(|latency, _| of(latency))
    }

    fn sum(&self, of: impl Fn(&Latency, u64) -> u64) -> u64 {
        let each = self.cases.iter().filter_map(|case| Some(of(case.latency.as_ref()?, calls(case))));
        each.fold(0, u64::saturating_add)
    }
}

/// The first count of a case that exceeds the count it is a part of, as a message.
pub(crate) fn exceeded(latency: &Latency, calls: u64) -> Option<String> {
    let count = |name: &str| {
        FIGURES.iter().find_map(|figure| match figure.value {
            Value::Count { of, .. } if figure.name == name => Some(of(latency, calls)),
            _ => None,
        })
    };
    FIGURES.iter().find_map(|figure| {
        let Value::Count { of, part_of: Some(whole) } = figure.value else { return None };
        let (part, limit) = (of(latency, calls), count(whole)?);
        (part > limit).then(|| format!("{part} {} of {limit} {whole}", figure.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_part_has_its_whole() {
        for (at, figure) in FIGURES.iter().enumerate() {
            assert!(FIGURES[..at].iter().all(|other| other.name != figure.name), "{}", figure.name);
            if let Value::Count { part_of: Some(whole), .. } = figure.value {
                let known = FIGURES
                    .iter()
                    .any(|other| other.name == whole && matches!(other.value, Value::Count { .. }));
                assert!(known, "{} is a part of {whole}, which is no count", figure.name);
            }
            assert!(figure.head.is_some() || figure.json.is_some() || figure.converted, "{}", figure.name);
        }
    }
}
