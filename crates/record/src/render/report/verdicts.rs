//! Verdicts of a report: one line for each test, with its main number and a hint.
//! Not here: the numbers themselves.
//!
//! A throughput test has no limit of its own: it was measured or not. Only a comparison with another record shows
//! whether it became slower.

use serde::{Deserialize, Serialize};

use super::{Bundle, driver, latency, throughput};
use crate::figures::Calls;
use crate::render::summary::warnings;
use crate::render::{printable, recorder};
use crate::schema::{Case, CaseKind, Class, LatencyTest, Outcome, Run, Setting, Severity};
use crate::verdict::{InheritanceVerdict, SyncVerdict, as_expected, short_of_known};

/// The grade of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As expected.
    Good,
    /// Worth a look.
    Note,
    /// Something failed, or is not as expected of this driver.
    Bad,
}

/// One line of the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The test, e.g. `hwbinder latency`.
    pub test: String,
    /// The grade.
    pub grade: Grade,
    /// The verdict, e.g. `inheritance PASS, SYNC GOOD`.
    pub words: String,
    /// The most important numbers.
    pub number: String,
    /// A hint what to look at, if anything.
    pub look: Option<String>,
}

/// The lines of all runs, in their order.
pub fn verdicts(bundle: &Bundle) -> Vec<Verdict> {
    let troubles = bundle.troubles.iter().map(|trouble| Verdict {
        test: trouble.test.clone(),
        grade: trouble.grade,
        words: trouble.words.clone(),
        number: String::new(),
        look: Some(trouble.reason.clone()),
    });
    bundle.runs.iter().flat_map(|entry| of(&entry.run)).chain(troubles).collect()
}

/// The lines of one run.
pub(super) fn of(run: &Run) -> Vec<Verdict> {
    let mut lines = match &run.latency {
        Some(test) => vec![of_latency(run, test)],
        None if run.inversion.is_some() => vec![of_inversion(run)],
        None => of_throughput(run),
    };
    if !run.complete {
        let why = run.incomplete_reason.as_deref().unwrap_or("the run did not end");
        for line in &mut lines {
            line.grade = Grade::Bad;
            line.words = format!("INCOMPLETE, {}", line.words);
            line.look = Some(format!("it stopped early: {why}"));
        }
    }
    lines
}

fn of_throughput(run: &Run) -> Vec<Verdict> {
    let families = throughput::families(run);
    let tests = families.iter().filter(|family| family.kind == CaseKind::Test);
    let lines: Vec<Verdict> = tests
        .map(|family| {
            let (grade, words) = progress(&family.cases);
            let failure = family.cases.iter().find_map(|case| case.failure());
            let skipped = || family.cases[0].outcomes().find_map(Outcome::skipped);
            let look = failure.or_else(skipped).filter(|_| grade == Grade::Bad).map(str::to_owned);
            let number = throughput::in_short(run, family).unwrap_or_default();
            Verdict { test: format!("{} throughput", family.name), grade, words, number, look }
        })
        .collect();
    if lines.is_empty() { vec![of_other(run)] } else { lines }
}

/// Grade and verdict of cases without a limit of their own.
fn progress(cases: &[&Case]) -> (Grade, String) {
    let all = cases.len();
    let failed = cases.iter().filter(|case| case.failure().is_some()).count();
    let measured = cases.iter().filter(|case| case.measurements().next().is_some()).count();
    match (failed, measured) {
        (0, 0) => (Grade::Bad, "NOT MEASURED".to_owned()),
        (0, some) if some < all => (Grade::Note, format!("measured in {some} of {all} cases")),
        (0, _) => (Grade::Good, "measured".to_owned()),
        (some, _) => (Grade::Bad, format!("FAILED in {some} of {all} cases")),
    }
}

/// The line of any other test, such as those with many clients.
fn of_other(run: &Run) -> Verdict {
    let (grade, words) = progress(&run.cases.iter().collect::<Vec<&Case>>());
    let rate = |case: &Case| {
        case.measurements()
            .filter_map(|numbers| Some(numbers.counters.find("items_per_second")?.value))
            .reduce(f64::max)
    };
    let best = run.cases.iter().filter_map(rate).reduce(f64::max);
    let number = best.map_or(String::new(), |rate| format!("at most {}", units::rate(rate)));
    let look = run.cases.iter().find_map(Case::failure).map(str::to_owned);
    Verdict { test: run.plan.test.clone(), grade, words, number, look }
}

fn of_latency(run: &Run, test: &LatencyTest) -> Verdict {
    let classes = latency::classes(run, test);
    let served = crate::verdict::Served::of(&run.cases);
    let inherited = InheritanceVerdict::of(test);
    let known = as_expected(&test.inheritance);
    let misses: u64 =
        classes.iter().map(|(_, calls)| calls.total(|latency| latency.misses)).fold(0, u64::saturating_add);
    let mut words = vec![format!("inheritance {}", inherited.name())];
    words.extend(served.sync().map(|sync| format!("SYNC {}", sync.name())));
    let look = if let Some(why) = run.cases.iter().find_map(Case::failure) {
        words.push("FAILED".to_owned());
        Some((Grade::Bad, why.to_owned()))
    } else if let Some(why) = short_of_known(test) {
        Some((Grade::Bad, why))
    } else if let InheritanceVerdict::Unknown { reason } = &inherited {
        Some((Grade::Note, format!("inheritance cannot be told: {reason}")))
    } else if misses > 0 {
        Some((Grade::Note, missed(run, test, misses)))
    } else if inherited == InheritanceVerdict::Fail {
        let why = if known == Some(true) { ", as is known of this driver" } else { "" };
        Some((Grade::Note, format!("real-time callers are served at a lower priority{why}")))
    } else if served.sync() == Some(SyncVerdict::Poor) {
        Some((Grade::Note, "most calls are served on another CPU than their caller's".to_owned()))
    } else {
        None
    };
    Verdict {
        test: format!("{} latency", test.flavour),
        grade: look.as_ref().map_or(Grade::Good, |(grade, _)| *grade),
        words: words.join(", "),
        number: latency_number(run, test, &classes, misses),
        look: look.map(|(_, look)| look),
    }
}

/// The misses, and the cause of the worst, if it was recorded.
fn missed(run: &Run, test: &LatencyTest, misses: u64) -> String {
    let unknown = test.recorder.as_ref().and_then(|recorder| recorder.missing.as_ref());
    match (recorder::worst_miss(run, test), unknown) {
        (Some((name, worst)), _) => format!("{misses} deadlines missed; {name}: {}", worst.cause),
        (None, Some(why)) => format!("{misses} deadlines missed, and nothing recorded why: {why}"),
        (None, None) => format!("{misses} deadlines missed: what those calls waited for"),
    }
}

fn latency_number(run: &Run, test: &LatencyTest, classes: &[(Class, Calls<'_>)], misses: u64) -> String {
    let of = |(class, calls): &(Class, Calls<'_>)| {
        let worst = run.clock.unit.show(calls.samples.max as f64);
        let p99 = calls.percentiles.map(|exact| exact.p99).or_else(|| calls.samples.percentile(99.0));
        match (class, p99) {
            (Class::Fifo, Some(p99)) => {
                format!("fifo p99 {}, worst {worst}", run.clock.unit.show(p99 as f64))
            }
            _ => format!("{} worst {worst}", class.name()),
        }
    };
    let made: u64 = classes.iter().map(|(_, calls)| calls.served().calls).fold(0, u64::saturating_add);
    let over = format!("{misses} of {made} over {}", run.clock.unit.show_round(test.deadline as f64));
    classes.iter().map(of).chain([over]).collect::<Vec<_>>().join(", ")
}

fn of_inversion(run: &Run) -> Verdict {
    let row = |setting| run.inversion.as_ref().and_then(|inversion| inversion.row(setting));
    let (grade, words) = match row(Setting::On).and_then(|row| row.inverted) {
        Some(true) => (Grade::Bad, "INVERSION"),
        Some(false) => (Grade::Good, "no inversion"),
        None => (Grade::Note, "cannot be told"),
    };
    let late = |setting| {
        let row = row(setting).filter(|row| row.calls > 0)?;
        Some(format!("{:.1} % late {}", row.late as f64 * 100.0 / row.calls as f64, row.means))
    };
    let number: Vec<String> = [Setting::Off, Setting::On].into_iter().filter_map(late).collect();
    let look = (grade == Grade::Bad).then(|| "an urgent caller waits for less urgent tasks".to_owned());
    Verdict {
        test: "priority inversion".to_owned(),
        grade,
        words: words.to_owned(),
        number: number.join(", "),
        look,
    }
}

/// What to look at first, if anything: a failure, else a finding that spoils all numbers, else the first hint.
pub fn look_first(bundle: &Bundle) -> Option<String> {
    let lines = verdicts(bundle);
    let hint = |grade: Grade| {
        lines
            .iter()
            .find(|line| line.grade == grade && line.look.is_some())
            .map(|line| format!("{}: {}", line.test, line.look.as_deref().unwrap_or_default()))
    };
    let spoilt = || {
        let finding = bundle.findings().into_iter().find(|finding| finding.severity == Severity::Error)?;
        Some(format!("doctor: {}", finding.text))
    };
    hint(Grade::Bad).or_else(spoilt).or_else(|| hint(Grade::Note))
}

/// Maximum line length of a finding.
const LONGEST: usize = 150;
/// Maximum number of findings in the summary.
const MOST_FINDINGS: usize = 4;

/// The summary on one screen of a terminal; `report` is the path of the full report and may be empty.
pub fn summary(bundle: &Bundle, report: &str) -> String {
    let mut text = bundle.runs.first().map_or(String::new(), |entry| head(&entry.run));
    let lines = verdicts(bundle);
    if !lines.is_empty() {
        text += "\n";
        text += &columns(&lines);
    }
    let mut notes = Vec::new();
    notes.extend(look_first(bundle).map(|look| format!("Look first at  {look}")));
    let grave = bundle.grave();
    notes.extend(grave.iter().take(MOST_FINDINGS).map(|finding| {
        let name = if finding.severity == Severity::Error { "SPOILS NUMBERS" } else { "Doctor" };
        format!("{name:<14} {}", cut(&finding.text))
    }));
    if grave.len() > MOST_FINDINGS {
        notes.push(format!("{:<14} {} more", "Doctor", grave.len() - MOST_FINDINGS));
    }
    if !report.is_empty() {
        notes.push(format!("{:<14} {report}", "Report"));
    }
    if !notes.is_empty() {
        text += "\n";
        notes.iter().for_each(|line| text += &(printable(line).into_owned() + "\n"));
    }
    text
}

/// Aligns all columns to the left, as they hold text.
fn columns(lines: &[Verdict]) -> String {
    let rows = lines
        .iter()
        .map(|line| [&line.test, &line.words, &line.number].map(|cell| printable(cell).into_owned()));
    let heads = ["Test", "Verdict", "The number that matters"].map(str::to_owned);
    let rows: Vec<[String; 3]> = [heads].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let row = |[test, words, number]: &[String; 3]| {
        format!("{test:<first$}  {words:<second$}  {number}").trim_end().to_owned() + "\n"
    };
    let rule = "-".repeat(first + second + width(2) + 4) + "\n";
    row(&rows[0]) + &rule + &rows[1..].iter().map(row).collect::<String>()
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
