//! A latency test as tables and verdicts.
//! Not here: the environment (`crate::render::summary`).

use super::{Group, short};
use crate::experiments::sweep;
use crate::figures::FIGURES;
use crate::render::printable;
use crate::render::recorder;
use crate::render::remarks::{findings, warnings};
use crate::render::table::{Cell, Look, Row, Table, cells};
use crate::render::verdicts::lines;
use crate::schema::{Class, Hop, LatencyTest, Miss, Run};
use crate::verdict::{calls, of_latency};

/// The whole text: a row for each pair and class and for all pairs, then verdicts and failures.
pub fn table(run: &Run) -> String {
    let mut notes = warnings(run);
    notes.extend(findings(run));
    notes.extend(run.ended_early().map(|reason| format!("INCOMPLETE: {reason}")));
    let mut text = body(run);
    if !notes.is_empty() {
        text.push('\n');
    }
    let notes = notes.iter().map(|note| printable(note).into_owned() + "\n");
    text + &notes.collect::<String>()
}

/// The text without the parts that `summary` prints for every run.
pub(in crate::render) fn body(run: &Run) -> String {
    let Some(test) = run.latency() else { return "the run is not a latency test\n".to_owned() };
    let mut text = match &test.sweep {
        Some(sweep) => sweep::text::table(run, sweep),
        None => pairs(run, test).text(),
    };
    text.push('\n');
    text += &settings(run, test);
    text.push('\n');
    text += &lines(&of_latency(run, test));
    if !test.inheritance.hops.is_empty() {
        text.push('\n');
        text += &hops(test).text();
    }
    let troubles = troubles(run, test);
    if !troubles.is_empty() {
        text.push('\n');
        text += &troubles;
    }
    text
}

/// A row for each pair and class, and for all pairs if there are several.
pub(in crate::render) fn pairs(run: &Run, test: &LatencyTest) -> Table {
    let figures = FIGURES.iter().filter_map(|figure| figure.head);
    Table::new(["Calls"].into_iter().chain(figures).chain([""])).rows(rows(run, test))
}

fn rows(run: &Run, test: &LatencyTest) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut groups = Group::of(run);
    // The sum comes last in a table; one pair is its own sum.
    let sum = groups.remove(0);
    if groups.len() != 1 {
        groups.push(sum);
    }
    for group in &groups {
        if group.pair.is_none() && !rows.is_empty() {
            rows.push(Row::Rule(String::new()));
        }
        rows.extend(Class::BOTH.into_iter().filter_map(|class| row(run, test, group, class)));
    }
    rows
}

fn row(run: &Run, test: &LatencyTest, group: &Group, class: Class) -> Option<Row> {
    let name = format!("{} {}", group.name(), class.name());
    let trouble: Vec<&str> = group.trouble(class).into_iter().map(|why| brief(test, why)).collect();
    let Some(calls) = group.calls(class, test) else {
        group.of_class(class).next()?;
        let reason = if trouble.is_empty() { "no calls".to_owned() } else { trouble.join("; ") };
        return Some(Row::words(name, &reason));
    };
    let figures = FIGURES.iter().filter(|figure| figure.head.is_some());
    let figures = figures.map(|figure| figure.cell(&calls, run.clock.unit));
    let incomplete = if trouble.is_empty() { "" } else { "INCOMPLETE" };
    Some(cells![name].and(figures).and([incomplete]))
}

/// The settings of the rows.
fn settings(run: &Run, test: &LatencyTest) -> String {
    let way = if test.binderized { "" } else { ", passthrough: called without IPC" };
    let mut lines = match &test.sweep {
        Some(_) => vec![format!("Flavour      {}{way}", test.flavour)],
        None => vec![format!("Deadline     {}{way}", run.clock.unit.show_round(test.deadline as f64))],
    };
    // The points of a sweep state their own load and rate.
    let first = run.cases.iter().find_map(|case| case.latency.as_ref()).filter(|_| test.sweep.is_none());
    if let Some(rate) = first.and_then(|latency| latency.rate_hz) {
        lines.push(format!("Rate         {}; times count from the intended start", units::rate(rate)));
    }
    if let Some(load) = first.map(|latency| &latency.load).filter(|load| !load.is_empty()) {
        lines.push(format!("Load         {load}"));
    }
    if let Some(cost) = test.overhead {
        lines.push(format!("Overhead     {}, within each time", run.clock.unit.show(cost.max(0.0).round())));
    }
    match test.pinged.as_deref() {
        Some("") => lines.push(format!("Called       the manager of {}, by its ping", test.flavour)),
        Some(name) => lines.push(format!("Called       {name} of {}, by its ping", test.flavour)),
        None => {}
    }
    lines.push(format!("Real-time    {}", test.realtime.map_or("none".to_owned(), short)));
    let found = &test.inheritance;
    if let Some(level) = found.expected {
        lines.push(format!("Promised     inheritance {}: {}", level.name(), found.expected_reason));
    }
    lines.extend(recorder::lines(run, test));
    lines.iter().map(|line| printable(line).into_owned() + "\n").collect()
}

/// Shortens the reason for a missing real-time caller, which is long and printed in full only once.
fn brief<'r>(test: &LatencyTest, reason: &'r str) -> &'r str {
    let known = !reason.is_empty() && test.realtime_problem.as_deref() == Some(reason);
    if known { "no real-time caller" } else { reason }
}

/// A row for each hop of inheritance.
pub(in crate::render) fn hops(test: &LatencyTest) -> Table {
    let hops = test.inheritance.hops.iter().map(|hop| of_hop(test, hop));
    Table::new(["Hop", "caller", "idle", "served", "expected", "", ""]).rows(hops)
}

fn of_hop(test: &LatencyTest, hop: &Hop) -> Row {
    let known = |sched: Option<crate::Sched>| sched.map_or("-".to_owned(), short);
    let word = match hop.as_expected() {
        Some(true) => Cell::from("as expected"),
        Some(false) => Cell::from("UNEXPECTED").look(Look::Bad),
        None if hop.is_broken() => Cell::from("BROKEN").look(Look::Bad),
        None => Cell::default(),
    };
    cells![
        &hop.scene,
        short(hop.caller),
        short(hop.idle),
        known(hop.served),
        known(hop.expected),
        word,
        brief(test, &hop.note),
    ]
}

/// Injected faults, the miss that ended the test, and failed pairs.
fn troubles(run: &Run, test: &LatencyTest) -> String {
    let mut lines = Vec::new();
    if !test.injected.is_empty() {
        lines.push(format!("INJECTED {}", test.injected.join(", ")));
    }
    if let Some(Miss { pair, class, iteration, took }) = test.stopped_at {
        let (class, took) = (class.name(), run.clock.unit.show(took as f64));
        lines.push(format!(
            "STOPPED at a deadline missed: pair {pair}, {class}, iteration {iteration}, {took}"
        ));
    }
    lines.extend(test.sweep.iter().flat_map(sweep::text::troubles));
    let groups = if test.sweep.is_some() { Vec::new() } else { Group::of(run) };
    for group in groups.iter().filter(|group| group.pair.is_some()) {
        let reasons = group.failures();
        if !reasons.is_empty() {
            let made: u64 = group.cases.iter().map(|case| calls(case)).fold(0, u64::saturating_add);
            lines.push(format!("{} FAILED after {made} calls: {}", group.name(), reasons.join("; ")));
        }
    }
    lines.iter().map(|line| printable(line).into_owned() + "\n").collect()
}
