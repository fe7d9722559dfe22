//! The answer as a page, or as a part of another page: the findings, and a picture of who waits for whom.
//! Not here: how they are found (`find`), the document around a page (crate `page`).

use std::collections::{BTreeMap, BTreeSet};

use page::TemplateError;
use serde::Serialize;

use crate::finding::{Finding, Report, Wait};

const PART: &str = include_str!("page.html");
/// Rules of a part of a page.
const STYLE: &str = include_str!("page.css");
/// Rules of a whole page.
const PAGE_STYLE: &str = ":root { color-scheme: light dark; }
body { margin: 0 auto; padding: 20px 12px 40px; max-width: 1240px; font: 15px/1.5 system-ui, \"DejaVu Sans\", sans-serif;
  background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
h1 { font-size: 24px; margin: 0 0 8px; }";

/// Width of a thread's box, its height, and what is between two, in px.
const BOX: (usize, usize) = (230, 34);
const BETWEEN: (usize, usize) = (110, 44);
/// Maximum length of a name in a box, in characters.
const LONGEST: usize = 30;

/// A part of a page.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its CSS rules; all are about what is inside it.
    pub style: &'static str,
    /// Its HTML.
    pub html: String,
}

#[derive(Serialize)]
struct Values<'r> {
    findings: Vec<Shown<'r>>,
    report: &'r Report,
    picture: Option<Picture>,
}

#[derive(Serialize)]
struct Shown<'r> {
    grade: &'static str,
    finding: &'r Finding,
    evidence: Vec<String>,
}

/// Where everything is, in px.
#[derive(Debug, Serialize)]
struct Picture {
    width: usize,
    height: usize,
    boxes: Vec<Placed>,
    arrows: Vec<Arrow>,
}

#[derive(Debug, Serialize)]
struct Placed {
    name: String,
    short: String,
    x: usize,
    y: usize,
    in_circle: bool,
}

#[derive(Debug, Serialize)]
struct Arrow {
    path: String,
    label: String,
    title: String,
    x: usize,
    y: usize,
    in_circle: bool,
}

impl Report {
    /// The answer as a part of a page.
    ///
    /// # Errors
    /// [`TemplateError`]: the template is wrong.
    pub fn part(&self) -> Result<Part, TemplateError> {
        let shown = |finding| Shown::of(finding);
        let picture = (!self.waits.is_empty()).then(|| Picture::of(&self.waits));
        let values = Values { findings: self.findings.iter().map(shown).collect(), report: self, picture };
        Ok(Part { style: STYLE, html: page::render(PART, &values)? })
    }

    /// The answer as a page.
    ///
    /// # Errors
    /// [`TemplateError`]: the template is wrong.
    pub fn to_html(&self) -> Result<String, TemplateError> {
        let Part { style, html } = self.part()?;
        let title = "binderperf explain";
        let body = format!("<main>\n<h1>{title}</h1>\n{html}</main>");
        Ok(page::document(title, &format!("{PAGE_STYLE}\n{style}"), &body))
    }
}

impl<'r> Shown<'r> {
    fn of(finding: &'r Finding) -> Self {
        let evidence = finding.evidence.iter().map(ToString::to_string).collect();
        Self { grade: finding.grade.word(), finding, evidence }
    }
}

impl Picture {
    /// Each thread is drawn to the right of those that wait for it; in a circle one arrow goes back.
    fn of(waits: &[Wait]) -> Self {
        let names: BTreeSet<&str> =
            waits.iter().flat_map(|wait| [wait.from.as_str(), wait.to.as_str()]).collect();
        let columns = columns(waits);
        let mut by_column: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for name in names {
            by_column.entry(columns.get(name).copied().unwrap_or(0)).or_default().push(name);
        }
        let mut places: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (column, mut names) in by_column {
            // Beside those that wait for it, so that arrows cross little.
            names.sort_by_key(|name| {
                let waiters = waits.iter().filter(|wait| wait.to == **name);
                waiters.filter_map(|wait| places.get(wait.from.as_str())).map(|(_, y)| *y).min()
            });
            for (row, name) in names.into_iter().enumerate() {
                places.insert(name, (20 + column * (BOX.0 + BETWEEN.0), 16 + row * (BOX.1 + BETWEEN.1)));
            }
        }
        let circle: BTreeSet<&str> =
            waits.iter().filter(|wait| wait.in_circle).map(|wait| wait.from.as_str()).collect();
        let boxes = places.iter().map(|(name, (x, y))| Placed {
            name: (*name).to_owned(),
            short: short(name),
            x: *x,
            y: *y,
            in_circle: circle.contains(name),
        });
        let boxes: Vec<Placed> = boxes.collect();
        let height = boxes.iter().map(|place| place.y + BOX.1).max().unwrap_or(0);
        let arrows = waits.iter().filter_map(|wait| {
            Some(Arrow::of(wait, *places.get(wait.from.as_str())?, *places.get(wait.to.as_str())?))
        });
        let width = boxes.iter().map(|place| place.x + BOX.0).max().unwrap_or(0);
        Self { width: width + 20, height: height + 44, arrows: arrows.collect(), boxes }
    }
}

fn short(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// The column of each name: one more than that of the rightmost that waits for it, but for circles.
fn columns(waits: &[Wait]) -> BTreeMap<&str, usize> {
    let mut columns = BTreeMap::new();
    let targets: BTreeSet<&str> = waits.iter().map(|wait| wait.to.as_str()).collect();
    let begins = |wait: &&Wait| !targets.contains(wait.from.as_str());
    for start in waits.iter().filter(begins) {
        place(&start.from, &mut Vec::new(), waits, &mut columns);
    }
    // What is left are circles.
    for start in waits {
        if !columns.contains_key(start.from.as_str()) {
            place(&start.from, &mut Vec::new(), waits, &mut columns);
        }
    }
    columns
}

/// Places a name behind those on the path to it, and then those that it waits for.
fn place<'w>(
    name: &'w str,
    path: &mut Vec<&'w str>,
    waits: &'w [Wait],
    columns: &mut BTreeMap<&'w str, usize>,
) {
    if path.contains(&name) || columns.get(name).is_some_and(|known| *known >= path.len().max(1)) {
        return;
    }
    columns.insert(name, path.len());
    path.push(name);
    for wait in waits.iter().filter(|wait| wait.from == name) {
        place(&wait.to, path, waits, columns);
    }
    path.pop();
}

impl Arrow {
    fn of(wait: &Wait, from: (usize, usize), to: (usize, usize)) -> Self {
        let (width, height) = BOX;
        let age = wait.age_ms.map_or_else(|| "?".to_owned(), |ms| units::round_duration(ms as f64 * 1e6));
        let title =
            format!("{} waits {age} in call {} (code {}) for {}", wait.from, wait.call, wait.code, wait.to);
        let (path, x, y) = if to.0 > from.0 {
            let (x1, y1, x2, y2) = (from.0 + width, from.1 + height / 2, to.0 - 2, to.1 + height / 2);
            let middle = x1.midpoint(x2);
            // Nearer to its begin, where arrows to one box are apart.
            let at = (x1 + (x2 - x1) / 3, (2 * y1 + y2) / 3);
            (format!("M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"), at.0, at.1)
        } else {
            let (x1, y1, x2, y2) = (from.0 + width / 2, from.1 + height, to.0 + width / 2, to.1 + height + 2);
            let below = y1.max(y2) + 36;
            (format!("M{x1},{y1} C{x1},{below} {x2},{below} {x2},{y2}"), x1.midpoint(x2), below + 8)
        };
        Self { path, label: age, title, x, y: y.saturating_sub(4), in_circle: wait.in_circle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(from: &str, to: &str, in_circle: bool) -> Wait {
        Wait { from: from.into(), to: to.into(), call: 7, code: 1, age_ms: Some(61_200), in_circle }
    }

    #[test]
    fn who_is_waited_for_stands_right_and_a_circle_has_one_arrow_back() {
        let waits = [wait("a", "b", true), wait("b", "c", true), wait("c", "a", true), wait("x", "a", false)];
        let columns = columns(&waits);
        assert!(columns["x"] < columns["a"] && columns["a"] < columns["b"], "{columns:?}");
        let picture = Picture::of(&waits);
        let back = picture.arrows.iter().filter(|arrow| arrow.title.starts_with("c waits"));
        assert!(back.clone().count() == 1 && back.clone().all(|arrow| arrow.label == "61.2 s"));
        for (at, one) in picture.boxes.iter().enumerate() {
            for other in &picture.boxes[at + 1..] {
                assert!(one.x.abs_diff(other.x) >= BOX.0 || one.y.abs_diff(other.y) >= BOX.1, "{picture:?}");
            }
            assert!(one.x + BOX.0 <= picture.width && one.y + BOX.1 <= picture.height, "{picture:?}");
        }
    }
}
