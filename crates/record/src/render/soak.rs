//! A soak as text and as a page: a table of all series with their verdicts, and a chart of each.
//! Not here: the verdicts (`crate::soak::judge`), the style and the markup of charts (`super::report`, `super::chart`).

use std::collections::BTreeMap;

use page::{Axis, TemplateError};
use serde::Serialize;

use super::chart::{Chart, Dot, Series as Line, Tick, label, percent};
use super::printable;
use super::report::STYLE;
use super::table::{Cell, Look, Row, Table, cells};
use crate::date::milliseconds;
use crate::schema::ClockUnit;
use crate::soak::Soak;
use crate::soak::judge::{Drift, FALSE_ALARMS, Kind, LEAST_WARM_UP, MOST_WARM_UP, Point, SMALLEST, Series};

const PAGE: &str = concat!(include_str!("chart/chart.html"), include_str!("soak.html"));
/// Reasons that are listed; the rest is counted.
const MOST_REASONS: usize = 10;

/// The soak as text.
#[must_use]
pub fn text(soak: &Soak, judged: &[Series]) -> String {
    let mut text: String = head(soak, judged).into_iter().map(|line| line + "\n").collect();
    text = format!("{}\n{text}\n{}", printable(&soak.setup.setup), table(soak, judged).text());
    for missing in missing(soak) {
        text += &format!("{missing}\n");
    }
    text
}

/// The soak as a page.
///
/// # Errors
/// [`TemplateError`] if the template is faulty.
pub fn html(soak: &Soak, judged: &[Series]) -> Result<String, TemplateError> {
    let part = |series: &Series| {
        let chart = chart(soak, series)?;
        Some(Part { name: format!("{}: {}", series.name, words(series.drift)), chart })
    };
    let values = Values {
        setup: &soak.setup.setup,
        head: head(soak, judged),
        table: table(soak, judged).html("all series")?,
        missing: missing(soak),
        parts: bad_first(judged).into_iter().filter_map(part).collect(),
    };
    Ok(page::document("binderperf soak", STYLE, &page::render(PAGE, &values)?))
}

#[derive(Serialize)]
struct Values<'s> {
    setup: &'s str,
    head: Vec<String>,
    table: String,
    missing: Vec<String>,
    parts: Vec<Part>,
}

#[derive(Serialize)]
struct Part {
    name: String,
    chart: Chart,
}

/// All series, first those that drift or grow.
fn bad_first(judged: &[Series]) -> Vec<&Series> {
    let mut all: Vec<&Series> = judged.iter().collect();
    all.sort_by_key(|series| !series.drift.is_bad());
    all
}

/// The verdict, and what the soak was.
fn head(soak: &Soak, judged: &[Series]) -> Vec<String> {
    let bad: Vec<&str> =
        judged.iter().filter(|series| series.drift.is_bad()).map(|series| series.name.as_str()).collect();
    let unknown = judged.iter().filter(|series| matches!(series.drift, Drift::CannotTell { .. })).count();
    let steady = judged.len() - bad.len() - unknown;
    let verdict = match (bad.len(), steady) {
        (0, 0) if judged.iter().all(|series| series.change.is_none()) => {
            "It cannot be told whether anything drifts: too few turns.".to_owned()
        }
        (0, 0) => {
            "It cannot be told whether anything drifts: the values vary too much for so few turns.".to_owned()
        }
        (0, _) if unknown == 0 => "Nothing drifts.".to_owned(),
        (0, _) => {
            format!("Nothing is seen to drift; of {unknown} of {} series it cannot be told.", judged.len())
        }
        (count, _) => {
            format!("{count} of {} series drift or grow: {}.", judged.len(), printable(&bad.join("; ")))
        }
    };
    let (turns, stretches) = (soak.turns.len() as u64, soak.gaps().count() as u64 + 1);
    let time = time(soak.soaked_s());
    let mut lines = vec![verdict];
    let failed = soak.turns.iter().filter(|turn| !turn.failed.is_empty()).count() as u64;
    lines.extend(
        (failed > 0).then(|| format!("Tests FAILED in {}, see below.", units::counted(failed, "turn"))),
    );
    lines.push(format!(
        "{} in {time}, {}.",
        units::counted(turns, "turn"),
        match stretches {
            1 => "without a break".to_owned(),
            _ => format!("in {stretches} stretches"),
        }
    ));
    lines.extend(soak.gaps().map(|(before, after)| {
        let gap = milliseconds(&after.began).zip(milliseconds(&before.ended));
        let gap = gap.map_or("an unknown time".to_owned(), |(after, before)| {
            self::time((after - before).max(0) as f64 / 1e3)
        });
        let why = if before.boot == after.boot { "in the same boot" } else { "after a reboot" };
        let (last, next) = (before.turn, after.turn);
        format!("Between turns {last} and {next} was a gap of {gap} by the clock; it went on {why}.")
    }));
    lines
}

fn table(soak: &Soak, judged: &[Series]) -> Table {
    let row = |series: &Series| -> Row {
        let look = if series.drift.is_bad() { Look::Bad } else { Look::Plain };
        let interval = series.change.map(|change| format!("{} to {}", share(change.low), share(change.high)));
        cells![
            &series.name,
            series.turns,
            value(series.kind, soak.setup.unit, series.level),
            series.change.map(|change| share(change.value)),
            interval,
            Cell::from(words(series.drift)).look(look),
        ]
    };
    let confidence = 100.0 * (1.0 - FALSE_ALARMS);
    let notes = [
        format!(
            "Change: over the judged turns, as a share of the level at its start. A series drifts or grows if the interval \
             excludes zero and the change exceeds {:.0} %; the intervals hold together with {confidence:.0} %.",
            100.0 * SMALLEST
        ),
        format!(
            "Warm-up is left out: of each stretch the first tenth of its turns, at least {LEAST_WARM_UP} and at most \
             {MOST_WARM_UP}. Turns of different stretches are not compared."
        ),
    ];
    Table::new(["Series", "turns", "at first", "change", "interval", "verdict"])
        .rows(bad_first(judged).into_iter().map(row))
        .notes(notes)
}

/// A change in percent.
fn share(change: f64) -> String {
    format!("{:+.1} %", 100.0 * change)
}

fn value(kind: Kind, unit: ClockUnit, value: f64) -> String {
    match kind {
        Kind::Figure => unit.show(value),
        Kind::Count => units::without_zeros(&format!("{value:.1}")).to_owned(),
    }
}

fn words(drift: Drift) -> String {
    match drift {
        Drift::Steady => "steady".to_owned(),
        Drift::Drifts => "DRIFTS".to_owned(),
        Drift::Grows => "GROWS".to_owned(),
        Drift::CannotTell { needed: None } => "cannot be told".to_owned(),
        Drift::CannotTell { needed: Some(turns) } => format!("cannot be told (about {turns} turns needed)"),
    }
}

/// Failures and missing values, with the number of turns, the most frequent first.
fn missing(soak: &Soak) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for turn in &soak.turns {
        let failed = turn.failed.iter().map(|why| ("FAILED", why));
        for (what, why) in failed.chain(turn.missing.iter().map(|why| ("Missing", why))) {
            *counts.entry((what, why)).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut lines: Vec<String> = counts
        .iter()
        .take(MOST_REASONS)
        .map(|((what, why), count)| {
            format!("{what} in {}: {}", units::counted(*count, "turn"), printable(why))
        })
        .collect();
    if let Some(more) = counts.len().checked_sub(MOST_REASONS).filter(|more| *more > 0) {
        lines.push(format!("and {more} further reasons"));
    }
    if !soak.strange.is_empty() {
        let lines_of_log = units::counted(soak.strange.len() as u64, "line");
        lines.push(format!(
            "{lines_of_log} of the log are no turn and were passed over, the first is {}",
            soak.strange[0]
        ));
    }
    lines
}

/// A time in the unit that suits it.
fn time(seconds: f64) -> String {
    let (one, unit) = scale(seconds);
    format!("{} {unit}", units::without_zeros(&format!("{:.1}", seconds / one)))
}

/// Seconds of the unit that suits a time, and its name.
fn scale(seconds: f64) -> (f64, &'static str) {
    match seconds {
        ..180.0 => (1.0, "s"),
        ..10_800.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    }
}

/// The values over the time soaked, and their trend; `None` without values.
fn chart(soak: &Soak, series: &Series) -> Option<Chart> {
    let all: Vec<Point> = series.points.iter().flatten().copied().collect();
    let (first, last) = (all.first()?, all.last()?);
    let base = if series.kind == Kind::Count { series.level.max(1.0) } else { series.level };
    let (low, high) = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
        (low.min(point.value), high.max(point.value))
    });
    // Noise that is small against the level looks small.
    let margin = ((high - low) * 0.1).max(high.abs() * 0.05).max(1.0);
    let up = Axis::linear((low - margin).max(0.0), high + margin);
    let (one, unit) = scale(soak.soaked_s());
    let across = Axis::linear(0.0, soak.soaked_s() / one);
    let dot = |point: &Point| Dot::new(across.at(point.soaked_s / one), up.at(point.value), String::new());
    // Each stretch has a line.
    let stretches = series.points.iter().filter(|points| !points.is_empty()).enumerate();
    let mut lines: Vec<Line> = stretches
        .map(|(at, points)| Line {
            name: if at == 0 { "turns".to_owned() } else { String::new() },
            meaning: "each turn, in a long soak the median of neighbours",
            label_at: 0.0,
            look: "1".to_owned(),
            dots: points.iter().map(dot).collect(),
            dotted: points.len() < 2,
        })
        .collect();
    if let Some(change) = series.change {
        let to = series.level + change.value * base;
        lines.push(Line {
            name: "trend".to_owned(),
            meaning: "Theil and Sen's slope, from turns of the same stretch",
            label_at: 0.0,
            look: "2".to_owned(),
            dots: vec![dot(&Point { value: series.level, ..*first }), dot(&Point { value: to, ..*last })],
            dotted: false,
        });
    }
    lines.truncate(40);
    label(&mut lines);
    let columns = across.ticks().into_iter().map(|at| Tick {
        percent: percent(across.at(at)),
        label: format!("{at:.0} {unit}"),
        wide: false,
    });
    let rows = up.ticks().into_iter().map(|at| Tick {
        percent: percent(1.0 - up.at(at)),
        label: value(series.kind, soak.setup.unit, at),
        wide: false,
    });
    let change = series.change.map_or("no trend can be told".to_owned(), |change| {
        format!("change {} ({} to {})", share(change.value), share(change.low), share(change.high))
    });
    Some(Chart {
        caption: format!("{} over the time soaked: {change}", series.name),
        columns: columns.collect(),
        rows: rows.collect(),
        series: lines,
        limits: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::judge::judge;
    use crate::soak::{Setup, Turn};

    /// 30 turns in two stretches: a steady figure and a count that grows.
    fn soak() -> Soak {
        let turn = |at: u64| Turn {
            turn: at + 1,
            stretch: at / 20 + 1,
            began: format!("2026-01-31T12:{at:02}:00+00:00"),
            ended: format!("2026-01-31T12:{at:02}:40+00:00"),
            boot: if at < 20 { "a" } else { "b" }.to_owned(),
            soaked_s: (at + 1) as f64 * 60.0,
            figures: [("BM_x/4 median".to_owned(), 2500.0)].into(),
            counts: [("driver nodes<b>".to_owned(), 5.0 + at as f64)].into(),
            failed: (at == 3).then(|| "throughput: \u{1b}[2J".to_owned()).into_iter().collect(),
            missing: vec!["kernel log complaints: EPERM".to_owned()],
        };
        Soak {
            setup: Setup::new("board; embedded".to_owned(), ClockUnit::Ns),
            turns: (0..30).map(turn).collect(),
            strange: vec![7],
        }
    }

    #[test]
    fn the_table_names_what_grows_and_the_gap() {
        let soak = soak();
        let text = text(&soak, &judge(&soak));
        for part in [
            "1 of 2 series drift or grow: driver nodes<b>.",
            "30 turns in 30 min, in 2 stretches.",
            "Between turns 20 and 21 was a gap of 20 s by the clock; it went on after a reboot.",
            "2.50 us",
            "GROWS",
            "steady",
            "Tests FAILED in 1 turn",
            "FAILED in 1 turn: throughput: ",
            "Missing in 30 turns: kernel log",
            "1 line of the log are no turn",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn the_page_has_a_chart_of_each_series() {
        let soak = soak();
        let judged = judge(&soak);
        let page = html(&soak, &judged).expect("a sound template");
        assert_eq!(page.matches("<figure>").count(), 2);
        assert!(!page.contains("nodes<b>"), "{page}");
        let places = ["driver nodes&lt;b&gt;: GROWS", &format!("{}: steady", judged[0].name)]
            .map(|name| page.find(name));
        assert!(places.is_sorted() && places[0].is_some(), "what grows comes first: {places:?}");
        let grows = chart(&soak, &judged[1]).expect("it has values");
        let trend = &grows.series.last().expect("a trend").dots;
        assert!(trend[1].y < trend[0].y, "more lies higher: {trend:?}");
        assert_eq!(grows.series.len(), 3, "two stretches and the trend");
    }

    #[test]
    fn too_few_turns_are_said_to_be_that() {
        let soak = Soak { turns: soak().turns[..3].to_vec(), ..soak() };
        let text = text(&soak, &judge(&soak));
        assert!(text.contains("too few turns") && text.contains("turns needed"), "{text}");
    }
}
