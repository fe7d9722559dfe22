//! Room: the report as one HTML page: its parts as values, put into `page.html`.
//! Not here: what the parts say (`verdicts`, `throughput`, `latency`, `environment`).
//!
//! The template escapes every value but the fragments' HTML and the two style sheets. Control characters of
//! values become visible first, as everywhere.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;

use super::chart::Chart;
use super::verdicts::{Verdict, look_first, verdicts};
use super::{Bundle, Entry, environment, latency, throughput};
use crate::render::latency::{HEADS, HOPS, hop_cells, pair_cells};
use crate::render::printable;
use crate::render::summary::{summary, warnings};
use crate::schema::{Finding, Run};
use crate::verdict::{Inherited, as_expected};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// One run's part of the page.
#[derive(Serialize)]
struct Part {
    /// What it is called in links.
    anchor: String,
    title: String,
    file: String,
    warnings: Vec<String>,
    chart: Option<Chart>,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    inheritance: Option<String>,
    hop_heads: Vec<&'static str>,
    hops: Vec<Vec<String>>,
    /// The run as text, where there is no better look at it.
    text: Option<String>,
    environment: Vec<(&'static str, String)>,
    command: String,
}

/// What a finding says.
#[derive(Serialize)]
struct Found<'f> {
    severity: &'static str,
    id: &'f str,
    text: &'f str,
    effect: Option<&'f str>,
    fix: Option<&'f str>,
    proof: Option<&'f str>,
    evidence: Vec<(&'f str, &'f str)>,
}

impl<'f> Found<'f> {
    fn of(finding: &'f Finding) -> Found<'f> {
        use crate::Severity::{Error, Info, Warning};
        Found {
            severity: match finding.severity {
                Info => "note",
                Warning => "warning",
                Error => "spoils numbers",
            },
            id: &finding.id,
            text: &finding.text,
            effect: finding.effect.as_deref(),
            fix: finding.fix.as_deref(),
            proof: finding.proof.as_deref(),
            evidence: finding.evidence.iter().map(|one| (one.source.as_str(), one.says.as_str())).collect(),
        }
    }
}

/// The whole page.
///
/// # Errors
/// What the template engine says; only a fault of the template could bring one.
pub fn html(bundle: &Bundle) -> Result<String, String> {
    let mut engine = Environment::new();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    engine.add_filter("visible", |text: String| printable(&text).into_owned());
    engine.add_template("page", PAGE).map_err(|error| describe(&error))?;
    let findings = bundle.findings();
    let found: Vec<Found<'_>> = findings.iter().map(Found::of).collect();
    let first = bundle.runs.first().map(|entry| &entry.run);
    let lines: Vec<Verdict> = verdicts(bundle);
    let styles: Vec<&str> = bundle.causes.iter().map(|fragment| fragment.style.as_str()).collect();
    let causes: Vec<Value> = bundle
        .causes
        .iter()
        .map(|fragment| context! { title => &fragment.title, html => Value::from_safe_string(fragment.html.clone()) })
        .collect();
    let parts: Vec<Part> = bundle.runs.iter().enumerate().map(|(index, entry)| part(index, entry)).collect();
    let page = context! {
        style => Value::from_safe_string(STYLE.to_owned() + &styles.join("\n")),
        head => first.map(head),
        verdicts => Value::from(Serde(&lines)),
        look_first => look_first(bundle),
        parts => Value::from(Serde(&parts)),
        causes => causes,
        findings => Value::from(Serde(&found)),
        passed => bundle.checkup.as_ref().map(|checkup| checkup.of(crate::checkup::Verdict::Ok).count()),
        unknown => bundle.checkup.as_ref().map(|checkup| checkup.of(crate::checkup::Verdict::Unknown).count()),
    };
    let template = engine.get_template("page").map_err(|error| describe(&error))?;
    template.render(page).map_err(|error| describe(&error))
}

fn describe(error: &minijinja::Error) -> String {
    format!("filling in the report's page: {error:#}")
}

/// The line under the title.
fn head(run: &Run) -> String {
    let driver =
        run.driver.as_ref().map_or("no driver".to_owned(), |driver| format!("{} driver", driver.kind.name()));
    let (host, tool) = (&run.host, &run.tool);
    let model = if host.cpu.model.is_empty() { "CPU" } else { &host.cpu.model };
    format!(
        "{}, {driver}, Linux {}, {} x {model}, {}; {} {}",
        run.started,
        host.kernel.release,
        host.cpu.count,
        host.class.name(),
        tool.name,
        tool.version
    )
}

fn part(index: usize, entry: &Entry) -> Part {
    let run = &entry.run;
    let mut part = Part {
        anchor: format!("run-{}", index + 1),
        title: title(run),
        file: entry.name.clone(),
        warnings: warnings(run),
        chart: None,
        heads: Vec::new(),
        rows: Vec::new(),
        inheritance: None,
        hop_heads: Vec::new(),
        hops: Vec::new(),
        text: None,
        environment: environment::rows(run),
        command: run.plan.command_line.join(" "),
    };
    if let Some(reason) = run.incomplete_reason.as_ref().filter(|_| !run.complete) {
        part.warnings.push(format!("INCOMPLETE: {reason}"));
    }
    match &run.latency {
        Some(test) if test.sweep.is_none() => {
            part.chart = latency::chart(run, test);
            part.heads = HEADS.map(str::to_owned).to_vec();
            part.rows = pair_cells(run, test);
            part.inheritance = Some(inheritance(test));
            part.hop_heads = HOPS.to_vec();
            part.hops = test.inheritance.hops.iter().map(|hop| hop_cells(test, hop)).collect();
        }
        None if !throughput::families(run).is_empty() => {
            part.chart = throughput::chart(run);
            (part.heads, part.rows) = throughput::table(run);
        }
        _ => part.text = Some(summary(run, "")),
    }
    part
}

/// What a run is called.
fn title(run: &Run) -> String {
    match &run.latency {
        Some(test) if test.sweep.is_some() => format!("{} latency over a grid", test.flavour),
        Some(test) => format!("{} latency", test.flavour),
        None if run.inversion.is_some() => "priority inversion".to_owned(),
        None if !run.plan.test.is_empty() => run.plan.test.clone(),
        None => "throughput".to_owned(),
    }
}

fn inheritance(test: &crate::LatencyTest) -> String {
    let found = &test.inheritance;
    let level = |level: Option<crate::Level>| level.map_or("unknown", crate::Level::name);
    let known = match as_expected(found) {
        Some(true) => "as expected of this driver".to_owned(),
        Some(false) => format!("expected {} of this driver", level(found.expected)),
        None => "what to expect is not known".to_owned(),
    };
    let (verdict, measured) = (Inherited::of(test).name(), level(found.measured));
    let (part, whole) = (found.not_inherited, found.calls);
    format!(
        "{verdict}: {part} of {whole} calls were served at another priority than their caller's. Measured {measured}, {known}."
    )
}
