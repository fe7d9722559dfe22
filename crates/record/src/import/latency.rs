//! The output of Android's latency tests, JSON with the threads of `-v` between its lines: each document is a run.
//! Facts: libhwbinder's `Latency.cpp` and `schd-dbg.cpp`; times have two digits, percentiles of the newer hwbinder test are the
//! middle of a 128th of 50 ms; `schd-dbg` has no blank behind the commas of times. A pair makes a call of each class in an
//! iteration.

use super::{MOST_RUNS, case, run};
use crate::read::ImportError;
use crate::render::latency::aosp::BUCKET_NS;
use crate::schema::{Case, CounterKind, Figure, Outcome, Run, Stated};
use serde::Deserialize;
use serde_json::{Map, Value};

const BINDER: &str = "schd-dbg";
const HWBINDER: &str = "libhwbinder_latency";
const DIGITS: i32 = 2;
const NOTE: &str = "only the figures that the test prints are known, times with two digits: each case is all pairs of a class together";

/// Whether a text may be an output of one of these tests.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("\"cfg\":"))
}

#[derive(Deserialize)]
struct Settings {
    pair: u32,
    iterations: u64,
    deadline_us: u64,
}

/// The times of a class in one pair, in ms.
#[derive(Deserialize)]
struct Times {
    avg: Option<f64>,
    wst: Option<f64>,
    bst: Option<f64>,
    miss: Option<u64>,
}

/// The percentiles of a class over all pairs, in ms.
#[derive(Deserialize, Default)]
struct Spread {
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
}

/// Reads every run of a text.
pub(super) fn read(text: &str, changed: &str) -> Result<Vec<Run>, ImportError> {
    let program = if text.contains(",\"wst\"") { BINDER } else { HWBINDER };
    let wrong = |line, problem: String| ImportError { program, line, problem };
    let json = only_json(text);
    let mut runs = Vec::new();
    let mut documents = serde_json::Deserializer::from_str(&json).into_iter::<Map<String, Value>>();
    loop {
        let at = documents.byte_offset();
        // Where the document begins.
        let blank = json[at..].len() - json[at..].trim_start().len();
        let line = json[..at + blank].lines().count().max(1);
        match documents.next() {
            None => break,
            Some(Err(error)) => return Err(wrong(error.line(), super::gbench::without_place(&error))),
            Some(Ok(document)) => {
                runs.push(one(&document, program, changed).map_err(|why| wrong(line, why))?);
            }
        }
        if runs.len() == MOST_RUNS {
            return Err(wrong(line, format!("more than {MOST_RUNS} runs")));
        }
    }
    match runs.is_empty() {
        true => Err(wrong(0, "it has no results".to_owned())),
        false => Ok(runs),
    }
}

/// The text without the threads of `-v`, whose lines stay as empty ones, and with `null` for numbers of no calls.
fn only_json(text: &str) -> String {
    let kept = text.lines().map(|line| match line.trim_start().starts_with(['{', '}', '"']) {
        true => line.replace(":-nan", ":null").replace(":nan", ":null").replace(": nan", ":null"),
        false => String::new(),
    });
    kept.fold(String::with_capacity(text.len()), |text, line| text + &line + "\n")
}

/// One document as a run.
fn one(document: &Map<String, Value>, program: &'static str, changed: &str) -> Result<Run, String> {
    let settings: Settings = part(document, "cfg")?.ok_or("it has no cfg")?;
    let is_pair = |name: &str| {
        let number = name.strip_prefix('P').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut pairs = Vec::new();
    for (name, value) in document.iter().filter(|(name, _)| is_pair(name)) {
        pairs.push((name, value.as_object().ok_or_else(|| format!("{name} is no object"))?));
    }
    if pairs.is_empty() {
        return Err("it has no pair (\"P0\")".to_owned());
    }
    let all = document.get("ALL").and_then(Value::as_object);
    let mut found = run(program, changed, &[NOTE]);
    for (key, value) in [
        ("pairs", u64::from(settings.pair)),
        ("iterations", settings.iterations),
        ("deadline_us", settings.deadline_us),
    ] {
        found.context.push((key.to_owned(), value.to_string()));
    }
    if let Some(inheritance) = document.get("inheritance").and_then(Value::as_str) {
        found.context.push(("inheritance".to_owned(), inheritance.to_owned()));
    }
    for class in ["other", "fifo"] {
        let mut times = Vec::new();
        for (name, pair) in &pairs {
            let told: Option<Times> =
                part(pair, &format!("{class}_ms")).map_err(|why| format!("{name}: {why}"))?;
            times.extend(told);
        }
        let spread = all.map(|all| part::<Spread>(all, &format!("{class}dis"))).transpose()?.flatten();
        found.cases.extend(of_class(program, class, &settings, &times, spread.unwrap_or_default())?);
    }
    if found.cases.is_empty() {
        return Err("no pair has times".to_owned());
    }
    Ok(found)
}

/// A part of an object; `None` if it is missing or null.
fn part<T: for<'de> Deserialize<'de>>(of: &Map<String, Value>, name: &str) -> Result<Option<T>, String> {
    let value = of.get(name).filter(|value| !value.is_null()).cloned();
    value.map(serde_json::from_value).transpose().map_err(|error| format!("{name}: {error}"))
}

/// The calls of a class in all pairs.
fn of_class(
    program: &str,
    class: &str,
    settings: &Settings,
    times: &[Times],
    spread: Spread,
) -> Result<Option<Case>, String> {
    let printed = |ms: f64| Figure::printed(ms, DIGITS).times(1e6);
    let sound = |ms: &f64| ms.is_finite() && (0.0..1e9).contains(ms);
    let of = |pick: fn(&Times) -> Option<f64>| -> Result<Vec<f64>, String> {
        let found: Vec<f64> = times.iter().filter_map(pick).collect();
        match found.iter().find(|ms| !sound(ms)) {
            Some(bad) => Err(format!("{class}_ms has a time of {bad} ms")),
            None => Ok(found),
        }
    };
    let (averages, worst, best) = (of(|one| one.avg)?, of(|one| one.wst)?, of(|one| one.bst)?);
    let Some(mean) = crate::stats::mean(&averages) else { return Ok(None) };
    // Each average may be off by as much.
    let off = averages.iter().map(|ms| printed(*ms).within).fold(0.0, f64::max);
    let bucket = |ms: Option<f64>| {
        ms.filter(sound).map(|ms| Figure { value: ms * 1e6, within: BUCKET_NS as f64 / 2.0 })
    };
    let stated = Stated {
        calls: settings.iterations.checked_mul(averages.len() as u64).filter(|calls| *calls > 0),
        mean: Some(Figure { value: mean * 1e6, within: off }),
        cpu: None,
        min: best.into_iter().min_by(f64::total_cmp).map(printed),
        p50: bucket(spread.p50),
        p90: bucket(spread.p90),
        p95: bucket(spread.p95),
        p99: bucket(spread.p99),
        max: worst.into_iter().max_by(f64::total_cmp).map(printed),
    };
    let mut case = case(&format!("{program}/{class}"), settings.pair, stated);
    case.per_family_instance_index = u32::from(class == "fifo");
    let misses: u64 = times.iter().filter_map(|one| one.miss).fold(0, u64::saturating_add);
    for repetition in &mut case.repetitions {
        if let Outcome::Measured(numbers) = &mut repetition.outcome {
            numbers.counters.set("misses", misses as f64, CounterKind::Plain);
        }
    }
    Ok(Some(case))
}
