//! The report as one HTML page: fills in `page.html`.
//! Not here: the content of the parts (`verdicts`, `throughput`, `latency`, `environment`).
//!
//! The template escapes every value except the HTML of fragments.

use page::TemplateError;
use serde::Serialize;

use super::chart::Chart;
use super::verdicts::{Verdict, look_first, verdicts};
use super::{Bundle, Entry, Fragment, driver, environment, latency, numbers, throughput, title};
use crate::render::latency::{HOPS, hop_cells};
use crate::render::summary::{summary, warnings};
use crate::schema::{Finding, Run};
use crate::verdict::{InheritanceVerdict, as_expected};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// The part of the page for one run.
#[derive(Default, Serialize)]
struct Part {
    /// Name of its anchor.
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
    /// The run as text, if it has no better representation.
    text: Option<String>,
    environment: Vec<(&'static str, String)>,
    command: String,
}

/// The whole page.
///
/// # Errors
/// [`TemplateError`] if the template is faulty.
pub fn html(bundle: &Bundle) -> Result<String, TemplateError> {
    let first = bundle.runs.first().map(|entry| &entry.run);
    let checks = |verdict| bundle.checkup.as_ref().map(|checkup| checkup.of(verdict).count());
    let values = Values {
        head: first.map(head),
        verdicts: verdicts(bundle),
        look_first: look_first(bundle),
        parts: bundle.runs.iter().enumerate().map(|(index, entry)| part(index, entry)).collect(),
        causes: &bundle.causes,
        findings: bundle.findings(),
        passed: checks(crate::checkup::Verdict::Ok),
        unknown: checks(crate::checkup::Verdict::Unknown),
    };
    let styles: String = bundle.causes.iter().map(|fragment| fragment.style.as_str()).collect();
    Ok(page::document("binderperf report", &(STYLE.to_owned() + &styles), &page::render(PAGE, &values)?))
}

/// The values of the template.
#[derive(Serialize)]
struct Values<'b> {
    head: Option<String>,
    verdicts: Vec<Verdict>,
    look_first: Option<String>,
    parts: Vec<Part>,
    causes: &'b [Fragment],
    findings: Vec<Finding>,
    passed: Option<usize>,
    unknown: Option<usize>,
}

/// The line under the title.
fn head(run: &Run) -> String {
    let (host, tool) = (&run.host, &run.tool);
    let model = if host.cpu.model.is_empty() { "CPU" } else { &host.cpu.model };
    format!(
        "{}, {}, Linux {}, {} x {model}, {}; {} {}",
        run.started,
        driver(run),
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
        environment: environment::rows(run),
        command: run.plan.command_line.join(" "),
        ..Part::default()
    };
    if let Some(reason) = run.incomplete_reason.as_ref().filter(|_| !run.complete) {
        part.warnings.push(format!("INCOMPLETE: {reason}"));
    }
    let table = numbers(run);
    match &run.latency {
        Some(test) if test.sweep.is_none() => {
            part.chart = latency::chart(run, test);
            part.inheritance = Some(inheritance(test));
            part.hop_heads = HOPS.to_vec();
            part.hops = test.inheritance.hops.iter().map(|hop| hop_cells(test, hop)).collect();
        }
        None if table.is_some() => part.chart = throughput::chart(run),
        _ => part.text = Some(summary(run, "")),
    }
    (part.heads, part.rows) = table.unwrap_or_default();
    part
}

fn inheritance(test: &crate::LatencyTest) -> String {
    let found = &test.inheritance;
    let level = |level: Option<crate::Level>| level.map_or("unknown", crate::Level::name);
    let known = match as_expected(found) {
        Some(true) => "as expected of this driver".to_owned(),
        Some(false) => format!("expected {} of this driver", level(found.expected)),
        None => "no expectation is known for this driver".to_owned(),
    };
    let (verdict, measured) = (InheritanceVerdict::of(test).name(), level(found.measured));
    let (part, whole) = (found.not_inherited, found.calls);
    format!(
        "{verdict}: {part} of {whole} calls were served at another priority than their caller's. Measured {measured}, {known}."
    )
}
