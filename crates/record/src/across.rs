//! Many records beside one another: their figures by device, kernel or build, and which of these stand out.
//! Not here: reading records (`crate::read`), tables and pages (`crate::render::across`).
//!
//! Only like is held against like: the same case, on the same kind of driver, on real CPUs or on emulated ones. Costs
//! differ by factors, so deviations are those of logarithms. Source of the rule: the modified z-score of Iglewicz and
//! Hoaglin, "How to Detect and Handle Outliers", 1993: 0.6745 times the deviation from the median, divided by the median
//! deviation; above 3.5 a value stands out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::compare::{Group, Metric};
use crate::schema::{CaseKind, ClockUnit, HostClass, Run};
use crate::stats::median;
use units::visible::printable;

/// Fewest values among which one can stand out.
pub const FEWEST: usize = 5;
/// Modified z-score from which a value stands out.
const STANDS_OUT: f64 = 3.5;
/// Ratio to the middle below which nothing stands out, however alike the others are.
pub const NEGLIGIBLE: f64 = 1.05;

/// Fact by which records are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The serial number of a phone, elsewhere the name of the machine.
    Device,
    /// The release of the kernel, and its architecture.
    Kernel,
    /// The build of the system: of a phone its fingerprint, elsewhere that of the kernel.
    Build,
}

impl By {
    /// The word for one group.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            By::Device => "device",
            By::Kernel => "kernel",
            By::Build => "build",
        }
    }

    fn of(self, run: &Run) -> String {
        let (host, kernel) = (&run.host, &run.host.kernel);
        let device = host.device.as_ref();
        let name = match self {
            By::Device => device.and_then(|device| device.serial.clone()).unwrap_or(host.host_name.clone()),
            By::Kernel => format!("{} {}", kernel.release, kernel.machine),
            By::Build => device
                .and_then(|device| device.fingerprint.clone())
                .unwrap_or_else(|| format!("{} {}", kernel.release, kernel.version)),
        };
        let name = printable(name.trim()).into_owned();
        if name.is_empty() { "not known".to_owned() } else { name }
    }
}

/// The figures of one record: what remains of it in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    file: String,
    groups: [String; 3],
    figures: Vec<(Key, f64)>,
}

/// Identity of a figure: two are compared if all of it is equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// Driver and kind of machine, e.g. `driver kernel, C; real CPUs`.
    pub subject: String,
    /// Whether it is a control, which measures the machine: no device is an outlier by it.
    pub control: bool,
    /// The family of cases.
    pub family: String,
    /// Payload of a call in bytes.
    pub payload_bytes: u64,
    /// The case, with its placement and circumstances.
    pub case: String,
}

impl Sample {
    /// The figures of a record from this file.
    #[must_use]
    pub fn of(file: &str, run: &Run, metric: Metric) -> Sample {
        let subject = subject(run);
        let placed = Some(run.plan.placement.as_str()).filter(|placed| !matches!(*placed, "" | "default"));
        let figures = Group::of_run(run).series().unwrap_or_default().into_iter().filter_map(|series| {
            let circumstances = series.shape.circumstances();
            let placed = placed.map(|placed| format!("/{placed}")).unwrap_or_default();
            let told = if circumstances.is_empty() { String::new() } else { format!("; {circumstances}") };
            let case = printable(&format!("{}{placed}{told}", series.name)).into_owned();
            let value = series.value(metric).filter(|value| value.is_finite() && *value > 0.0)?;
            let family = series.name.split('/').next().unwrap_or_default();
            let key = Key {
                subject: subject.clone(),
                control: series.kind == CaseKind::Control,
                family: printable(family).into_owned(),
                payload_bytes: series.shape.payload_bytes,
                case,
            };
            Some((key, value))
        });
        let groups = [By::Device, By::Kernel, By::Build].map(|by| by.of(run));
        Sample { file: printable(file).into_owned(), groups, figures: figures.collect() }
    }

    fn group(&self, by: By) -> &str {
        &self.groups[by as usize]
    }
}

fn subject(run: &Run) -> String {
    let driver =
        run.driver.as_ref().map_or("no driver".to_owned(), |driver| format!("driver {}", driver.kind.name()));
    let clock = match run.host.class {
        HostClass::Icount => "instructions",
        HostClass::Tcg => "emulated CPUs",
        HostClass::Bare | HostClass::Virtual | HostClass::Kvm | HostClass::Unknown => "real CPUs",
    };
    let checked = if run.tool.debug_assertions { "; binderperf with debug assertions" } else { "" };
    format!("{driver}; {clock}{checked}")
}

/// Records beside one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Across {
    /// Fact by which they are grouped.
    pub by: By,
    /// The compared figure.
    pub metric: Metric,
    /// Number of records.
    pub records: usize,
    /// Names of devices, kernels and builds.
    pub names: [BTreeSet<String>; 3],
    /// Groups that stand out in some case, those with the largest deviation first.
    pub outliers: Vec<Outlier>,
    /// Records that stand out within their group, those with the largest deviation first.
    pub strays: Vec<Stray>,
    /// Each case with all groups, ordered by subject, family and payload, controls last.
    pub cases: Vec<CaseAcross>,
}

/// The cases in which somebody stands out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Number of these cases.
    pub cases: usize,
    /// The case with the largest deviation.
    pub worst: Key,
    /// The figure there.
    pub value: f64,
    /// The middle of all there.
    pub middle: f64,
}

/// A group that stands out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// The group.
    pub group: String,
    /// Number of cases that it has.
    pub of: usize,
    /// Where it stands out among the groups.
    #[serde(flatten)]
    pub deviation: Deviation,
}

/// A record that stands out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stray {
    /// The file.
    pub file: String,
    /// Its group.
    pub group: String,
    /// Where it stands out within its group.
    #[serde(flatten)]
    pub deviation: Deviation,
}

/// One case over all groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseAcross {
    /// The case.
    #[serde(flatten)]
    pub key: Key,
    /// The unit of all values.
    pub unit: ClockUnit,
    /// Median of the groups' values.
    pub middle: f64,
    /// The groups, the most expensive first.
    pub groups: Vec<GroupFigure>,
}

/// The figure of a group in one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupFigure {
    /// The group.
    pub group: String,
    /// Number of records.
    pub records: usize,
    /// Median over its records.
    pub value: f64,
    /// Least value of a record.
    pub least: f64,
    /// Greatest value of a record.
    pub greatest: f64,
    /// Whether it stands out among the groups.
    pub stands_out: bool,
}

/// The values of one case and their files, by group.
type OfGroups<'s> = BTreeMap<&'s str, Vec<(f64, &'s str)>>;

/// Puts records beside one another.
#[must_use]
pub fn across(samples: &[Sample], by: By, metric: Metric) -> Across {
    let mut figures: BTreeMap<&Key, OfGroups<'_>> = BTreeMap::new();
    for sample in samples {
        for (key, value) in &sample.figures {
            let of_group = figures.entry(key).or_default().entry(sample.group(by)).or_default();
            of_group.push((*value, &sample.file));
        }
    }
    let mut strays = BTreeMap::new();
    let cases: Vec<CaseAcross> =
        figures.into_iter().filter_map(|(key, groups)| case(key, &groups, &mut strays)).collect();
    let stray = |((group, file), deviation): ((&str, &str), Deviation)| Stray {
        file: file.to_owned(),
        group: group.to_owned(),
        deviation,
    };
    let mut strays: Vec<Stray> = strays.into_iter().map(stray).collect();
    strays.sort_by(|one, other| other.deviation.size().total_cmp(&one.deviation.size()));
    let names = [By::Device, By::Kernel, By::Build]
        .map(|by| samples.iter().map(|sample| sample.group(by).to_owned()).collect());
    Across { by, metric, records: samples.len(), names, outliers: outliers(&cases), strays, cases }
}

fn case<'s>(
    key: &Key,
    groups: &OfGroups<'s>,
    strays: &mut BTreeMap<(&'s str, &'s str), Deviation>,
) -> Option<CaseAcross> {
    let mut figures = Vec::new();
    for (group, records) in groups {
        let values: Vec<f64> = records.iter().map(|(value, _)| *value).collect();
        let middle = median(&values)?;
        for ((value, file), stray) in records.iter().zip(standing_out(&values)) {
            if stray && !key.control {
                Deviation::note(strays, (*group, *file), key, (*value, middle));
            }
        }
        let ends = values
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
        figures.push(GroupFigure {
            group: (*group).to_owned(),
            records: records.len(),
            value: middle,
            least: ends.0,
            greatest: ends.1,
            stands_out: false,
        });
    }
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    for (figure, stands_out) in figures.iter_mut().zip(standing_out(&values)) {
        figure.stands_out = stands_out && !key.control;
    }
    figures.sort_by(|one, other| other.value.total_cmp(&one.value));
    let unit = if key.subject.contains("instructions") { ClockUnit::Instructions } else { ClockUnit::Ns };
    Some(CaseAcross { key: key.clone(), unit, middle: median(&values)?, groups: figures })
}

impl Deviation {
    fn size(&self) -> f64 {
        deviation(self.value, self.middle)
    }

    /// Counts a case in which somebody stands out.
    fn note<Who: Ord>(all: &mut BTreeMap<Who, Deviation>, who: Who, key: &Key, (value, middle): (f64, f64)) {
        let here = |cases| Deviation { cases, worst: key.clone(), value, middle };
        let known = all.entry(who).or_insert_with(|| here(0));
        if deviation(value, middle) > known.size() {
            *known = here(known.cases);
        }
        known.cases += 1;
    }
}

fn outliers(cases: &[CaseAcross]) -> Vec<Outlier> {
    let mut found: BTreeMap<&str, Deviation> = BTreeMap::new();
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases {
        for figure in &case.groups {
            *all.entry(&figure.group).or_default() += 1;
            if figure.stands_out {
                Deviation::note(&mut found, &figure.group, &case.key, (figure.value, case.middle));
            }
        }
    }
    let outlier = |(group, deviation): (&str, Deviation)| Outlier {
        group: group.to_owned(),
        of: all.get(group).copied().unwrap_or_default(),
        deviation,
    };
    let mut found: Vec<Outlier> = found.into_iter().map(outlier).collect();
    found.sort_by(|one, other| other.deviation.size().total_cmp(&one.deviation.size()));
    found
}

/// How many times one value is the other, whichever is larger, as a logarithm.
fn deviation(value: f64, middle: f64) -> f64 {
    (value / middle).ln().abs()
}

/// Whether each positive value stands out among all.
fn standing_out(values: &[f64]) -> Vec<bool> {
    let nothing = || vec![false; values.len()];
    let Some(middle) = median(values).filter(|_| values.len() >= FEWEST) else { return nothing() };
    let deviations: Vec<f64> = values.iter().map(|value| deviation(*value, middle)).collect();
    let Some(usual) = median(&deviations) else { return nothing() };
    let limit = (usual * STANDS_OUT / 0.6745).max(NEGLIGIBLE.ln());
    deviations.into_iter().map(|deviation| deviation > limit).collect()
}

#[cfg(test)]
mod tests;
