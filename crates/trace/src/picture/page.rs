//! Room: the page around the pictures: what the trace says as a whole, each slow call with its sentence.
//! Not here: the pictures (`svg`), the words of the verdict (`verdict`).

use std::fmt::{self, Write};

use super::escape::Escaped;
use super::layout::Layout;
use super::paint::Paint;
use super::scene::Scene;
use super::svg;
use crate::verdict::text::{Time, prio};
use crate::verdict::{Analysis, Reason, Slow, Sum};

/// Reasons below this share of a call have a row together.
const WORTH_A_ROW: f64 = 0.005;

const STYLE: &str = include_str!("style.css");

/// The whole page, as HTML that needs nothing else: no script, no file, no network. `title` says which trace
/// it is; the scenes are those of a [`super::Watch`] of the same trace, in its order.
///
/// # Errors
/// None that could be met: it is written into memory.
pub fn page(
    title: &str,
    analysis: &Analysis,
    (busiest, slow): (Option<&Scene>, &[Scene]),
) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let title = Escaped(title);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
        <title>{title}: Binder transactions</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{}\
        <header>\n<h1>Binder transactions</h1>\n<p class=\"faint\">{title}</p>\n</header>\n<main>\n",
        svg::STORE
    )?;
    all(&mut out, analysis, (busiest, slow))?;
    out.push_str("</main>\n</body>\n</html>\n");
    Ok(out)
}

/// The class of the element that [`fragment`] belongs into.
pub const FRAGMENT_CLASS: &str = "binder-transactions";

/// The same without the page around it, for a page of somebody else's: the rules for its looks, which touch
/// nothing outside of an element of the class [`FRAGMENT_CLASS`], and the HTML of that element. The other page is to
/// leave it as much room as [`page`] would.
///
/// # Errors
/// As [`page`].
pub fn fragment(
    analysis: &Analysis,
    (busiest, slow): (Option<&Scene>, &[Scene]),
) -> Result<(String, String), fmt::Error> {
    let mut out = String::new();
    write!(out, "<div class=\"{FRAGMENT_CLASS}\">\n{}", svg::STORE)?;
    all(&mut out, analysis, (busiest, slow))?;
    out.push_str("</div>\n");
    Ok((scoped(STYLE), out))
}

/// Rules for a page as rules for an element in it. The page's own margins are the other's.
fn scoped(style: &str) -> String {
    let inside = style.replace(":root", "&").replace("\nbody {", "\n& {").replace("\nhtml {", "\n& {");
    format!(".{FRAGMENT_CLASS} {{\n{inside}\nmargin: 0; padding: 0; max-width: none;\n}}\n")
}

fn all(out: &mut String, analysis: &Analysis, (busiest, slow): (Option<&Scene>, &[Scene])) -> fmt::Result {
    facts(out, analysis)?;
    sums(out, analysis)?;
    if let Some(scene) = busiest {
        stretch(out, analysis, scene)?;
    }
    calls(out, analysis, slow)
}

fn fact(out: &mut String, bad: bool, what: &str, value: &str) -> fmt::Result {
    let class = if bad { " class=\"bad\"" } else { "" };
    writeln!(out, "<div{class}><dt>{what}</dt><dd>{value}</dd></div>")
}

/// What there was, and what was wrong with the trace.
fn facts(out: &mut String, analysis: &Analysis) -> fmt::Result {
    let counts = &analysis.counts;
    if analysis.lost > 0 || analysis.gaps > 0 {
        let (lost, gaps) = (analysis.lost, analysis.gaps);
        writeln!(out, "<p class=\"warning\">{lost} events lost, {gaps} gaps of unknown size</p>")?;
    }
    for problem in &analysis.problems {
        writeln!(out, "<p class=\"warning\">{}</p>", Escaped(problem))?;
    }
    out.push_str("<dl class=\"facts\">\n");
    fact(out, false, "recorded", &Time(analysis.span_ns).to_string())?;
    fact(out, false, "calls", &counts.calls.to_string())?;
    if let Some(deadline) = analysis.deadline_ns {
        fact(out, counts.missed > 0, &format!("over {}", Time(deadline)), &counts.missed.to_string())?;
    }
    let inversions = &analysis.inversions;
    if inversions.urgent_calls > 0 {
        let value = format!("{} of {} urgent", inversions.calls, inversions.urgent_calls);
        fact(out, inversions.calls > 0, "priority inversion", &value)?;
    }
    for (count, what) in [
        (counts.nested, "of them nested"),
        (counts.oneway, "oneway"),
        (counts.failed, "failed"),
        (counts.cut, "cut off by the trace's end"),
        (counts.doubtful, "not judged for missing events"),
    ] {
        if count > 0 {
            fact(out, false, what, &count.to_string())?;
        }
    }
    out.push_str("</dl>\n");
    Ok(())
}

/// Where the time of many calls went.
fn sums(out: &mut String, analysis: &Analysis) -> fmt::Result {
    let tables = [
        ("all calls", &analysis.all),
        ("the slowest 1 %", &analysis.slowest),
        ("oneway calls", &analysis.oneway),
    ];
    if tables.iter().all(|(_, sum)| sum.calls == 0) {
        return Ok(());
    }
    out.push_str("<h2>Where the time went</h2>\n<div class=\"tables\">\n");
    for (what, sum) in tables.into_iter().filter(|(_, sum)| sum.calls > 0) {
        let Sum { calls, ns, min_ns, p50_ns, p99_ns, max_ns, shares } = sum;
        writeln!(
            out,
            "<div>\n<table>\n<caption>{what}: {calls}, together {}</caption>\n<thead><tr><th>cause</th>\
            <th class=\"number\">time</th><th class=\"number\">share</th></tr></thead>\n<tbody>",
            Time(*ns)
        )?;
        for share in shares.iter().filter(|share| share.share >= 0.001) {
            row(out, &share.cause.replace('_', " "), share.ns, share.share)?;
        }
        writeln!(
            out,
            "</tbody>\n</table>\n<p class=\"faint\">least {}, median {}, 99 % {}, most {}</p>\n</div>",
            Time(*min_ns),
            Time(*p50_ns),
            Time(*p99_ns),
            Time(*max_ns)
        )?;
    }
    if !analysis.behind.is_empty() {
        out.push_str("<div>\n<table>\n<caption>waited behind</caption>\n<tbody>\n");
        for task in &analysis.behind {
            let who = task.to_string();
            writeln!(out, "<tr><td>{}</td><td class=\"number\">{}</td></tr>", Escaped(&who), Time(task.ns))?;
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }
    out.push_str("</div>\n");
    Ok(())
}

fn row(out: &mut String, what: &str, ns: u64, share: f64) -> fmt::Result {
    writeln!(
        out,
        "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{:.1} %</td></tr>",
        Escaped(what),
        Time(ns),
        share * 100.0
    )
}

/// Many pairs at once.
fn stretch(out: &mut String, analysis: &Analysis, scene: &Scene) -> fmt::Result {
    let Some(busy) = analysis.busiest else { return Ok(()) };
    let layout = Layout::new(scene, None);
    let (calls, pairs) = (busy.calls, busy.pairs);
    let pairs = match pairs {
        0 => String::new(),
        1 => " of one pair of client and server".to_owned(),
        _ => format!(" of {pairs} pairs of client and server"),
    };
    let said = format!(
        "{calls} calls in a row{pairs}, in {}: the stretch of this trace with the most pairs that have a server of their own.",
        Time(busy.ns)
    );
    out.push_str("<h2>Who called whom</h2>\n<figure id=\"busiest\">\n");
    svg::write(out, &layout, &said)?;
    legend(out, &layout)?;
    let hues = if busy.pairs > 1 {
        " Each pair has a hue of its own, the server's is the lighter one; the legend has pair 1's."
    } else {
        ""
    };
    writeln!(out, "<figcaption><p>{said}{hues}</p>")?;
    left_out(out, scene, &layout)?;
    out.push_str("</figcaption>\n</figure>\n");
    Ok(())
}

/// The slow calls, each with its picture.
fn calls(out: &mut String, analysis: &Analysis, scenes: &[Scene]) -> fmt::Result {
    if analysis.slow.is_empty() {
        return Ok(());
    }
    out.push_str("<h2>Slow calls</h2>\n");
    let without = analysis.slow.len().saturating_sub(scenes.len());
    if without > 0 {
        let (drawn, all) = (scenes.len(), analysis.slow.len());
        writeln!(
            out,
            "<p>The slowest {drawn} of {all} calls have a picture; the other {without} are told below them.</p>"
        )?;
    }
    for (number, (slow, scene)) in analysis.slow.iter().zip(scenes).enumerate() {
        call(out, number + 1, slow, scene)?;
    }
    if without > 0 {
        out.push_str("<h3>Without a picture</h3>\n<ul>\n");
        for slow in analysis.slow.iter().skip(scenes.len()) {
            let miss = if slow.missed { "<strong class=\"miss\">MISS</strong> " } else { "" };
            writeln!(out, "<li>{miss}{}</li>", Escaped(&slow.verdict))?;
        }
        out.push_str("</ul>\n");
    }
    Ok(())
}

fn call(out: &mut String, number: usize, slow: &Slow, scene: &Scene) -> fmt::Result {
    let layout = Layout::new(scene, Some(slow));
    let miss = if slow.missed { ": <span class=\"miss\">over the deadline</span>" } else { "" };
    let (id, time) = (slow.debug_id, Time(slow.ns));
    writeln!(out, "<figure id=\"call-{number}\">\n<h3>{number}. Call {id}, {time}{miss}</h3>")?;
    svg::write(out, &layout, &slow.verdict)?;
    legend(out, &layout)?;
    writeln!(out, "<figcaption>\n<p>{}</p>", Escaped(&slow.verdict))?;
    left_out(out, scene, &layout)?;
    out.push_str(
        "<table>\n<thead><tr><th>cause</th><th class=\"number\">time</th><th class=\"number\">share</th></tr></thead>\n<tbody>\n",
    );
    let (told, small): (Vec<&Reason>, Vec<&Reason>) =
        slow.reasons.iter().partition(|reason| reason.share >= WORTH_A_ROW);
    for reason in told {
        row(out, &words(reason), reason.ns, reason.share)?;
    }
    if !small.is_empty() {
        let what = format!("{} others, each less than {} %", small.len(), WORTH_A_ROW * 100.0);
        let share = small.iter().map(|reason| reason.share).sum();
        row(out, &what, small.iter().map(|reason| reason.ns).sum(), share)?;
    }
    writeln!(
        out,
        "</tbody>\n<tfoot><tr><td>the whole call</td><td class=\"number\">{time}</td><td class=\"number\">100 %</td></tr></tfoot>\n</table>\n</figcaption>\n</figure>"
    )
}

/// A reason in a few words, for a table.
fn words(reason: &Reason) -> String {
    // Who computed is in its name already, but for whoever works for the server.
    let (mut text, role) = match (reason.cause.as_str(), reason.role.as_str()) {
        ("client_running", _) => ("caller running".to_owned(), None),
        ("server_running", "server") => ("server running".to_owned(), None),
        ("server_running", _) => ("another thread running for this call".to_owned(), None),
        (cause, role) => (cause.replace('_', " "), Some(role)),
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

/// What the fills and arrows of this picture mean.
fn legend(out: &mut String, layout: &Layout) -> fmt::Result {
    out.push_str("<ul class=\"legend\">\n");
    let pairs = layout.lanes.iter().flat_map(|lane| &lane.bars).any(|bar| bar.pair > 0);
    for paint in layout.paints() {
        let (class, meaning) = (paint.class(), paint.legend());
        let hue = if pairs && matches!(paint, Paint::Caller | Paint::Server) { " pair1" } else { "" };
        writeln!(
            out,
            "<li><svg aria-hidden=\"true\"><rect class=\"{class}{hue}\" width=\"22\" height=\"12\"/></svg>{meaning}</li>"
        )?;
    }
    for (reply, meaning) in [
        (false, "request, until the server is woken or takes it"),
        (true, "reply, until the caller is woken or has it"),
    ] {
        if layout.arrows.iter().any(|arrow| arrow.reply == reply) {
            let class = if reply { "arrow reply" } else { "arrow" };
            writeln!(
                out,
                "<li><svg class=\"picture-key\" aria-hidden=\"true\"><line class=\"{class}\" x1=\"0\" y1=\"6\" x2=\"22\" y2=\"6\" marker-end=\"url(#head)\"/></svg>{meaning}</li>"
            )?;
        }
    }
    if !layout.dots.is_empty() {
        out.push_str("<li><svg class=\"picture-key\" aria-hidden=\"true\"><circle class=\"taken\" cx=\"11\" cy=\"6\" r=\"3\"/></svg>the server takes the call</li>\n");
    }
    out.push_str("</ul>\n");
    Ok(())
}

/// What the picture does not show.
fn left_out(out: &mut String, scene: &Scene, layout: &Layout) -> fmt::Result {
    let missing = scene.left_out;
    for (count, what) in [
        (missing.slices, "slices not drawn, the shortest of their lanes"),
        (missing.threads, "threads not drawn"),
        (missing.cpus, "CPUs not drawn"),
        (missing.calls, "calls without arrows"),
        (
            layout.together,
            "parts of this call drawn together with their neighbours, in the fill of the longest",
        ),
    ] {
        if count > 0 {
            writeln!(out, "<p class=\"faint\">{count} {what}</p>")?;
        }
    }
    Ok(())
}
