//! Records beside one another as text, JSON and one HTML page: who stands out first, then each case.
//! Not here: who stands out (`crate::across`).

use std::collections::BTreeSet;

use page::{Axis, TemplateError};
use serde::Serialize;

use super::table::{Table, cells};
use crate::across::{Across, CaseAcross, Deviation, FEWEST, GroupFigure, Key, NEGLIGIBLE, Outlier, Stray};
use crate::schema::ClockUnit;

/// The value of `schema` in [`json()`].
pub const SCHEMA: &str = "binderperf.across";
/// Most groups with a column of their own in a text.
const COLUMNS: usize = 6;
/// Most groups in a table of the page: those farthest from the middle.
const SHOWN: usize = 100;
/// Most lines in the list of those that stand out.
const LISTED: usize = 30;

const PAGE: &str = include_str!("across/page.html");
const STYLE: &str = concat!(include_str!("report/style.css"), include_str!("across/style.css"));

/// The text for a terminal.
#[must_use]
pub fn text(found: &Across) -> String {
    let mut text = format!("{}\n\n{}", head(found), stands_out(found));
    text += &found
        .outliers
        .iter()
        .take(LISTED)
        .map(|one| format!("  {}\n", outlier(found, one)))
        .collect::<String>();
    text += &more(found.outliers.len());
    if !found.strays.is_empty() {
        text += &format!("\nRecords unlike the others of their {}:\n", found.by.word());
        text += &found
            .strays
            .iter()
            .take(LISTED)
            .map(|one| format!("  {}\n", stray(found, one)))
            .collect::<String>();
        text += &more(found.strays.len());
    }
    for subject in subjects(found) {
        let cases: Vec<&CaseAcross> = found.cases.iter().filter(|case| case.key.subject == subject).collect();
        let names: BTreeSet<&str> =
            cases.iter().flat_map(|case| &case.groups).map(|figure| figure.group.as_str()).collect();
        text += &format!("\n{subject}\n");
        text += &if names.len() <= COLUMNS { each_group(&cases, &names) } else { spread(found, &cases) };
    }
    text
}

/// Every figure as JSON.
#[must_use]
pub fn json(found: &Across) -> String {
    let document = serde_json::json!({ "schema": SCHEMA, "version": 1, "across": found });
    format!("{document:#}\n")
}

/// The whole page.
///
/// # Errors
/// [`TemplateError`] if the template is faulty.
pub fn html(found: &Across) -> Result<String, TemplateError> {
    let parts = subjects(found).into_iter().enumerate().map(|(index, subject)| {
        let cases = found.cases.iter().filter(|case| case.key.subject == subject);
        let cases = cases.map(|case| drawn(found, case)).collect::<Result<_, _>>()?;
        Ok(Part { anchor: format!("part-{}", index + 1), subject, cases })
    });
    let values = Values {
        head: head(found),
        word: found.by.word(),
        metric: found.metric.name(),
        stands_out: stands_out(found).trim_end().to_owned(),
        outliers: found.outliers.iter().take(LISTED).map(|one| outlier(found, one)).collect(),
        more_outliers: more(found.outliers.len()).trim().to_owned(),
        strays: found.strays.iter().take(LISTED).map(|one| stray(found, one)).collect(),
        more_strays: more(found.strays.len()).trim().to_owned(),
        parts: parts.collect::<Result<_, _>>()?,
    };
    Ok(page::document("binderperf across", STYLE, &page::render(PAGE, &values)?))
}

#[derive(Serialize)]
struct Values {
    head: String,
    word: &'static str,
    metric: &'static str,
    stands_out: String,
    outliers: Vec<String>,
    more_outliers: String,
    strays: Vec<String>,
    more_strays: String,
    parts: Vec<Part>,
}

#[derive(Serialize)]
struct Part {
    anchor: String,
    subject: String,
    cases: Vec<Drawn>,
}

/// A case as a strip of dots and a table.
#[derive(Serialize)]
struct Drawn {
    case: String,
    groups: usize,
    least: String,
    middle: String,
    greatest: String,
    dots: Vec<Mark>,
    /// Place of the middle: percent from the left.
    middle_at: f64,
    /// The groups as HTML.
    table: String,
    stands_out: usize,
}

/// A group in a strip.
#[derive(Serialize)]
struct Mark {
    /// Percent from the left.
    at: f64,
    stands_out: bool,
    title: String,
}

fn drawn(found: &Across, case: &CaseAcross) -> Result<Drawn, TemplateError> {
    let show = |value| case.unit.show(value);
    let axis = Axis::around(case.groups.iter().map(|figure| figure.value));
    let at = |value| (axis.map_or(0.5, |axis| axis.at(value)) * 10_000.0).round() / 100.0;
    let title = |figure: &GroupFigure| {
        format!("{}: {}, {}", figure.group, show(figure.value), times(figure.value, case.middle))
    };
    let mark = |figure: &GroupFigure| Mark {
        at: at(figure.value),
        stands_out: figure.stands_out,
        title: title(figure),
    };
    let mut shown: Vec<&GroupFigure> = case.groups.iter().collect();
    let far = |figure: &GroupFigure| (figure.value / case.middle).ln().abs();
    shown.sort_by(|one, other| far(other).total_cmp(&far(one)));
    let omitted = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    let row = |figure: &GroupFigure| {
        cells![
            &figure.group,
            figure.records,
            show(figure.value),
            format!("{} to {}", show(figure.least), show(figure.greatest)),
            times(figure.value, case.middle) + if figure.stands_out { ", stands out" } else { "" },
        ]
    };
    let to_middle = format!("to the middle, {}", show(case.middle));
    let heads = [found.by.word(), "records", found.metric.name(), "of its records", &to_middle];
    let more = (omitted > 0).then(|| format!("and {omitted} more, nearer to the middle"));
    let table = Table::new(heads).rows(shown.into_iter().map(row)).notes(more);
    let ends = (case.groups.last(), case.groups.first());
    Ok(Drawn {
        case: case.key.case.clone(),
        groups: case.groups.len(),
        least: ends.0.map(|figure| show(figure.value)).unwrap_or_default(),
        middle: show(case.middle),
        greatest: ends.1.map(|figure| show(figure.value)).unwrap_or_default(),
        dots: case.groups.iter().map(mark).collect(),
        middle_at: at(case.middle),
        table: table.html(&case.key.case)?,
        stands_out: standing(case),
    })
}

fn standing(case: &CaseAcross) -> usize {
    case.groups.iter().filter(|figure| figure.stands_out).count()
}

fn subjects(found: &Across) -> BTreeSet<String> {
    found.cases.iter().map(|case| case.key.subject.clone()).collect()
}

fn head(found: &Across) -> String {
    let [devices, kernels, builds] = found.names.each_ref().map(BTreeSet::len);
    format!(
        "{} of {} ({}, {}), by {}: the {} of each case; a {}'s figure is the median of its records.",
        counted(found.records, "record"),
        counted(devices, "device"),
        counted(kernels, "kernel"),
        counted(builds, "build"),
        found.by.word(),
        found.metric.name(),
        found.by.word()
    )
}

/// Who stands out, in a sentence with its rule.
fn stands_out(found: &Across) -> String {
    let most = found.cases.iter().map(|case| case.groups.len()).max().unwrap_or(0);
    let word = found.by.word();
    if most < FEWEST {
        return format!(
            "No {word} can be called unusual: that takes {FEWEST} of the same case, and there are at most {most}.\n"
        );
    }
    let rule = format!(
        "more than 3.5 times the usual deviation (modified z-score) and {:.0} % from the middle of all",
        (NEGLIGIBLE - 1.0) * 100.0
    );
    match found.outliers.len() {
        0 => format!("No {word} stands out: none is {rule}.\n"),
        1 => format!("1 {word} stands out: {rule}.\n"),
        some => format!("{some} {word}s stand out: {rule}.\n"),
    }
}

fn outlier(found: &Across, one: &Outlier) -> String {
    let cases = format!("{} of {}", one.deviation.cases, counted(one.of, "case"));
    format!("{}: in {cases}{}", one.group, most(found, &one.deviation))
}

fn stray(found: &Across, one: &Stray) -> String {
    let cases = counted(one.deviation.cases, "case");
    format!("{} ({}): in {cases}{}", one.file, one.group, most(found, &one.deviation))
}

/// The case with the largest deviation.
fn most(found: &Across, Deviation { worst, value, middle, .. }: &Deviation) -> String {
    let unit = found.cases.iter().find(|case| case.key == *worst).map_or(ClockUnit::Ns, |case| case.unit);
    let (ratio, value, middle) = (times(*value, *middle), unit.show(*value), unit.show(*middle));
    format!(", most in {}: {value} against {middle}, {ratio}", named(worst))
}

fn named(key: &Key) -> String {
    format!("{} ({})", key.case, key.subject)
}

fn times(value: f64, middle: f64) -> String {
    format!("{:.2}x", value / middle)
}

fn more(all: usize) -> String {
    if all > LISTED { format!("  and {} more\n", all - LISTED) } else { String::new() }
}

fn counted(number: usize, word: &str) -> String {
    units::counted(number as u64, word)
}

/// A column for each group.
fn each_group(cases: &[&CaseAcross], names: &BTreeSet<&str>) -> String {
    let row = |case: &&CaseAcross| {
        let cell = |name: &&str| {
            let figure = case.groups.iter().find(|figure| figure.group == *name);
            figure.map_or("-".to_owned(), |figure| {
                let mark = if figure.stands_out { " !" } else { "" };
                case.unit.show(figure.value) + mark
            })
        };
        cells![&case.key.case].and(names.iter().map(cell))
    };
    Table::new(["Case"].iter().chain(names)).rows(cases.iter().map(row)).text()
}

/// Ends and middle of many groups.
fn spread(found: &Across, cases: &[&CaseAcross]) -> String {
    let groups = format!("{}s", found.by.word());
    let heads = ["Case", &groups, "least", "middle", "greatest", "greatest/least", "stand out"];
    let row = |case: &&CaseAcross| {
        let (least, greatest) = (case.groups.last(), case.groups.first());
        let ends = least.zip(greatest).map(|(least, greatest)| (least.value, greatest.value));
        let (least, greatest) = ends.unwrap_or_default();
        cells![
            &case.key.case,
            case.groups.len(),
            case.unit.show(least),
            case.unit.show(case.middle),
            case.unit.show(greatest),
            times(greatest, least),
            standing(case),
        ]
    };
    Table::new(heads).rows(cases.iter().map(row)).text()
}

#[cfg(test)]
mod tests;
