//! Verdicts of a report: for each test all that is to be said about it, the most severe first.
//! Not here: judging a latency test (`crate::verdict`), the numbers themselves.
//!
//! A throughput test has no limit of its own: it was measured or not. Only a comparison with another record shows
//! whether it became slower.

use super::headline::headline;
use super::{Bundle, driver, placement, throughput, title};
use crate::render::printable;
use crate::render::remarks::{incomplete, warnings};
use crate::render::verdicts::table;
use crate::schema::{Case, CaseKind, DriverKind, Finding, Outcome, Run, Setting, Severity};
use crate::verdict::{
    Grade, TestVerdicts, Verdict, of_background, of_latency, of_lost_broker, of_overload, runnable,
};

/// The verdicts on the tests of all runs, in their order, then the problems beside them.
pub fn verdicts(bundle: &Bundle) -> Vec<TestVerdicts> {
    let troubles = bundle.troubles.iter().map(|trouble| {
        let verdict = Verdict::good("test", &trouble.words).held_against(&trouble.expected, "");
        let verdict = verdict.because(trouble.grade, &trouble.reason);
        TestVerdicts { test: trouble.test.clone(), verdicts: vec![verdict] }
    });
    let mut tests: Vec<TestVerdicts> = Vec::new();
    for test in bundle.runs.iter().flat_map(|entry| of(&entry.run)).chain(troubles) {
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

/// The tests of one run.
pub(super) fn of(run: &Run) -> Vec<TestVerdicts> {
    let mut tests = match &run.latency {
        Some(test) => {
            vec![TestVerdicts { test: title(run), verdicts: of_latency(run, test) }]
        }
        None if run.inversion.is_some() => vec![of_inversion(run)],
        None => match (&run.overload, &run.background) {
            (Some(experiment), _) => {
                vec![TestVerdicts { test: title(run), verdicts: vec![of_overload(experiment)] }]
            }
            (None, Some(experiment)) => {
                vec![TestVerdicts { test: title(run), verdicts: of_background(experiment, run.clock.unit) }]
            }
            (None, None) => of_throughput(run),
        },
    };
    if let Some(lost) = of_lost_broker(run) {
        tests.iter_mut().for_each(|test| put_first(&lost, test));
    } else if let Some(why) = incomplete(run) {
        for test in &mut tests {
            let verdict =
                Verdict::good("completeness", "INCOMPLETE").held_against("the whole test", "a part of it");
            test.verdicts.insert(
                0,
                verdict.because(Grade::Bad, format!("it stopped early: {why}")).then("run it again"),
            );
        }
    }
    let told = tests.iter_mut().flat_map(|test| &mut test.verdicts);
    told.for_each(|verdict| *verdict = runnable(verdict.clone(), &run.host));
    tests
}

/// Puts the loss of the broker in the place of the failures that it caused, and keeps what was measured until then.
fn put_first(lost: &Verdict, test: &mut TestVerdicts) {
    test.verdicts.retain(|verdict| verdict.about != lost.about);
    let mut lost = lost.clone();
    let caused = |verdict: &mut Verdict| verdict.about == "throughput" && verdict.grade == Grade::Bad;
    for failure in test.verdicts.extract_if(.., caused).filter(|failure| !failure.measured.is_empty()) {
        lost.measured = format!("{}: {}", lost.measured, failure.measured);
    }
    test.verdicts.insert(0, lost);
}

fn of_throughput(run: &Run) -> Vec<TestVerdicts> {
    let families = throughput::families(run);
    let tests = families.iter().filter(|family| family.kind == CaseKind::Test);
    let tests: Vec<TestVerdicts> = tests
        .map(|family| {
            let number = headline(run, family).unwrap_or_default();
            let test = format!("{} throughput", family.name);
            let verdict = placement::told(run, family, progress(&family.cases, number));
            TestVerdicts { test, verdicts: vec![verdict] }
        })
        .collect();
    if tests.is_empty() { vec![of_other(run)] } else { tests }
}

/// The verdict on cases without a limit of their own.
fn progress(cases: &[&Case], number: String) -> Verdict {
    let all = cases.len();
    let failed = cases.iter().filter(|case| case.failure().is_some()).count();
    let measured = cases.iter().filter(|case| case.measurements().next().is_some()).count();
    let (grade, words) = match (failed, measured) {
        (0, 0) => (Grade::Bad, "NOT MEASURED".to_owned()),
        (0, some) if some < all => (Grade::Note, format!("measured in {some} of {all} cases")),
        (0, _) => (Grade::Good, "measured".to_owned()),
        (some, _) => (Grade::Bad, format!("FAILED in {some} of {all} cases")),
    };
    let expected = if grade == Grade::Good { "" } else { "every case is measured" };
    let verdict = Verdict::good("throughput", words).held_against(expected, number);
    let skipped = || cases.iter().flat_map(|case| case.outcomes()).find_map(Outcome::skipped);
    match cases.iter().find_map(|case| case.failure()).or_else(skipped) {
        Some(why) if failed > 0 => verdict.because(grade, why).then("binderperf conformance"),
        Some(why) => verdict.because(grade, why),
        None => Verdict { grade, ..verdict },
    }
}

/// Any other test, such as those with many clients.
fn of_other(run: &Run) -> TestVerdicts {
    let rate = |case: &Case| {
        case.measurements()
            .filter_map(|numbers| Some(numbers.counters.find("items_per_second")?.value))
            .reduce(f64::max)
    };
    let best = run.cases.iter().filter_map(rate).reduce(f64::max);
    let number = best.map_or(String::new(), |rate| format!("at most {}", units::rate(rate)));
    let verdict = progress(&run.cases.iter().collect::<Vec<&Case>>(), number);
    TestVerdicts { test: run.plan.test.clone(), verdicts: vec![verdict] }
}

fn of_inversion(run: &Run) -> TestVerdicts {
    let row = |setting| run.inversion.as_ref().and_then(|inversion| inversion.row(setting));
    let late = |setting| {
        let row = row(setting).filter(|row| row.calls > 0)?;
        Some(format!("{:.1} % late {}", row.late as f64 * 100.0 / row.calls as f64, row.means))
    };
    let number: Vec<String> = [Setting::Off, Setting::On].into_iter().filter_map(late).collect();
    let verdict = |words: &str| {
        let expected = "with inheritance few more calls are late than without hogs";
        Verdict::good("inversion", words).held_against(expected, number.join(", "))
    };
    let waits = "an urgent caller waits for less urgent tasks";
    let verdict = match row(Setting::On).and_then(|row| row.inverted) {
        Some(true) if mainline(run) => verdict("INVERSION, as expected")
            .because(Grade::Note, format!("{waits}; mainline's driver passes no real-time priority on"))
            .then("binderperf inversion --driver embedded"),
        Some(true) => verdict("INVERSION").because(Grade::Bad, waits).then("binderperf inheritance"),
        Some(false) => verdict("no inversion"),
        None => verdict("cannot be told")
            .because(Grade::Note, "too few calls were made to tell")
            .then("binderperf inversion --iterations 100"),
    };
    TestVerdicts { test: "priority inversion".to_owned(), verdicts: vec![verdict] }
}

/// Whether the driver is one of a mainline kernel.
fn mainline(run: &Run) -> bool {
    let kind = run.driver.as_ref().map(|driver| driver.kind);
    kind.is_some_and(|kind| kind != DriverKind::Embedded) && !run.host.kernel.release.contains("android")
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
/// tests share stands once.
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
