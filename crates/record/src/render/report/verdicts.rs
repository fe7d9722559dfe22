//! Verdicts of a report: for each test all that is to be said about it, the most severe first.
//! Not here: judging the tests of a run (`crate::verdict`), the numbers themselves.

use super::{Bundle, driver};
use crate::render::printable;
use crate::render::remarks::warnings;
use crate::render::verdicts::table;
use crate::schema::{Finding, Run, Severity};
use crate::verdict::{Grade, TestVerdicts, Verdict, of_run};

/// The verdicts on the tests of all runs, in their order, then the problems beside them.
pub fn verdicts(bundle: &Bundle) -> Vec<TestVerdicts> {
    let troubles = bundle.troubles.iter().map(|trouble| {
        let verdict = Verdict::good("test", &trouble.words).held_against(&trouble.expected, "");
        let verdict = verdict.because(trouble.grade, &trouble.reason);
        TestVerdicts { test: trouble.test.clone(), verdicts: vec![verdict] }
    });
    let mut tests: Vec<TestVerdicts> = Vec::new();
    for test in bundle.runs.iter().flat_map(|entry| of_run(&entry.run)).chain(troubles) {
        // A throughput test is measured with several placements.
        match tests.iter_mut().find(|known| known.test == test.test && known.is_throughput()) {
            Some(known) => known.verdicts.extend(test.verdicts),
            None => tests.push(test),
        }
    }
    tests
}

/// The verdicts as JSON: a list of tests.
pub fn json(bundle: &Bundle) -> String {
    // Cannot fail: strings only.
    serde_json::to_string_pretty(&verdicts(bundle)).unwrap_or_default() + "\n"
}

/// What to look at first, if anything: a failure, else a finding that spoils all numbers, else the first note.
pub fn look_first(bundle: &Bundle) -> Option<String> {
    explanations(bundle).into_iter().find(|(rank, _)| *rank > Rank::Good).map(|(_, text)| text)
}

/// The order of explanations and findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Good,
    Warning,
    Note,
    Spoilt,
    Bad,
}

impl Rank {
    fn label(self) -> &'static str {
        match self {
            Rank::Bad => "FAIL",
            Rank::Spoilt => "SPOILS NUMBERS",
            Rank::Note => "Note",
            Rank::Warning => "Doctor",
            Rank::Good => "No fault",
        }
    }
}

/// Reasons and next steps of all verdicts, and the doctor's findings, the most severe first. A reason that several
/// tests share is listed once.
fn explanations(bundle: &Bundle) -> Vec<(Rank, String)> {
    let mut told: Vec<(Rank, Vec<String>, String, String)> = Vec::new();
    for test in verdicts(bundle) {
        for verdict in &test.verdicts {
            let Some(why) = verdict.explanation() else { continue };
            let rank = match verdict.grade {
                Grade::Bad => Rank::Bad,
                Grade::Note => Rank::Note,
                Grade::Good => Rank::Good,
            };
            let same = told.iter_mut().find(|(_, _, words, known)| *words == verdict.words && *known == why);
            match same {
                Some((_, tests, ..)) => tests.push(test.test.clone()),
                None => told.push((rank, vec![test.test.clone()], verdict.words.clone(), why)),
            }
        }
    }
    let mut all: Vec<(Rank, String)> = told
        .into_iter()
        .map(|(rank, tests, words, why)| (rank, format!("{}, {words}: {why}", tests.join(" and "))))
        .collect();
    let mut grave = bundle.grave();
    // It is the reason of a verdict.
    grave.retain(|finding| finding.id != Finding::BROKER_LOST);
    all.extend(grave.iter().take(MOST_FINDINGS).map(|finding| {
        let rank = if finding.severity == Severity::Error { Rank::Spoilt } else { Rank::Warning };
        (rank, cut(&finding.text))
    }));
    if grave.len() > MOST_FINDINGS {
        all.push((Rank::Warning, format!("{} more", grave.len() - MOST_FINDINGS)));
    }
    all.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    all
}

/// Maximum line length of a finding.
const LONGEST: usize = 150;
/// Maximum number of findings in the summary.
const MOST_FINDINGS: usize = 3;

/// The summary on one screen of a terminal; `report` is the path of the full report and may be empty.
pub fn summary(bundle: &Bundle, report: &str) -> String {
    let mut text = bundle.runs.first().map_or(String::new(), |entry| head(&entry.run));
    let tests = verdicts(bundle);
    if !tests.is_empty() {
        text += "\n";
        text += &table(&tests);
    }
    let mut notes: Vec<String> =
        explanations(bundle).iter().map(|(rank, text)| format!("{:<14} {text}", rank.label())).collect();
    if !report.is_empty() {
        notes.push(format!("{:<14} {report}", "Report"));
    }
    if !notes.is_empty() {
        text += "\n";
        notes.iter().for_each(|line| text += &(printable(line).into_owned() + "\n"));
    }
    text
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

fn head(run: &Run) -> String {
    let driver = driver(run);
    let (kernel, cpu) = (&run.host.kernel.release, &run.host.cpu);
    let class = run.host.class.name();
    let mut lines = vec![format!(
        "{} {}, {}: {driver}, Linux {kernel}, {class}, {} CPU {}",
        run.tool.name, run.tool.version, run.started, cpu.count, cpu.model
    )];
    lines.extend(warnings(run));
    lines.iter().map(|line| printable(line.trim_end()).into_owned() + "\n").collect()
}
