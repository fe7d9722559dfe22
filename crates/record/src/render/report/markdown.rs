//! The report as Markdown, for a pull request or a mail: verdicts, numbers, findings.
//! Not here: charts and pictures, which only the page has.

use super::{Bundle, clusters, driver, look_first, numbers, verdicts};
use crate::render::in_markdown;
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
        [&test.test, words, measured, expected, &why].map(String::clone).to_vec()
    };
    let rows = tests.iter().flat_map(|test| test.verdicts.iter().map(|verdict| row(test, verdict)));
    let heads = ["test", "verdict", "measured", "expected", "why, and what next"].map(str::to_owned);
    text += &table(&heads, &rows.collect::<Vec<_>>());
    if let Some(look) = look_first(bundle) {
        text += &format!("\n**Look first at** {}\n", in_markdown(&look));
    }
    let runs: Vec<&Run> = bundle.runs.iter().map(|entry| &entry.run).collect();
    for beside in clusters::beside(&runs) {
        text += &format!("\n## {}\n", in_markdown(&beside.title));
        text += &table(&beside.heads, &beside.rows);
    }
    for entry in &bundle.runs {
        if let Some((heads, rows)) = numbers(&entry.run).filter(|(_, rows)| !rows.is_empty()) {
            text += &format!("\n## {}\n", in_markdown(&entry.run.title()));
            text += &table(&heads, &rows);
        }
    }
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

fn table(heads: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|cell| in_markdown(cell)).collect::<Vec<_>>().join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(heads.len()));
    format!("\n{}{rule}{}", line(heads), rows.iter().map(|row| line(row)).collect::<String>())
}
