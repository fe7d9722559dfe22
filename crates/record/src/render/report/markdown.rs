//! Room: the report as Markdown, for a pull request or a mail: verdicts, numbers, what spoils them.
//! Not here: curves and pictures, which only the page has.

use super::{Bundle, look_first, throughput, verdicts};
use crate::render::in_markdown;
use crate::render::latency::{HEADS, pair_cells};
use crate::schema::Severity;

/// The whole text.
pub fn markdown(bundle: &Bundle) -> String {
    let mut text = String::from("# binderperf report\n");
    if let Some(entry) = bundle.runs.first() {
        let (run, host) = (&entry.run, &entry.run.host);
        let driver = run
            .driver
            .as_ref()
            .map_or("no driver".to_owned(), |driver| format!("{} driver", driver.kind.name()));
        let line = format!(
            "{}, {driver}, Linux {}, {} CPU {}, {}",
            run.started,
            host.kernel.release,
            host.cpu.count,
            host.cpu.model,
            host.class.name()
        );
        text += &format!("\n{}\n", in_markdown(&line));
    }
    let lines = verdicts(bundle);
    let rows = lines.iter().map(|line| {
        let words = match &line.look {
            Some(look) => format!("{} ({look})", line.words),
            None => line.words.clone(),
        };
        vec![line.test.clone(), words, line.number.clone()]
    });
    text +=
        &table(&["test", "verdict", "the number that matters"].map(str::to_owned), &rows.collect::<Vec<_>>());
    if let Some(look) = look_first(bundle) {
        text += &format!("\n**Look first at** {}\n", in_markdown(&look));
    }
    for entry in &bundle.runs {
        let run = &entry.run;
        let (title, heads, rows) = match &run.latency {
            Some(test) if test.sweep.is_none() => {
                let heads = HEADS.map(str::to_owned).to_vec();
                (format!("{} latency", test.flavour), heads, pair_cells(run, test))
            }
            None => {
                let (heads, rows) = throughput::table(run);
                (run.plan.test.clone(), heads, rows)
            }
            Some(_) => continue,
        };
        if !rows.is_empty() {
            text += &format!("\n## {}\n", in_markdown(&title));
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
