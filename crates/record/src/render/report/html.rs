//! The report as one HTML page: fills in `page.html`.
//! Not here: the content of the parts (`verdicts`, `throughput`, `latency`, `environment`).
//!
//! The template escapes every value except the HTML of fragments.

use std::collections::{BTreeMap, BTreeSet};

use page::TemplateError;
use serde::Serialize;

use super::reference;
use super::verdicts::{self, look_first};
use super::{Bundle, Entry, Fragment, clusters, driver, environment, latency, numbers, throughput};
use crate::experiments::{background, inversion, overload, sweep};
use crate::render::chart::Chart;
use crate::render::latency::hops;
use crate::render::recorder;
use crate::render::remarks::warnings;
use crate::render::summary::summary;
use crate::render::table::Table;
use crate::schema::{Finding, LatencyTest, Measured, Run, anchor_of_recording};
use crate::verdict::{TestVerdicts, of_run};

const PAGE: &str = concat!(include_str!("../chart/chart.html"), include_str!("page.html"));
/// The style of pages with tables and charts.
pub(crate) const STYLE: &str = include_str!("style.css");

/// The part of the page for one run.
#[derive(Default, Serialize)]
struct Part {
    /// Name of its anchor.
    anchor: String,
    title: String,
    file: String,
    warnings: Vec<String>,
    chart: Option<Chart>,
    /// The numbers as HTML.
    numbers: Option<String>,
    /// Terms of the table, with their meanings.
    terms: Vec<(&'static str, &'static str)>,
    /// Title and HTML of the numbers beside others.
    beside: Option<(String, String)>,
    inheritance: Option<String>,
    /// Cost of the flight recorder, or why there was none.
    recorder: Option<String>,
    slow: Vec<SlowCall>,
    /// The hops of inheritance as HTML.
    hops: Option<String>,
    /// The run as text, if it has no better representation.
    text: Option<String>,
    environment: Vec<(&'static str, String)>,
    command: String,
}

/// A slow call with the anchor of its picture, if it has one.
#[derive(Clone, Serialize)]
struct SlowCall {
    name: String,
    anchor: Option<String>,
    cause: String,
}

/// The whole page.
///
/// # Errors
/// [`TemplateError`] if the template is faulty.
pub fn html(bundle: &Bundle) -> Result<String, TemplateError> {
    let first = bundle.runs.first().map(|entry| &entry.run);
    let checks = |verdict| bundle.checkup.as_ref().map(|checkup| checkup.of(verdict).count());
    let parts = bundle.runs.iter().enumerate().map(|(index, entry)| part(bundle, index, entry));
    let mut parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
    let warnings = common_warnings(&mut parts);
    let findings = bundle.findings();
    let doctor = !findings.is_empty() || bundle.checkup.is_some();
    let pictures = bundle
        .runs
        .iter()
        .zip(&parts)
        .filter_map(|(entry, part)| entry.run.latency().map(|_| (part.title.clone(), part.slow.clone())));
    let pictures = pictures.collect();
    let runs: Vec<&Run> = bundle.runs.iter().map(|entry| &entry.run).collect();
    let of_clusters: Vec<Part> =
        clusters::beside(&runs).iter().enumerate().map(of_clusters).collect::<Result<_, _>>()?;
    parts.splice(0..0, of_clusters);
    let values = Values {
        head: first.map(head),
        warnings,
        contents: contents(bundle, &parts, doctor),
        tests: lines(bundle),
        look_first: look_first(bundle),
        pictures,
        parts,
        causes: &bundle.causes,
        definitions: bundle.causes.iter().map(|fragment| fragment.definitions.as_str()).collect(),
        findings,
        passed: checks(crate::checkup::Verdict::Ok),
        unknown: checks(crate::checkup::Verdict::Unknown),
    };
    let styles: BTreeSet<&str> = bundle.causes.iter().map(|fragment| fragment.style.as_str()).collect();
    let styles: String = styles.into_iter().collect();
    Ok(page::document("binderperf report", &(STYLE.to_owned() + &styles), &page::render(PAGE, &values)?))
}

/// The values of the template.
#[derive(Serialize)]
struct Values<'b> {
    head: Option<String>,
    /// Warnings that hold for every part.
    warnings: Vec<String>,
    contents: Vec<Link>,
    tests: Vec<Line>,
    look_first: Option<String>,
    /// The slow calls of each latency test.
    pictures: BTreeMap<String, Vec<SlowCall>>,
    parts: Vec<Part>,
    causes: &'b [Fragment],
    /// Definitions that the causes refer to.
    definitions: BTreeSet<&'b str>,
    findings: Vec<Finding>,
    passed: Option<usize>,
    unknown: Option<usize>,
}

/// A place of the page.
#[derive(Serialize)]
struct Link {
    anchor: String,
    title: String,
}

/// The verdicts on a test, and the part with its numbers.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    of_test: TestVerdicts,
    /// Empty without such a part.
    anchor: String,
}

/// The verdicts in the order of the summary.
fn lines(bundle: &Bundle) -> Vec<Line> {
    let of_runs = bundle.runs.iter().enumerate();
    let anchors: Vec<(String, String)> = of_runs
        .flat_map(|(index, entry)| of_run(&entry.run).into_iter().map(move |of| (of.test, anchor(index))))
        .collect();
    let line = |of_test: TestVerdicts| {
        let first = anchors.iter().find(|(test, _)| *test == of_test.test);
        Line { anchor: first.map(|(_, anchor)| anchor.clone()).unwrap_or_default(), of_test }
    };
    verdicts::verdicts(bundle).into_iter().map(line).collect()
}

/// The contents list.
fn contents(bundle: &Bundle, parts: &[Part], doctor: bool) -> Vec<Link> {
    let link = |anchor: String, title: &str| Link { anchor, title: title.to_owned() };
    let parts = parts.iter().map(|part| link(part.anchor.clone(), &part.title));
    let causes = bundle.causes.iter().map(|cause| link(cause.anchor.clone(), &cause.title));
    let doctor = doctor.then(|| link("doctor".to_owned(), "what affects these numbers"));
    [link("summary".to_owned(), "verdicts")].into_iter().chain(parts).chain(causes).chain(doctor).collect()
}

/// Takes the warnings that all parts share out of them.
fn common_warnings(parts: &mut [Part]) -> Vec<String> {
    let Some((first, rest)) = parts.split_first_mut() else { return Vec::new() };
    let shared = |warning: &String| rest.iter().all(|part| part.warnings.contains(warning));
    let common: Vec<String> = first.warnings.iter().filter(|warning| shared(warning)).cloned().collect();
    parts.iter_mut().for_each(|part| part.warnings.retain(|warning| !common.contains(warning)));
    common
}

fn anchor(index: usize) -> String {
    format!("run-{}", index + 1)
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

/// The part with the same test on several clusters.
fn of_clusters((index, table): (usize, &Table)) -> Result<Part, TemplateError> {
    let title = table.title().to_owned();
    let numbers = Some(labelled(table, &title)?);
    Ok(Part { anchor: format!("clusters-{}", index + 1), title, numbers, ..Part::default() })
}

fn labelled(numbers: &Table, title: &str) -> Result<String, TemplateError> {
    numbers.html(&format!("{title}, numbers"))
}

fn slow_calls(bundle: &Bundle, run: &Run, test: &LatencyTest) -> Vec<SlowCall> {
    let drawn = |anchor: String| bundle.causes.iter().any(|part| part.anchor == anchor).then_some(anchor);
    let stopped = test.recorder.iter().flat_map(|recorder| &recorder.stopped).map(|stopped| SlowCall {
        name: format!("pair {}, which stopped", stopped.pair),
        anchor: drawn(anchor_of_recording(&stopped.file)),
        cause: format!("see what `binderperf explain {}` says", stopped.file),
    });
    let saved = test.recorder.iter().flat_map(|recorder| &recorder.saved).map(|saved| SlowCall {
        name: recorder::name(run, test, saved),
        anchor: drawn(saved.anchor()),
        cause: saved.cause.clone(),
    });
    stopped.chain(saved).collect()
}

fn part(bundle: &Bundle, index: usize, entry: &Entry) -> Result<Part, TemplateError> {
    let run = &entry.run;
    let mut part = Part {
        anchor: anchor(index),
        title: run.title(),
        file: entry.name.clone(),
        warnings: warnings(run),
        environment: environment::rows(run),
        command: run.plan.command_line.join(" "),
        ..Part::default()
    };
    if let Some(reason) = run.ended_early() {
        part.warnings.push(format!("INCOMPLETE: {reason}"));
    }
    let table = numbers(run);
    let mut beside = None;
    match &run.measured {
        Measured::Latency(test) if test.sweep.is_none() => {
            part.chart = latency::chart(run, test);
            part.terms = latency::terms();
            beside = reference::latencies(run, test);
            part.inheritance = Some(inheritance(test));
            part.recorder = recorder::cost(run, test);
            part.slow = slow_calls(bundle, run, test);
            let hops = Some(hops(test)).filter(|hops| !hops.is_empty());
            part.hops = hops.map(|hops| hops.html("hops")).transpose()?;
        }
        Measured::Latency(test) => {
            part.chart = test.sweep.as_ref().and_then(|of_test| sweep::chart::chart(run, of_test));
            part.text = Some(summary(run, ""));
        }
        Measured::Overload(experiment) => part.chart = overload::chart::chart(run, experiment),
        Measured::Background(experiment) => part.chart = background::chart::chart(run, experiment),
        Measured::Cases if table.is_some() => {
            part.chart = throughput::chart(run);
            beside = reference::rates(run);
        }
        Measured::Inversion(experiment) => {
            part.chart = inversion::chart::chart(run, experiment);
            part.text = Some(summary(run, ""));
        }
        Measured::Cases => part.text = Some(summary(run, "")),
    }
    part.numbers = table.map(|table| labelled(&table, &part.title)).transpose()?;
    if let Some(table) = beside {
        let title = table.title().to_owned();
        let html = table.html(&format!("{}, {title}", part.title))?;
        part.beside = Some((title, html));
    }
    Ok(part)
}

/// The measured and the promised level, with the evidence.
fn inheritance(test: &crate::LatencyTest) -> String {
    let found = &test.inheritance;
    let level = |level: Option<crate::Level>| level.map_or("unknown", crate::Level::name);
    format!(
        "measured {}, expected {}: {}.",
        level(found.measured),
        level(found.expected),
        found.expected_reason
    )
}
