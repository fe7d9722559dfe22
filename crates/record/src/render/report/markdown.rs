//! The report as Markdown, for a pull request or a mail: verdicts, numbers, findings.
//! Not here: charts and pictures, which only the page has.

use super::{Bundle, clusters, driver, look_first, numbers, verdicts};
use crate::render::in_markdown;
use crate::render::table::{Table, cells};
use crate::schema::{Run, Severity};
use crate::verdict::{TestVerdicts, Verdict};

/// The whole text.
pub fn markdown(bundle: &Bundle) -> String {
    let mut text = String::from("# binderperf report\n");
    if let Some(entry) = bundle.runs.first() {
        let (run, host) = (&entry.run, &entry.run.host);
        let line = format!(
            "{}, {}, Linux {}, {} CPU {}, {}",
            run.started,
            driver(run),
            host.kernel.release,
            host.cpu.count,
            host.cpu.model,
            host.class.name()
        );
        text += &format!("\n{}\n", in_markdown(&line));
    }
    let tests = verdicts(bundle);
    let row = |test: &TestVerdicts, verdict: &Verdict| {
        let Verdict { words, measured, expected, .. } = verdict;
        let why = verdict.explanation().unwrap_or_default();
        cells![&test.test, words, measured, expected, why]
    };
    let rows = tests.iter().flat_map(|test| test.verdicts.iter().map(|verdict| row(test, verdict)));
    let heads = ["test", "verdict", "measured", "expected", "why, and what next"];
    let table = Table::of_words(heads).rows(rows);
    text += &Some(table).filter(|table| !table.is_empty()).map_or(String::new(), |table| table.markdown());
    if let Some(look) = look_first(bundle) {
        text += &format!("\n**Look first at** {}\n", in_markdown(&look));
    }
    let runs: Vec<&Run> = bundle.runs.iter().map(|entry| &entry.run).collect();
    let of_runs = runs.iter().filter_map(|run| Some(numbers(run)?.titled(run.title())));
    let tables: Vec<Table> = clusters::beside(&runs).into_iter().chain(of_runs).collect();
    text += &tables.iter().map(Table::markdown).collect::<String>();
    let findings = bundle.findings();
    if !findings.is_empty() {
        text += "\n## What affects these numbers\n\n";
    }
    for finding in &findings {
        let severity = match finding.severity {
            Severity::Error => "**spoils numbers**",
            Severity::Warning => "**warning**",
            Severity::Info => "note",
        };
        let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!(" Mend it: {}", in_markdown(fix)));
        text += &format!("- {severity}: {}{fix}\n", in_markdown(&finding.text));
    }
    text
}
