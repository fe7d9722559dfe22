//! Scenarios: loads that measure one thing that systems do to Binder, as tables of steps.
//! Not here: carrying them out (`bench`).
//!
//! A file has notes, then cases: `case NAME [N=1,8,64] [S=4,5,6] [samples=20]`, and below each its notes and its description, indented,
//! in which `$N` and `$S` stand for one value each. The values of `N` name the measurements: `NAME/8`.

use std::sync::LazyLock;

use crate::text::HEADER;

/// The files, by name of the scenario.
const FILES: [(&str, &str); 12] = [
    ("oneway", include_str!("scenario/oneway.txt")),
    ("descriptors", include_str!("scenario/descriptors.txt")),
    ("objects", include_str!("scenario/objects.txt")),
    ("buffers", include_str!("scenario/buffers.txt")),
    ("death", include_str!("scenario/death.txt")),
    ("freeze", include_str!("scenario/freeze.txt")),
    ("pool", include_str!("scenario/pool.txt")),
    ("register", include_str!("scenario/register.txt")),
    ("sizes", include_str!("scenario/sizes.txt")),
    ("cold", include_str!("scenario/cold.txt")),
    ("app-start", include_str!("scenario/app-start.txt")),
    ("rust-rfc", include_str!("scenario/rust-rfc.txt")),
];

/// A scenario: cases with one theme.
#[derive(Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Its model, in lines of text.
    pub notes: Vec<&'static str>,
    /// Its measurements.
    pub cases: Vec<Template>,
}

/// A case, to be filled in with values.
#[derive(Debug)]
pub struct Template {
    /// Its name: that of the scenario and its own.
    pub name: String,
    /// Meaning of a sample, in lines of text.
    pub notes: Vec<&'static str>,
    /// The values of `N`, each a measurement; one, 0, for a case without.
    pub values: Vec<u64>,
    /// Samples that are worth their time, where what comes before each takes long.
    pub samples: Option<u64>,
    /// Names of the values, and these by measurement.
    columns: Vec<(&'static str, Vec<u64>)>,
    lines: Vec<&'static str>,
}

impl Template {
    /// Whether its measurements are named by a value.
    #[must_use]
    pub fn has_values(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The description of the measurement with this value of `N`; `None` if there is none.
    #[must_use]
    pub fn text(&self, value: u64) -> Option<String> {
        let at = self.values.iter().position(|known| *known == value)?;
        let mut text = format!("{HEADER}\n");
        for line in &self.lines {
            let mut filled = (*line).to_owned();
            for (name, values) in &self.columns {
                filled = filled.replace(&format!("${name}"), &values[at].to_string());
            }
            text.push_str(&filled);
            text.push('\n');
        }
        Some(text)
    }
}

/// All scenarios, in the order in which they run.
pub fn all() -> &'static [Scenario] {
    static ALL: LazyLock<Vec<Scenario>> =
        LazyLock::new(|| FILES.into_iter().map(|(name, text)| read(name, text)).collect());
    &ALL
}

/// Reads a file of this program; a test makes sure that each is well formed.
fn read(name: &'static str, text: &'static str) -> Scenario {
    let mut scenario = Scenario { name, notes: Vec::new(), cases: Vec::new() };
    for line in text.lines().filter(|line| !line.is_empty()) {
        let inner = line.strip_prefix("  ");
        match (scenario.cases.last_mut(), inner, line.strip_prefix("case ")) {
            (_, None, Some(head)) => scenario.cases.push(case(name, head)),
            (None, ..) => scenario.notes.push(note(line)),
            (Some(case), Some(inner), _) if inner.starts_with('#') => case.notes.push(note(inner)),
            (Some(case), ..) => case.lines.push(inner.unwrap_or(line)),
        }
    }
    scenario
}

fn note(line: &'static str) -> &'static str {
    line.trim_start_matches(['#', ' '])
}

/// Reads the line that begins a case.
fn case(scenario: &str, head: &'static str) -> Template {
    let mut words = head.split_whitespace();
    let own = words.next().unwrap_or_default();
    let name = match own {
        "-" => scenario.to_owned(),
        own => format!("{scenario}_{own}"),
    };
    let (mut columns, mut samples) = (Vec::new(), None);
    for (name, values) in words.filter_map(|word| word.split_once('=')) {
        let values: Vec<u64> = values.split(',').filter_map(|value| value.parse().ok()).collect();
        match name {
            "samples" => samples = values.first().copied(),
            _ => columns.push((name, values)),
        }
    }
    let values = columns.first().map_or_else(|| vec![0], |(_, values)| values.clone());
    Template { name, notes: Vec::new(), values, samples, columns, lines: Vec::new() }
}

/// All scenarios with their cases, each with what it measures.
#[must_use]
pub fn list() -> String {
    let case = |case: &Template| {
        let values: Vec<String> = case.values.iter().map(u64::to_string).collect();
        let values = if case.has_values() { format!(", N = {}", values.join(", ")) } else { String::new() };
        format!("  {}{values}\n    {}\n", case.name, case.notes.join(" "))
    };
    let scenario = |scenario: &Scenario| {
        let cases: String = scenario.cases.iter().map(case).collect();
        format!("{}\n  {}\n{cases}", scenario.name, scenario.notes.join(" "))
    };
    all().iter().map(scenario).collect::<Vec<_>>().join("\n")
}

/// The description of a measurement, by the name that it has in results.
///
/// # Errors
/// None has this name; the text says so.
pub fn described(name: &str) -> Result<String, String> {
    let name = name.strip_prefix("BM_").unwrap_or(name);
    let (case, value) = match name.split_once('/') {
        Some((case, value)) => (case, value.parse().ok()),
        None => (name, Some(0)),
    };
    let template = all().iter().flat_map(|scenario| &scenario.cases).find(|known| known.name == case);
    let text = template.zip(value).and_then(|(template, value)| {
        let notes: String = template.notes.iter().map(|note| format!("# {note}\n")).collect();
        Some(template.text(value)?.replacen('\n', &format!("\n{notes}"), 1))
    });
    text.ok_or_else(|| {
        format!("no measurement is named {name:?}: `scenario list` has the cases and their values")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    #[test]
    fn each_case_is_a_description_for_each_value_and_says_what_it_measures() {
        let mut names = Vec::new();
        for scenario in all() {
            assert!(!scenario.notes.is_empty() && !scenario.cases.is_empty(), "{}", scenario.name);
            for case in &scenario.cases {
                assert!(!case.notes.is_empty(), "{}", case.name);
                assert!(
                    case.columns.iter().all(|(_, values)| values.len() == case.values.len()),
                    "{}",
                    case.name
                );
                names.push(&case.name);
                for value in &case.values {
                    let text = case.text(*value).expect("a known value");
                    let workload =
                        parse(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", case.name));
                    let measured = workload.measured.expect("it measures");
                    assert!(!measured.measure.is_empty(), "{}", case.name);
                    assert!(!text.contains('$'), "{text}");
                }
                assert_eq!(case.text(u64::MAX), None);
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "names are different");
    }

    /// The part of the page on scenarios that lists the cases.
    fn listed() -> String {
        let case = |case: &Template| {
            let values: Vec<String> = case.values.iter().map(u64::to_string).collect();
            let values = if case.has_values() { values.join(", ") } else { String::new() };
            format!("| `{}` | {values} | {} |\n", case.name, case.notes.join(" "))
        };
        let scenario = |scenario: &Scenario| {
            let cases: String = scenario.cases.iter().map(case).collect();
            let (name, notes) = (scenario.name, scenario.notes.join(" "));
            format!("### {name}\n\n{notes}\n\n| case | N | a sample |\n|---|---|---|\n{cases}\n")
        };
        all().iter().map(scenario).collect()
    }

    /// `BINDERPERF_GOLDEN=write` writes it.
    #[test]
    fn the_page_lists_every_case() {
        const BEGIN: &str = "## The cases\n\n";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
        let page = std::fs::read_to_string(&path).expect("the page");
        let (before, rest) = page.split_once(BEGIN).expect("the part on cases");
        let behind = rest.find("\n## ").map_or("", |at| &rest[at + 1..]);
        let right = format!("{before}{BEGIN}{}{behind}", listed());
        if std::env::var_os("BINDERPERF_GOLDEN").is_some_and(|value| value == "write") {
            std::fs::write(&path, &right).expect("written");
        } else {
            assert_eq!(page, right, "BINDERPERF_GOLDEN=write writes it");
        }
    }
}
