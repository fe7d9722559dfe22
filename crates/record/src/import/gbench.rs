//! Google Benchmark's JSON: repetitions become repetitions of a case, aggregates are left out where these are there.
//! Facts: `docs/user_guide.md` and `src/json_reporter.cc` of Google Benchmark, versions 1.0 to 1.9: `run_name`, `run_type` and
//! `repetition_index` came with 1.5; before, rows of one name are repetitions, and the names of aggregates end in `_mean` and
//! so on. An aggregate of a newer version has the number of repetitions as its iterations.

use super::{measurement, run};
use crate::date::milliseconds;
use crate::read::ImportError;
use crate::schema::{Case, CaseKind, CounterKind, Figure, Outcome, Repetition, Run, Stated};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

const PROGRAM: &str = "Google Benchmark";
const AGGREGATES: [&str; 8] = ["_mean", "_median", "_stddev", "_cv", "_min", "_max", "_BigO", "_RMS"];
const NOTES: [&str; 1] = [
    "single times, kernel and driver are not in Google Benchmark's output: cases are compared by their means",
];
const ONLY_AGGREGATES: &str = "only aggregates are in the output: each case is one mean over its repetitions";

/// Whether a text may be its JSON.
pub(super) fn is_one(text: &str) -> bool {
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    // A damaged record of ours gets the error of a record.
    text.trim_start().starts_with('{') && has("context") && has("benchmarks") && !has(crate::schema::SCHEMA)
}

#[derive(Deserialize)]
struct Document {
    context: Context,
    benchmarks: Vec<Row>,
}

#[derive(Deserialize)]
struct Context {
    date: Option<String>,
    host_name: Option<String>,
    executable: Option<String>,
    num_cpus: Option<u32>,
    mhz_per_cpu: Option<f64>,
    cpu_scaling_enabled: Option<bool>,
    aslr_enabled: Option<bool>,
    #[serde(default)]
    load_avg: Vec<f64>,
    library_version: Option<String>,
    library_build_type: Option<String>,
}

/// A row as it stands in the document.
#[derive(Deserialize)]
struct RawRow {
    name: String,
    run_name: Option<String>,
    run_type: Option<String>,
    repetition_index: Option<u32>,
    #[serde(default)]
    threads: Option<u32>,
    iterations: Option<u64>,
    real_time: Option<f64>,
    cpu_time: Option<f64>,
    time_unit: Option<String>,
    label: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    error_message: Option<String>,
    #[serde(default)]
    skipped: bool,
    skip_message: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// A row that makes sense.
#[derive(Deserialize)]
#[serde(try_from = "RawRow")]
struct Row {
    /// Name of the case.
    case: String,
    /// What an aggregate is of; `None` for a repetition.
    aggregate: Option<String>,
    index: Option<u32>,
    threads: u32,
    label: Option<String>,
    outcome: Outcome,
}

impl TryFrom<RawRow> for Row {
    type Error = String;

    fn try_from(row: RawRow) -> Result<Row, String> {
        let (case, aggregate) = place(&row);
        let is_complexity = aggregate.as_deref().is_some_and(|of| matches!(of, "BigO" | "RMS"));
        let outcome = match (row.error_occurred, row.skipped || is_complexity) {
            (true, _) => Outcome::Failed {
                reason: row.error_message.unwrap_or_else(|| "no reason given".to_owned()),
                partial: None,
            },
            (_, true) => {
                Outcome::Skipped { reason: row.skip_message.unwrap_or_else(|| "no reason given".to_owned()) }
            }
            _ => measured(&row)?,
        };
        Ok(Row {
            case,
            aggregate,
            index: row.repetition_index,
            threads: row.threads.unwrap_or(1).max(1),
            label: row.label,
            outcome,
        })
    }
}

/// The case of a row, and what aggregate it is.
fn place(row: &RawRow) -> (String, Option<String>) {
    let named = || AGGREGATES.iter().find_map(|end| Some((row.name.strip_suffix(end)?, end[1..].to_owned())));
    match (row.run_type.as_deref(), &row.run_name) {
        (Some("aggregate"), run_name) => {
            let stated = row.others.get("aggregate_name").and_then(Value::as_str).map(str::to_owned);
            let (before, end) =
                named().map_or((row.name.as_str(), String::new()), |(before, end)| (before, end));
            (run_name.clone().unwrap_or_else(|| before.to_owned()), stated.or(Some(end)))
        }
        (Some(_), run_name) => (run_name.clone().unwrap_or_else(|| row.name.clone()), None),
        (None, _) => match named() {
            Some((before, end)) => (before.to_owned(), Some(end)),
            None => (row.name.clone(), None),
        },
    }
}

fn measured(row: &RawRow) -> Result<Outcome, String> {
    let factor = match row.time_unit.as_deref() {
        None | Some("ns") => 1.0,
        Some("us") => 1e3,
        Some("ms") => 1e6,
        Some("s") => 1e9,
        Some(other) => return Err(format!("{}: no unit of time: {other:?}", row.name)),
    };
    let time = |value: Option<f64>, key: &str| match value.map(|value| value * factor) {
        None => Err(format!("{}: no {key}", row.name)),
        Some(value) if (0.0..1e18).contains(&value) => Ok(Figure::exact(value)),
        Some(value) => Err(format!("{}: {key} is {value}", row.name)),
    };
    let calls = match row.iterations {
        Some(0) | None => return Err(format!("{}: no iterations", row.name)),
        calls => calls,
    };
    let stated = Stated {
        calls,
        mean: Some(time(row.real_time, "real_time")?),
        cpu: Some(time(row.cpu_time, "cpu_time")?),
        ..Stated::default()
    };
    let mut numbers = measurement(stated);
    let plain = row.others.iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
    let counters = plain.filter(|(name, _)| !name.ends_with("_index") && *name != "repetitions");
    counters
        .take(crate::schema::Counters::LIMIT)
        .for_each(|(name, value)| numbers.counters.set(name, value, CounterKind::Plain));
    Ok(Outcome::Measured(numbers))
}

/// Reads the document.
pub(super) fn read(text: &str, changed: &str) -> Result<Vec<Run>, ImportError> {
    let error = |line, problem| ImportError { program: PROGRAM, line, problem };
    let Document { context, benchmarks } =
        serde_json::from_str(text).map_err(|why| error(why.line(), without_place(&why)))?;
    let date = context.date.as_deref().and_then(of_old_versions).unwrap_or_else(|| changed.to_owned());
    let mut found = run(PROGRAM, &date, &NOTES);
    found.host.host_name = context.host_name.unwrap_or_default();
    found.host.cpu.count = context.num_cpus.unwrap_or(0);
    found.host.cpu.mhz = context.mhz_per_cpu;
    found.host.cpu.scaling_enabled = context.cpu_scaling_enabled;
    found.host.aslr_enabled = context.aslr_enabled;
    found.host.load_avg = context.load_avg;
    found.tool.version = context.library_version.unwrap_or_default();
    found.tool.executable = context.executable.unwrap_or_default();
    found.tool.debug_assertions = context.library_build_type.as_deref() == Some("debug");
    found.tool.build_profile = context.library_build_type.unwrap_or_default();
    found.cases =
        cases(&benchmarks, &mut found.imported.get_or_insert_default().notes).map_err(|why| error(0, why))?;
    if found.cases.is_empty() {
        return Err(error(0, "it has no benchmark".to_owned()));
    }
    let most = found.cases.iter().map(|case| case.repetitions.len()).max().unwrap_or(1);
    found.plan.repetitions = most as u32;
    Ok(vec![found])
}

/// What the parser says, without the place.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// A date of RFC 3339, also of one as older versions write it (`2017-05-24 14:21:13`), taken as UTC.
fn of_old_versions(date: &str) -> Option<String> {
    let old = || date.replace('/', "-").replacen([' '], "T", 1) + "Z";
    [date.to_owned(), old()].into_iter().find(|date| milliseconds(date).is_some())
}

/// The cases of all rows, in order.
fn cases(rows: &[Row], notes: &mut Vec<String>) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let single = |name: &str| rows.iter().any(|row| row.case == name && row.aggregate.is_none());
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for row in rows {
        let is_mean_alone = row.aggregate.as_deref() == Some("mean") && !single(&row.case);
        if row.aggregate.is_some() && !is_mean_alone {
            continue;
        }
        if is_mean_alone && !notes.iter().any(|note| note == ONLY_AGGREGATES) {
            notes.push(ONLY_AGGREGATES.to_owned());
        }
        let (name, payload_bytes) = ours(&row.case);
        if let Some(other) = names.insert(name.clone(), &row.case).filter(|other| *other != row.case) {
            return Err(format!(
                "{other:?} and {:?} differ only in characters that names may not have",
                row.case
            ));
        }
        let place = cases.iter().position(|case| case.name == name);
        let case = match place {
            Some(place) => &mut cases[place],
            None => {
                let family = name.split('/').next().unwrap_or(&name).to_owned();
                let (family_index, instance) = indices(&cases, &family);
                cases.push(Case {
                    name,
                    family,
                    family_index,
                    per_family_instance_index: instance,
                    kind: CaseKind::Test,
                    payload_bytes,
                    threads: row.threads,
                    crowd: None,
                    latency: None,
                    label: row.label.clone(),
                    repetitions: Vec::new(),
                });
                let last = cases.len() - 1;
                &mut cases[last]
            }
        };
        let index = row.index.unwrap_or(case.repetitions.len() as u32);
        case.repetitions.push(Repetition { index, outcome: row.outcome.clone() });
    }
    Ok(cases)
}

/// Index of a family, and of its next case.
fn indices(cases: &[Case], family: &str) -> (u32, u32) {
    let mut families: Vec<&str> = cases.iter().map(|case| case.family.as_str()).collect();
    families.dedup();
    let place = families.iter().position(|known| *known == family).unwrap_or(families.len());
    let instance = cases.iter().filter(|case| case.family == family).count();
    (place as u32, instance as u32)
}

/// A name as records have it, and the payload of Android's benchmarks in bytes.
fn ours(name: &str) -> (String, u64) {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_/:.-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    let sent = name.strip_prefix("BM_sendVec_").and_then(|rest| rest.split('/').nth(1));
    // Older versions print 2048 as 2k.
    let bytes = sent.and_then(|size| match size.strip_suffix('k') {
        Some(kib) => kib.parse::<u64>().ok()?.checked_mul(1024),
        None => size.parse().ok(),
    });
    let payload = bytes.unwrap_or(0);
    (name, payload)
}
