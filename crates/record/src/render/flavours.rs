//! Renders a comparison of the binder flavours: the cost of a round trip by IPC mechanism and payload, its
//! components, and limits on the cost of hwbinder relative to binder.
//! Not here: the measurements.
//!
//! Every figure is a median over the repetitions of their medians. Column heads state subtractions; negative results
//! are shown as they are.

use std::fmt;

use super::table::{Table, cells};
use crate::schema::{Case, DriverKind, Measurement, Run};
use crate::stats;

/// The name of the test in its plan.
pub const TEST: &str = "throughput compare-flavours";

/// The mechanisms as columns, by the last word of their families.
const WAYS: [(&str, &str); 12] = [
    ("memcpy", "memcpy"),
    ("passthrough", "passthrough"),
    ("spin", "spin"),
    ("futex", "futex"),
    ("eventfd", "eventfd"),
    ("unix", "unix"),
    ("pipe", "pipe"),
    ("raw", "raw"),
    ("binder", "binder"),
    ("binderize", "hwbinder"),
    ("parcel", "parcels"),
    ("hwparcel", "hw parcels"),
];

/// The flavours that have a driver: family, name, and the family that only builds and reads parcels.
const FLAVOURS: [(&str, &str, &str); 2] =
    [("binder", "binder", "parcel"), ("binderize", "hwbinder", "hwparcel")];

/// Whether a run compares flavours.
pub(super) fn compares_flavours(run: &Run) -> bool {
    run.plan.test == TEST
}

/// Looks up figures by family and payload.
struct Figures<'r>(&'r Run);

impl Figures<'_> {
    fn case(&self, word: &str, payload: u64) -> Option<&Case> {
        let of_word = |case: &&Case| case.family.rsplit('_').next() == Some(word);
        self.0.cases.iter().filter(of_word).find(|case| case.payload_bytes == payload)
    }

    /// The median of each repetition.
    fn rounds(&self, word: &str, payload: u64) -> Vec<f64> {
        let median = |numbers: &Measurement| numbers.samples.percentile(50.0).map(|value| value as f64);
        self.case(word, payload).into_iter().flat_map(|case| case.measurements().filter_map(median)).collect()
    }

    fn median(&self, word: &str, payload: u64) -> Option<f64> {
        stats::median(&self.rounds(word, payload))
    }

    fn payloads(&self) -> Vec<u64> {
        let mut payloads: Vec<u64> = self.0.cases.iter().map(|case| case.payload_bytes).collect();
        payloads.sort_unstable();
        payloads.dedup();
        payloads
    }

    /// The control that waits in the same way as the driver.
    fn control(&self) -> &'static str {
        let embedded = self.0.driver.as_ref().and_then(|driver| driver.embedded.as_ref());
        let spins = embedded.is_some_and(|settings| !settings.waiting.starts_with("sleep"));
        if spins && self.0.plan.placement.starts_with("cross") { "spin" } else { "futex" }
    }
}

fn whole(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.0}")).unwrap_or_default()
}

fn ratio(of: Option<f64>, to: Option<f64>) -> String {
    let ratio = of.zip(to).filter(|(_, to)| *to > 0.0).map(|(of, to)| of / to);
    ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default()
}

fn less(of: Option<f64>, what: Option<f64>) -> Option<f64> {
    of.zip(what).map(|(of, what)| of - what)
}

/// Least cost of a memcpy, in clock units, that serves as a unit for other costs.
const LEAST_COPY: f64 = 10.0;

/// Largest payload in bytes whose copies cost nothing compared with a wake-up.
const MOST_FOR_WAKING: u64 = 64;

/// All tables.
pub(super) fn tables(run: &Run) -> String {
    let figures = Figures(run);
    let unit = run.clock.unit.name();
    let mut text = format!("A round trip by each way: medians in {unit}, payloads in bytes\n");
    text += &ways(&figures);
    text += &format!("\nWhat it is made of, in {unit}; * is a difference of two medians of this run\n");
    text += &parts(&figures);
    text += &legend(&figures);
    let limits = limits(run);
    if !limits.is_empty() {
        text += "\nLimits\n";
        text += &limits.iter().map(|limit| format!("{limit}\n")).collect::<String>();
    }
    text
}

fn ways(figures: &Figures<'_>) -> String {
    let mut heads = vec!["payload"];
    heads.extend(WAYS.iter().map(|(_, head)| *head));
    heads.extend(["hwbinder/binder", "binder/raw", "hwbinder/raw"]);
    let row = |payload: u64| {
        let median = |word: &str| figures.median(word, payload);
        let [binder, hwbinder, raw] = ["binder", "binderize", "raw"].map(median);
        let ratios = [ratio(hwbinder, binder), ratio(binder, raw), ratio(hwbinder, raw)];
        cells![payload].and(WAYS.iter().map(|(word, _)| whole(median(word)))).and(ratios)
    };
    Table::new(heads).rows(figures.payloads().into_iter().map(row)).text()
}

const PARTS: [&str; 10] =
    ["payload", "", "whole", "control", "driver*", "runtime*", "parcels", "copy*", "memcpy", "copy*/memcpy"];

fn parts(figures: &Figures<'_>) -> String {
    let payloads = figures.payloads();
    let Some(&least) = payloads.first() else { return String::new() };
    let row = |payload: u64, (word, name, parcels): (&str, &str, &str)| {
        let median = |word: &str| figures.median(word, payload);
        let (total, raw, control) = (median(word), median("raw"), median(figures.control()));
        let growth = less(total, figures.median(word, least)).filter(|_| payload > least);
        let memcpy = median("memcpy");
        // A copy of one or two nanoseconds is too short to serve as a unit.
        let a_copy = memcpy.filter(|memcpy| *memcpy >= LEAST_COPY);
        cells![
            payload,
            name,
            whole(total),
            whole(control),
            whole(less(raw, control)),
            whole(less(total, raw)),
            whole(median(parcels)),
            whole(growth),
            whole(memcpy),
            ratio(growth, a_copy),
        ]
    };
    let rows = payloads.iter().flat_map(|payload| FLAVOURS.map(|flavour| row(*payload, flavour)));
    Table::new(PARTS).rows(rows).text()
}

fn legend(figures: &Figures<'_>) -> String {
    let control = figures.control();
    let mut text = String::new();
    if let Some(least) = figures.payloads().first().filter(|least| **least <= MOST_FOR_WAKING) {
        let wake = whole(figures.median(control, *least));
        let unit = figures.0.clock.unit.name();
        text += &format!(
            "Waking each other costs {wake} {unit}: the {control} control's {least} B there and back\n"
        );
    }
    text + &format!(
        "whole     = control + driver* + runtime*\n\
         control   the {control} control at this payload: waking and copying without a driver\n\
         driver*   raw less the control: the same bytes by bare exchanges with the driver\n\
         runtime*  the whole less raw: parcels, dispatch, and what objects in a payload cost the driver\n\
         parcels   writing and reading them alone, both directions, in one process: measured, not subtracted\n\
         copy*     the whole less the whole of the least payload; beside it one memcpy of the payload\n"
    )
}

/// A limit on the cost of hwbinder relative to binder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The payload in bytes.
    pub payload: u64,
    /// The median of hwbinder divided by that of binder.
    pub ratio: f64,
    /// The largest ratio allowed.
    pub most: f64,
}

/// Payload and largest ratio.
const LIMITS: [(u64, f64); 2] = [(4, 1.15), (65536, 1.1)];

impl Limit {
    /// Whether the limit is kept.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.ratio <= self.most
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { payload, ratio, most } = self;
        let outcome = if self.is_met() { "met" } else { "MISSED" };
        write!(f, "hwbinder/binder at {payload:>5} B  {ratio:.2}  at most {most:.2}: {outcome}")
    }
}

/// The limits that apply to a run: for the embedded driver, and for the measured payloads only.
#[must_use]
pub fn limits(run: &Run) -> Vec<Limit> {
    if run.driver.as_ref().is_none_or(|driver| driver.kind != DriverKind::Embedded) {
        return Vec::new();
    }
    let figures = Figures(run);
    let limit = |(payload, most): (u64, f64)| {
        let binder = figures.median("binder", payload).filter(|median| *median > 0.0)?;
        Some(Limit { payload, ratio: figures.median("binderize", payload)? / binder, most })
    };
    LIMITS.into_iter().filter_map(limit).collect()
}

#[cfg(test)]
mod tests;
