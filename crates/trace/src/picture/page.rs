//! HTML page around the pictures: summary of the trace, and each slow call with its sentence.
//! Not here: the template (`page.html`), the sentences (`verdict`).

use std::fmt::Write;

use ::page::{TemplateError, document, render};
use serde::Serialize;

use super::answer::Answer;
use super::data::PictureData;
use super::layout::{ArrowKind, Layout};
use crate::cause::Label;
use crate::cause::paint::Paint;
use crate::model::Outcome;
use crate::verdict::text::{prio, time};
use crate::verdict::{Analysis, MarkCost, Reason, Role, SlowCall, Sum};

/// Reasons below this share of a call share a row.
const WORTH_A_ROW: f64 = 0.005;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// Patterns and arrow heads, once for all pictures of a page.
const DEFINITIONS: &str = include_str!("definitions.svg");

/// Class of the element that must enclose [`fragment`].
pub const FRAGMENT_CLASS: &str = "binder-transactions";

/// Renders a self-contained HTML page, without scripts or external files. `title` names the trace; the pictures are
/// those of a [`super::PictureCollector`] of the same trace, in its order.
///
/// # Errors
/// [`TemplateError`], only if the template is faulty.
pub fn page(
    title: &str,
    analysis: &Analysis,
    (busiest, slow): (Option<&PictureData>, &[PictureData]),
) -> Result<String, TemplateError> {
    let body = render(TEMPLATE, &Values::of(Some(title), "", analysis, (busiest, slow)))?;
    Ok(document(&format!("{title}: Binder transactions"), STYLE, &body))
}

/// A page's body for embedding. It needs the same width as [`page()`].
#[derive(Debug)]
pub struct Embedded {
    /// CSS that applies only inside elements of class [`FRAGMENT_CLASS`], once for all pictures of a page.
    pub style: String,
    /// HTML with the SVG definitions that pictures refer to, once for all pictures of a page.
    pub definitions: String,
    /// The HTML, whose ids begin with the given words.
    pub html: String,
}

/// Renders the page's body for embedding. Its ids begin with `ids`, which no other part of the page has, and a hyphen.
///
/// # Errors
/// [`TemplateError`], only if the template is faulty.
pub fn fragment(
    ids: &str,
    analysis: &Analysis,
    (busiest, slow): (Option<&PictureData>, &[PictureData]),
) -> Result<Embedded, TemplateError> {
    let body = render(TEMPLATE, &Values::of(None, &format!("{ids}-"), analysis, (busiest, slow)))?;
    let scope = |inside: &str| format!("<div class=\"{FRAGMENT_CLASS}\">\n{inside}\n</div>\n");
    Ok(Embedded { style: scoped(STYLE), definitions: scope(DEFINITIONS), html: scope(&body) })
}

/// Scopes a page's CSS rules to an element. The page's own margins are dropped.
fn scoped(style: &str) -> String {
    let inside = style.replace(":root", "&").replace("\nbody {", "\n& {").replace("\nhtml {", "\n& {");
    format!(".{FRAGMENT_CLASS} {{\n{inside}\nmargin: 0; padding: 0; max-width: none;\n}}\n")
}

/// Template values.
#[derive(Serialize)]
struct Values<'a> {
    /// `None` for a fragment.
    title: Option<&'a str>,
    /// Beginning of all ids.
    ids: String,
    definitions: &'static str,
    warnings: Vec<String>,
    facts: Vec<Fact>,
    answer: Option<Answer>,
    sums: Vec<SumTable>,
    /// Tasks that calls waited behind, and for how long.
    behind: Vec<(String, String)>,
    busiest: Option<Busiest>,
    /// Number of calls without an answer and slow ones, with or without a picture.
    slow: usize,
    calls: Vec<Call<'a>>,
    undrawn: Vec<Undrawn<'a>>,
}

#[derive(Serialize)]
struct Fact {
    bad: bool,
    what: String,
    value: String,
}

/// Table of where the time of some calls went.
#[derive(Serialize)]
struct SumTable {
    caption: String,
    rows: Vec<CauseRow>,
    spread: String,
}

#[derive(Serialize)]
struct CauseRow {
    what: String,
    time: String,
    share: String,
}

/// Burst of calls by the most pairs.
#[derive(Serialize)]
struct Busiest {
    caption: String,
    hues: bool,
    drawn: Drawn,
}

/// Slow call with its picture.
#[derive(Serialize)]
struct Call<'a> {
    id: i32,
    time: String,
    unanswered: bool,
    missed: bool,
    verdict: &'a str,
    drawn: Drawn,
    rows: Vec<CauseRow>,
}

/// Slow call without a picture.
#[derive(Serialize)]
struct Undrawn<'a> {
    missed: bool,
    verdict: &'a str,
}

/// Picture, its legend, and what it omits.
#[derive(Serialize)]
struct Drawn {
    layout: Layout,
    fills: Vec<Fill>,
    requests: bool,
    replies: bool,
    wakes: bool,
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Fill {
    class: &'static str,
    /// Whether the legend shows the first pair's hue.
    hue: bool,
    meaning: &'static str,
}

impl<'a> Values<'a> {
    fn of(
        title: Option<&'a str>,
        ids: &str,
        analysis: &'a Analysis,
        (busiest, pictures): (Option<&PictureData>, &[PictureData]),
    ) -> Self {
        let mut warnings = Vec::new();
        if analysis.lost > 0 || analysis.gaps > 0 {
            warnings.push(format!("{} events lost, {} gaps of unknown size", analysis.lost, analysis.gaps));
        }
        warnings.extend(analysis.problems.iter().cloned());
        let all = || analysis.unanswered.iter().filter(|slow| analysis.is_late(slow)).chain(&analysis.slow);
        let drawn: Vec<(&SlowCall, &PictureData)> =
            pictures.iter().filter_map(|data| Some((all().find(|slow| data.shows(slow))?, data))).collect();
        let undrawn = all().filter(|slow| !pictures.iter().any(|data| data.shows(slow)));
        let undrawn: Vec<Undrawn<'_>> =
            undrawn.map(|slow| Undrawn { missed: slow.missed, verdict: &slow.verdict }).collect();
        let picture = |slow: &SlowCall| drawn.iter().position(|(_, data)| data.shows(slow)).map(|at| at + 1);
        Self {
            title,
            ids: ids.to_owned(),
            definitions: DEFINITIONS,
            warnings,
            facts: facts(analysis),
            // A single call's picture is its own answer.
            answer: Answer::of(analysis, &picture).filter(|_| title.is_some() || all().count() > 1),
            sums: sums(analysis),
            behind: analysis.behind.iter().map(|task| (task.to_string(), time(task.ns))).collect(),
            busiest: busiest.and_then(|data| burst(analysis, data)),
            slow: drawn.len() + undrawn.len(),
            calls: drawn.iter().map(|(slow, data)| call(slow, data)).collect(),
            undrawn,
        }
    }
}

/// Facts about the trace.
fn facts(analysis: &Analysis) -> Vec<Fact> {
    let counts = &analysis.counts;
    let fact = |bad: bool, what: &str, value: String| Fact { bad, what: what.to_owned(), value };
    let mut facts =
        vec![fact(false, "recorded", time(analysis.span_ns)), fact(false, "calls", counts.calls.to_string())];
    if let Some(deadline) = analysis.deadline_ns {
        facts.push(fact(counts.missed > 0, &format!("over {}", time(deadline)), counts.missed.to_string()));
    }
    let late = analysis.unanswered.iter().filter(|slow| analysis.is_late(slow)).count() as u64;
    for (count, what) in [(late, "without an answer"), (counts.failed, "failed")] {
        facts.extend((count > 0).then(|| fact(true, what, count.to_string())));
    }
    let inversions = &analysis.inversions;
    if inversions.urgent_calls > 0 {
        facts.push(fact(inversions.calls > 0, "priority inversion", inversions.to_string()));
    }
    let cost = analysis.marks.and_then(MarkCost::words);
    facts.extend(cost.map(|words| fact(false, "cost of recording", words)));
    let others = [
        (counts.nested, "of them nested"),
        (counts.oneway, "oneway"),
        (counts.cut.saturating_sub(late), "under way at the trace's end"),
        (counts.doubtful, "not judged for missing events"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    facts.extend(others.map(|(count, what)| fact(false, what, count.to_string())));
    facts
}

/// Tables of where the time of all calls went.
fn sums(analysis: &Analysis) -> Vec<SumTable> {
    let sums = [
        ("all calls", &analysis.all),
        ("the slowest 1 %", &analysis.slowest),
        ("oneway calls", &analysis.oneway),
    ];
    let table = |(what, sum): (&str, &Sum)| {
        let Sum { calls, ns, min_ns, p50_ns, p99_ns, max_ns, shares } = sum;
        let shares = shares.iter().filter(|share| share.share >= 0.001);
        let [least, median, p99, most] = [min_ns, p50_ns, p99_ns, max_ns].map(|ns| time(*ns));
        SumTable {
            caption: format!("{what}: {calls}, together {}", time(*ns)),
            rows: shares.map(|share| row(share.cause.words(), share.ns, share.share)).collect(),
            spread: format!("least {least}, median {median}, 99 % {p99}, most {most}"),
        }
    };
    sums.into_iter().filter(|(_, sum)| sum.calls > 0).map(table).collect()
}

fn row(what: String, ns: u64, share: f64) -> CauseRow {
    CauseRow { what, time: time(ns), share: format!("{:.1} %", share * 100.0) }
}

/// Summary of the busiest burst.
fn burst(analysis: &Analysis, data: &PictureData) -> Option<Busiest> {
    let busy = analysis.busiest?;
    let pairs = match busy.pairs {
        0 => String::new(),
        1 => " of one pair of client and server".to_owned(),
        pairs => format!(" of {pairs} pairs of client and server"),
    };
    let caption = format!(
        "{} in a row{pairs}, in {}: the stretch of this trace with the most pairs that have a server of their own.",
        units::counted(busy.calls, "call"),
        time(busy.ns)
    );
    Some(Busiest { caption, hues: busy.pairs > 1, drawn: Drawn::of(data, None) })
}

fn call<'a>(slow: &'a SlowCall, data: &PictureData) -> Call<'a> {
    let (large, small): (Vec<&Reason>, Vec<&Reason>) =
        slow.reasons.iter().partition(|reason| reason.share >= WORTH_A_ROW);
    let mut rows: Vec<CauseRow> =
        large.into_iter().map(|reason| row(words(reason), reason.ns, reason.share)).collect();
    if !small.is_empty() {
        let what = format!("{} others, each less than {} %", small.len(), WORTH_A_ROW * 100.0);
        let share = small.iter().map(|reason| reason.share).sum();
        rows.push(row(what, small.iter().map(|reason| reason.ns).sum(), share));
    }
    Call {
        id: slow.debug_id,
        time: time(slow.ns),
        unanswered: slow.outcome == Outcome::Cut,
        missed: slow.missed,
        verdict: &slow.verdict,
        drawn: Drawn::of(data, Some(slow)),
        rows,
    }
}

/// Short form of a reason, for a table.
fn words(reason: &Reason) -> String {
    // The name of a running cause includes the thread, except for threads behind the server.
    let (mut text, role) = match (reason.cause, reason.role) {
        (Label::ClientRunning, _) => (Paint::Caller.legend().to_owned(), None),
        (Label::ServerRunning, Role::Server) => (Paint::Server.legend().to_owned(), None),
        (Label::ServerRunning, _) => (Paint::Further.legend().to_owned(), None),
        (cause, role) => (cause.words(), Some(role.name())),
    };
    if let Some(who) = &reason.who {
        let _ = write!(text, ", {}{who}", role.map(|role| format!("{role} ")).unwrap_or_default());
        if who.prio.is_some() {
            let _ = write!(text, " ({})", prio(who.prio));
        }
    }
    if let Some(behind) = reason.behind.first() {
        let _ = write!(text, ", behind {behind}");
        if reason.behind.len() > 1 {
            let _ = write!(text, " and {} others", reason.behind.len() - 1);
        }
    }
    if let Some(detail) = &reason.detail {
        let _ = write!(text, ", {detail}");
    }
    text
}

impl Drawn {
    fn of(data: &PictureData, slow: Option<&SlowCall>) -> Self {
        let layout = Layout::new(data, slow);
        let pairs = layout.lanes.iter().flat_map(|lane| &lane.bars).any(|bar| bar.pair > 0);
        let fill = |paint: Paint| Fill {
            class: paint.class(),
            hue: pairs && matches!(paint, Paint::Caller | Paint::Server),
            meaning: paint.legend(),
        };
        let missing = data.left_out;
        let left_out = [
            (missing.slices, "slices not drawn, the shortest of their lanes"),
            (missing.threads, "threads not drawn"),
            (missing.cpus, "CPUs not drawn"),
            (missing.calls, "calls without arrows"),
            (
                layout.together,
                "parts of this call drawn together with their neighbours, in the fill of the longest",
            ),
        ];
        let left_out = left_out.into_iter().filter(|(count, _)| *count > 0);
        let has = |kind| layout.arrows.iter().any(|arrow| arrow.kind == kind);
        Self {
            fills: layout.paints().into_iter().map(fill).collect(),
            requests: has(ArrowKind::Request),
            replies: has(ArrowKind::Reply),
            wakes: has(ArrowKind::Wake),
            left_out: left_out.map(|(count, what)| format!("{count} {what}")).collect(),
            layout,
        }
    }
}
