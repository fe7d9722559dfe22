//! Rendering of the inversion experiment, for made-up runs.

use super::*;
use crate::fixtures;
use crate::schema::{Case, Measured, Percentiles, ServedAs};

/// A row of calls with these times.
fn row(setting: Setting, times: &[u64], served: Sched, inverted: Option<bool>) -> (InversionRow, Vec<u64>) {
    let row = InversionRow {
        setting,
        case: format!("inversion/{}", setting.name()),
        means: "by magic".to_owned(),
        calls: times.len() as u64,
        late: times.iter().filter(|time| **time > 300_000).count() as u64,
        bubbles: 0,
        not_inherited: 0,
        percentiles: Percentiles::of(&mut times.to_vec()),
        served: vec![ServedAs { sched: served, calls: times.len() as u64 }],
        inverted,
    };
    (row, times.to_vec())
}

fn run(rows: Vec<(InversionRow, Vec<u64>)>) -> Run {
    let mut run = fixtures::run();
    run.cases.clear();
    for (index, (row, times)) in (0..).zip(&rows) {
        let measured = Outcome::Measured(fixtures::of_times(times.iter().copied()));
        let outcomes = if times.is_empty() { Vec::new() } else { vec![measured] };
        let case = fixtures::case("inversion", 0, index, outcomes);
        run.cases.push(Case { name: row.case.clone(), ..case });
    }
    run.measured = Measured::Inversion(Inversion {
        flavour: "hwbinder".to_owned(),
        cpu: 1,
        hogs: 2,
        hog_class: "other".to_owned(),
        caller: Sched::fifo(99),
        iterations: 100,
        rounds: 1,
        limit: Some(300_000),
        rows: rows.into_iter().map(|(row, _)| row).collect(),
    });
    run
}

fn whole(on: (&[u64], Sched, Option<bool>), off: Option<bool>) -> Run {
    let fast = vec![20_000; 100];
    run(vec![
        row(Setting::Quiet, &fast, Sched::other(0), None),
        row(Setting::Off, &vec![3_000_000; 100], Sched::other(0), off),
        row(Setting::On, on.0, on.1, on.2),
        row(Setting::Raised, &fast, Sched::fifo(99), Some(false)),
    ])
}

fn told(run: &Run) -> String {
    report(run, run.inversion().expect("the experiment"))
}

fn said(run: &Run) -> String {
    verdict(run, run.inversion().expect("the experiment"))
}

#[test]
fn settings_stand_side_by_side_with_their_distributions() {
    let run = whole((&[21_000; 100], Sched::fifo(99), Some(false)), Some(true));
    let text = told(&run);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(words(line("inversion/off")).join(" ").ends_with("3.00 ms 100.0 % OTHER nice 0 YES"), "{text}");
    assert!(words(line("inversion/on")).join(" ").ends_with("21.0 us 0.0 % FIFO 99 no"), "{text}");
    assert!(line("inversion/raised").ends_with("reference"), "{text}");
    // 20 us lies in the first doubling from 16.4 us on; 3 ms more than seven doublings later.
    assert_eq!(line("quiet  |").find('@'), Some("quiet  |".len()), "{text}");
    let off = line("off    |").find('@').expect("a shade");
    assert_eq!(off, "off    |".len() + 15, "{text}");
    assert!(text.contains("FIFO 99 caller, hwbinder server and 2 hogs (other), all on CPU 1"), "{text}");
    assert!(text.contains("off: by magic") && text.contains("late: longer than 300 us"), "{text}");
    assert!(crate::render::summary::summary(&run, "").contains(&text), "show prints it, too");
}

#[test]
fn each_verdict_has_its_words() {
    let fast: &[u64] = &[20_000; 100];
    let slow: &[u64] = &[2_000_000; 100];
    let fifo = Sched::fifo(99);
    let good = said(&whole((fast, fifo, Some(false)), Some(true)));
    assert!(good.starts_with("NO INVERSION with inheritance (served as FIFO 99); without"), "{good}");
    let idle = said(&whole((fast, fifo, Some(false)), Some(false)));
    assert!(idle.starts_with("NO INVERSION") && idle.contains("says nothing"), "{idle}");
    let mut run = whole((slow, Sched::other(0), Some(true)), Some(true));
    let bad = said(&run);
    assert!(bad.starts_with("INVERSION although") && bad.contains("OTHER nice 0"), "{bad}");
    assert!(bad.contains("mainline's C driver"), "{bad}");
    if let Some(driver) = &mut run.driver {
        driver.kind = DriverKind::Embedded;
    }
    assert!(!said(&run).contains("mainline"));
    assert!(said(&whole((&[], fifo, None), None)).starts_with("UNKNOWN"));
    let mut run = whole((slow, fifo, Some(true)), Some(true));
    let Measured::Inversion(experiment) = &mut run.measured else { unreachable!() };
    experiment.rows[3].inverted = Some(true);
    let disturbed = said(&run);
    assert!(
        disturbed.contains("mainline's C driver") && disturbed.contains("disturbs this machine"),
        "{disturbed}"
    );
    if let Some(driver) = &mut run.driver {
        driver.kind = DriverKind::Embedded;
    }
    assert!(said(&run).contains("raised by hand are late as well, so it is"), "{}", said(&run));
}

#[test]
fn a_setting_without_calls_has_a_row_all_the_same() {
    let text = told(&whole((&[], Sched::fifo(99), None), Some(true)));
    assert!(text.lines().any(|line| line.starts_with("inversion/on") && line.ends_with("not run")), "{text}");
    let nothing = run(Vec::new());
    assert!(told(&nothing).contains("UNKNOWN"), "no row at all is no panic");
}
