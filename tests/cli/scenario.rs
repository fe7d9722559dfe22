//! `scenario`: loads of which one process measures a part, on the embedded driver.

use crate::support::{Folder, binderperf, read};
use record::{Measurement, Outcome, Run};

/// Words of a short run of a scenario without controls.
fn short<'w>(name: &'w str, filter: &'w str, record: &'w str, times: &'w str) -> [&'w str; 10] {
    let driver = "embedded";
    ["scenario", name, filter, times, "--driver", driver, "--controls", "none", "--record", record]
}

fn measured<'r>(run: &'r Run, name: &str) -> &'r Measurement {
    let case = run.case(name).unwrap_or_else(|| panic!("no case {name}"));
    match &case.repetitions[0].outcome {
        Outcome::Measured(measured) => measured,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn every_measurement_of_every_scenario_has_a_result() {
    let folder = Folder::new("scenario-all");
    let record = folder.path("r.json");
    let words = short("all", "--benchmark_filter=.", &record, "--benchmark_min_time=2x");
    binderperf(&words).ended(0).printed("BM_app-start ");
    let run = read(&record);
    let cases = workload::scenario::all().iter().flat_map(|scenario| &scenario.cases);
    let count: usize = cases.map(|case| case.values.len()).sum();
    assert_eq!(run.cases.len(), count);
    for case in &run.cases {
        match &case.repetitions[0].outcome {
            Outcome::Skipped { reason } => {
                assert!(case.name.starts_with("BM_cold_reclaimed/"), "{}: {reason}", case.name);
                assert!(reason.contains("the embedded driver's areas"), "{reason}");
            }
            _ => assert_eq!(measured(&run, &case.name).iterations, 2, "{}", case.name),
        }
    }
    assert_eq!(run.plan.test, "scenario all");
}

/// Measures cases of a scenario of which one has slow receivers; returns the fastest sample of each in ns, the slowed one's first.
fn with_slow(name: &str, slow: &str, others: &[&str], times: &str) -> Vec<u64> {
    let folder = Folder::new("scenario-slow");
    let record = folder.path("r.json");
    let filter = format!("--benchmark_filter=BM_({slow}|{})$", others.join("|"));
    let fault = format!("--fault=slow-server=BM_{slow}");
    let words = short(name, &filter, &record, times);
    binderperf(&[&words[..], &[&fault]].concat()).ended(0);
    let run = read(&record);
    let least = |case: &&str| measured(&run, &format!("BM_{case}")).samples.min;
    [&[slow][..], others].concat().iter().map(least).collect()
}

/// The figure of the slowed case is at least the time of the fault, and those of other cases are below it by half of
/// that time. The receiver of `register` is the service manager, which serves all cases.
#[test]
fn a_slow_receiver_moves_the_figure_of_its_case_only() {
    const FAULT_NS: u64 = 1_000_000;
    for (name, slow, others) in [
        ("oneway", "oneway_send/1", &["oneway_victim/0"][..]),
        ("descriptors", "descriptors/1", &["descriptors/8"]),
        ("objects", "objects_known/1", &["objects_new/1"]),
        ("buffers", "buffers_full/50", &["buffers_full/0"]),
        ("death", "death_calm/10", &["death_notices/1"]),
        ("freeze", "freeze_pending/1", &["freeze_refused"]),
        ("pool", "pool_nested", &["pool_busy/0"]),
        ("register", "register_get/10", &["register_add/10", "register_list/10", "register_notify/1"]),
        ("sizes", "sizes/16", &["sizes/1"]),
        ("cold", "cold_idle/1", &["cold_idle/10"]),
        ("rust-rfc", "rust-rfc_pairs/1", &["rust-rfc_bytes/64"]),
    ] {
        let least = with_slow(name, slow, others, "--benchmark_min_time=100x");
        assert!(least[0] >= FAULT_NS, "{slow}: {least:?} ns");
        assert!(
            least[1..].iter().all(|other| other + FAULT_NS / 2 < least[0]),
            "{slow} and {others:?}: {least:?} ns"
        );
    }
    // The start of applications takes longer than the fault anyway, so it is held against one with fast receivers.
    let slow = with_slow("all", "app-start", &["sizes/1"], "--benchmark_min_time=2x");
    let fast = with_slow("all", "sizes/1", &["app-start"], "--benchmark_min_time=2x");
    assert!(fast[1] < slow[0] && slow[1] < fast[0], "slow {slow:?} ns, fast {fast:?} ns");
}

#[test]
fn a_receiver_that_fails_is_named_and_the_rest_is_measured() {
    for (fault, why) in [
        ("corrupt-reply", "the reply is not what was sent"),
        ("kill-server", "the process server ended (signal: 6"),
    ] {
        let fault = format!("--fault={fault}=BM_sizes/16");
        let folder = Folder::new("scenario-broken");
        let record = folder.path("r.json");
        let filter = "--benchmark_filter=BM_sizes/(16|256)$";
        let words = short("sizes", filter, &record, "--benchmark_min_time=20x");
        binderperf(&[&words[..], &[&fault]].concat()).ended(1).printed(why);
        assert_eq!(measured(&read(&record), "BM_sizes/256").iterations, 20);
    }
}

#[test]
fn two_records_are_compared_case_by_case() {
    let folder = Folder::new("scenario-compare");
    let (before, after) = (folder.path("a.json"), folder.path("b.json"));
    for record in [&before, &after] {
        let words = short("descriptors", "--benchmark_filter=/(1|8)$", record, "--benchmark_min_time=20x");
        binderperf(&words).ended(0);
    }
    let compared = binderperf(&["compare", &before, &after]);
    assert!(matches!(compared.code, Some(0 | 1)), "{compared}");
    compared.printed("BM_descriptors/1").printed("BM_descriptors/8");
}

#[test]
fn scenarios_are_listed_and_their_steps_shown() {
    binderperf(&["scenario", "list"]).ended(0).printed("  oneway_victim, N = 0, 1, 4\n");
    let shown = binderperf(&["scenario", "show", "BM_death_notices/1000"]).ended(0);
    shown
        .printed("process client copies 10\n")
        .printed("  notified client 1000\n")
        .printed("# A service dies");
    workload::text::parse(&shown.stdout).expect("a description");
    for (words, why) in [
        (&["scenario"][..], "name a scenario (oneway, "),
        (&["scenario", "floods"], "no scenario is named \"floods\""),
        (&["scenario", "show", "oneway_victim/3"], "no measurement is named"),
        (&["scenario", "sizes", "--service", "x"], "--service does not go with scenario sizes"),
        (&["scenario", "sizes", "-m", "PASSTHROUGH"], "-m does not go with scenario sizes"),
    ] {
        binderperf(words).ended(2).complained(why);
    }
}
