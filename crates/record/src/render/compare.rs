//! A comparison as text, Markdown and JSON.
//! Not here: comparing (`crate::compare`).

use super::table::{Cell, Look, Row, Table, cells};
use super::{in_markdown as escaped, printable};
use crate::compare::gate::{GateOutcome, GateResult};
use crate::compare::{Basis, Bounds, CaseComparison, Comparison, Metric, Side, Verdict};
use crate::schema::{CaseKind, ClockUnit, Severity};
use serde::Serialize;
use serde_json::{Value, json};

/// Most characters of a differing fact up to which the sides are aligned.
const WIDEST_FACT: usize = 48;

/// The last line of a comparison with one run of a side.
const REPEAT: &str = "One run of a side: \"within run\" is the noise inside a run. Runs of one machine differ by more, \
     up to several times. To measure both sides in turns: binderperf ab --a SIDE --b SIDE -- TEST. To compare several \
     records of each side: binderperf compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json";

/// The last line of a comparison with one run of a side, by another program.
const STATED: &str = "One run of a side, without single times: nothing but the size of the difference is known. Runs of one machine differ \
     by more, up to several times. To compare several of each side: binderperf compare a1,a2,a3,a4 b1,b2,b3,b4";

/// The value of `schema` in [`json()`].
pub const SCHEMA: &str = "binderperf.comparison";
/// The value of `schema` in [`gated_json`].
pub const GATE_SCHEMA: &str = "binderperf.gate";

/// The comparison as text. Differences of the environment come first.
#[must_use]
pub fn text(found: &Comparison) -> String {
    let mut text = side("A", &found.a) + &side("B", &found.b);
    text += &match differences(found) {
        Some(differences) => format!("\n{}", differences.text()),
        None => "\nNo other known difference between the two sides.\n".to_owned(),
    };
    let heads = ["Case", "A", "B", "B to A", "95 % interval", "p", "verdict"];
    let rows = sorted(found).map(|case| row(case, found.unit));
    text += &format!("\nThe {} of each run. B to A: + is slower.\n\n", metric(found.metric));
    text += &Table::new(heads).rows(rows).text();
    let name = if is_within_run(found) { "Tails within run" } else { "Tails" };
    let heads = [name, "p99 A", "p99 B", "B to A", "verdict", "p99.9 A", "p99.9 B", "max A", "max B"];
    let tails = found.cases.iter().filter(|case| !case.tails.is_empty());
    let tails = Table::new(heads).rows(tails.map(|case| tail_row(case, found.unit)));
    if !tails.is_empty() {
        text += &format!("\n{}", tails.text());
    }
    let notes = notes(found);
    if !notes.is_empty() {
        text += &format!("\n{}\n", notes.join("\n"));
    }
    text += &format!("\n{}\n", verdict(found));
    text + &advice(found).map_or(String::new(), |advice| format!("{advice}\n"))
}

/// The comparison as Markdown.
#[must_use]
pub fn markdown(found: &Comparison) -> String {
    let mut text = format!("**{}**\n", escaped(&verdict(found)));
    for (name, side) in [("A", &found.a), ("B", &found.b)] {
        text += &format!("\n{name}: {} ({})\n", escaped(&side.name), counted(side.files.len(), "run"));
    }
    text += &differences(found).map(|differences| differences.markdown()).unwrap_or_default();
    let heads = ["case", "A", "B", "B to A", "interval", "p", "verdict", "p99 A", "p99 B", "p99 verdict"];
    let rows = sorted(found).map(|case| row(case, found.unit).and(p99(case, found.unit)));
    let notes = notes(found).into_iter().chain(advice(found).map(str::to_owned));
    text + &Table::new(heads).rows(rows).notes(notes).markdown()
}

/// The comparison as JSON, with [`SCHEMA`].
#[must_use]
pub fn json(found: &Comparison) -> String {
    document(SCHEMA, found.overall.word(), found)
}

/// The comparison with the outcome of the limit as JSON, with [`GATE_SCHEMA`].
#[must_use]
pub fn gated_json(found: &GateResult) -> String {
    document(GATE_SCHEMA, found.outcome.name(), found)
}

fn document(schema: &str, word: &str, found: &impl Serialize) -> String {
    let mut whole = json!({ "schema": schema, "version": 1, "word": word });
    if let (Some(whole), Ok(Value::Object(fields))) = (whole.as_object_mut(), serde_json::to_value(found)) {
        whole.extend(fields);
    }
    format!("{whole:#}\n")
}

/// The outcome of the limit as text; follows the text of the comparison.
#[must_use]
pub fn gated(found: &GateResult) -> String {
    let limit = format!("{:.3}", found.limit * 100.0);
    let limit = units::without_zeros(&limit);
    let count = |outcome| found.cases.iter().filter(|(_, one)| *one == outcome).count();
    let mut text = format!("Gate at +{limit} %: {}", found.outcome.name());
    let others = [GateOutcome::Exceeded, GateOutcome::CannotTell, GateOutcome::Kept]
        .map(|one| format!("{} {}", count(one), one.name()));
    text += &format!(" ({})\n", others.join(", "));
    for (name, outcome) in found.cases.iter().filter(|(_, outcome)| *outcome != GateOutcome::Kept) {
        let Some(case) = found.comparison.cases.iter().find(|case| case.name == *name) else { continue };
        let why = match (outcome, case.verdict) {
            (GateOutcome::CannotTell, Verdict::CannotTell(why)) => format!("cannot tell: {}", why.text()),
            (GateOutcome::CannotTell, _) => {
                "cannot tell: the interval holds the limit; more runs make it narrower".to_owned()
            }
            (outcome, _) => outcome.name().to_owned(),
        };
        // Counted instructions repeat, and have none.
        let interval = Some(interval(case)).filter(|text| !text.is_empty());
        let interval = interval.map_or(String::new(), |text| format!(" [{text}]"));
        text += &format!("  {name}: {}{interval}: {why}\n", percent(case.estimate.ratio));
    }
    for (name, why) in &found.broken {
        text += &format!("  {name}: failed in B: {}\n", printable(why));
    }
    text
}

/// The overall verdict as a sentence.
#[must_use]
pub fn verdict(found: &Comparison) -> String {
    let overall = &found.overall;
    let all = overall.slower + overall.faster + overall.same + overall.unknown;
    let parts = [
        (overall.slower, "slower"),
        (overall.faster, "faster"),
        (overall.same, "no difference"),
        (overall.unknown, "cannot tell"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let cases = counted(all, "case");
    let mut text = match (overall.slower + overall.faster, parts.len()) {
        (0, 0 | 1) => format!("{} in {cases}", capital(overall.word())),
        (0, _) => format!("{} in {cases}: {}", capital(overall.word()), parts.join(", ")),
        _ => format!("B is {} in {cases}: {}", overall.word(), parts.join(", ")),
    };
    for (count, word) in [(overall.tail_slower, "worse"), (overall.tail_faster, "better")] {
        if count > 0 {
            text += &format!("; p99 {word} in {count}");
        }
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Subjects first, then controls.
fn sorted(found: &Comparison) -> impl Iterator<Item = &CaseComparison> {
    let of = |kind: CaseKind| found.cases.iter().filter(move |case| case.kind == kind);
    of(CaseKind::Test).chain(of(CaseKind::Control))
}

fn side(name: &str, side: &Side) -> String {
    let early =
        if side.incomplete > 0 { format!(", {} stopped early", side.incomplete) } else { String::new() };
    format!("{name}  {} ({}{early})\n", printable(&side.name), counted(side.files.len(), "run"))
}

fn counted(count: usize, what: &str) -> String {
    units::counted(count as u64, what)
}

/// The facts that differ; `None` without any.
fn differences(found: &Comparison) -> Option<Table> {
    let rows = found.environment.iter().map(|one| {
        let word = match one.severity {
            Severity::Info => "",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
        };
        cells![&one.what, &one.a, &one.b, word]
    });
    let table = Table::of_words(["What differed", "A", "B", ""]).widest(WIDEST_FACT).rows(rows);
    Some(table).filter(|table| !table.is_empty())
}

fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Cpu => "CPU time per call",
        other => other.name(),
    }
}

fn row(case: &CaseComparison, unit: ClockUnit) -> Row {
    let word = match case.verdict {
        Verdict::CannotTell(why) => format!("cannot tell: {}", why.text()),
        other => other.name().to_owned(),
    };
    let look = if case.verdict == Verdict::Same { Look::Plain } else { Look::Strong };
    cells![
        &case.name,
        unit.show(case.a),
        unit.show(case.b),
        percent(case.estimate.ratio),
        interval(case),
        case.p_adjusted.map(chance),
        Cell::from(word).look(look),
    ]
}

/// The figure of a tail: both sides, and their ratio.
fn tail(case: &CaseComparison, metric: Metric, unit: ClockUnit) -> [Option<String>; 3] {
    let Some(tail) = case.tails.iter().find(|tail| tail.metric == metric) else { return [None, None, None] };
    let side = |value: f64, bounds: Option<Bounds>| {
        let within = bounds.map(|at| format!(" [{}..{}]", unit.show(at.low), unit.show(at.high)));
        Some(unit.show(value) + &within.unwrap_or_default())
    };
    [side(tail.a, tail.within_a), side(tail.b, tail.within_b), Some(percent(tail.estimate.ratio))]
}

fn tail_word(case: &CaseComparison) -> Option<String> {
    let word = |verdict| match verdict {
        Verdict::Slower => "worse",
        Verdict::Faster => "better",
        Verdict::Same | Verdict::CannotTell(_) => Verdict::name(verdict),
    };
    case.tail_verdict().map(|verdict| word(verdict).to_owned())
}

/// Both sides of the p99, and its verdict.
fn p99(case: &CaseComparison, unit: ClockUnit) -> [Option<String>; 3] {
    let [a, b, _] = tail(case, Metric::P99, unit);
    [a, b, tail_word(case)]
}

fn tail_row(case: &CaseComparison, unit: ClockUnit) -> Row {
    let [rare, most] = [Metric::P999, Metric::Max].map(|metric| {
        let [a, b, _] = tail(case, metric, unit);
        [a, b]
    });
    let p99 = tail(case, Metric::P99, unit);
    cells![&case.name].and(p99).and([tail_word(case)]).and(rare).and(most)
}

/// Remarks that a reader needs to interpret the figures.
fn notes(found: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |wanted: &dyn Fn(Basis) -> bool| found.cases.iter().any(|case| wanted(case.estimate.basis));
    if has(&|basis| matches!(basis, Basis::Pairs(_))) {
        notes.push(
            "Note: runs were made in turns and are compared pair by pair, so that drift cancels.".to_owned(),
        );
    }
    let steps = found.cases.iter().filter_map(|case| case.estimate.basis.counted_step());
    let steps: Vec<f64> =
        [steps.clone().reduce(f64::min), steps.reduce(f64::max)].into_iter().flatten().collect();
    if let [least, most] = steps[..] {
        let (least, most) = (least * 100.0, most * 100.0);
        let some =
            if least < most { format!("{least} % where most calls are alike, and ") } else { String::new() };
        notes.push(format!(
            "Note: instructions are counted, not timed; medians repeat from boot to boot within {some}{most} %."
        ));
    }
    let controls = found.cases.iter().filter(|case| case.kind == CaseKind::Control);
    let moved = controls.filter(|case| matches!(case.verdict, Verdict::Slower | Verdict::Faster)).count();
    if moved > 0 {
        let cases = counted(moved, "control");
        notes.push(format!("Note: {cases} changed as well. No binder driver takes part in them, so the machine or the kernel changed too."));
    }
    let failed: usize = found.cases.iter().map(|case| case.failed.len()).sum();
    if failed > 0 {
        notes.push(format!("Note: {} failed and are not in the figures.", counted(failed, "repetition")));
    }
    for one in &found.unmatched {
        notes.push(format!("Not compared: {}: {}", printable(&one.name), printable(&one.why.to_string())));
    }
    notes
}

pub(super) fn percent(ratio: f64) -> String {
    match (ratio - 1.0) * 100.0 {
        change if change.abs() < 1000.0 => format!("{change:+.1} %"),
        _ => format!("{ratio:.1} x"),
    }
}

/// The interval of a case. One that ignores the variation between runs says so.
fn interval(case: &CaseComparison) -> String {
    let label = if case.estimate.basis.is_within_run() { " within run" } else { "" };
    case.estimate
        .interval
        .map_or(String::new(), |bounds| format!("{}..{}{label}", percent(bounds.low), percent(bounds.high)))
}

/// What to do about too few runs.
fn advice(found: &Comparison) -> Option<&'static str> {
    let stated = found.cases.iter().any(|case| case.estimate.basis == Basis::Stated);
    match is_within_run(found) {
        true => Some(REPEAT),
        false => stated.then_some(STATED),
    }
}

/// Whether any interval ignores the variation between runs.
fn is_within_run(found: &Comparison) -> bool {
    found.cases.iter().any(|case| case.estimate.basis.is_within_run())
}

fn chance(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests;
