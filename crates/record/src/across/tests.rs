//! Tests of records beside one another: who stands out, and who does not.

use super::*;
use crate::fixtures::{self, case, measured};

/// A record of a device with one case that takes this long, in ns.
fn run(device: &str, took: u64) -> Run {
    let mut run = fixtures::run();
    run.host.host_name = device.to_owned();
    run.cases = vec![case("BM_sendVec_binder", 4, 0, vec![measured(1000, took * 1000, 1000)])];
    run
}

fn samples(runs: &[(&str, u64)]) -> Vec<Sample> {
    let numbered = runs.iter().enumerate();
    numbered
        .map(|(index, (device, took))| {
            Sample::of(&format!("{index}.json"), &run(device, *took), Metric::Median)
        })
        .collect()
}

fn by_device(runs: &[(&str, u64)]) -> Across {
    across(&samples(runs), By::Device, Metric::Median)
}

#[test]
fn a_slow_device_stands_out_and_the_usual_spread_does_not() {
    let usual = [("a", 5000), ("b", 5200), ("c", 4900), ("d", 5100), ("e", 5300)];
    assert_eq!(by_device(&usual).outliers, []);
    let found = by_device(&[usual.as_slice(), &[("slow", 9000)]].concat());
    assert_eq!(found.outliers.len(), 1, "{found:?}");
    let slow = &found.outliers[0];
    assert_eq!((slow.group.as_str(), slow.deviation.cases, slow.of), ("slow", 1, 1));
    assert!(slow.deviation.value > slow.deviation.middle * 1.7, "{slow:?}");
    assert_eq!(found.cases[0].groups[0].group, "slow", "the most expensive first");
    // A fast one stands out as well.
    assert_eq!(by_device(&[usual.as_slice(), &[("fast", 1000)]].concat()).outliers[0].group, "fast");
}

#[test]
fn equal_devices_hide_no_step_and_invent_none() {
    let equal = [("a", 5000), ("b", 5000), ("c", 5000), ("d", 5000), ("e", 5000)];
    assert_eq!(by_device(&[equal.as_slice(), &[("f", 5100)]].concat()).outliers, [], "2 % is negligible");
    assert_eq!(by_device(&[equal.as_slice(), &[("f", 5500)]].concat()).outliers.len(), 1);
    // Among four nobody can tell who is unusual.
    assert_eq!(by_device(&[&equal[..3], &[("f", 50_000)]].concat()).outliers, []);
}

#[test]
fn a_record_unlike_its_devices_others_is_a_stray() {
    let mut runs: Vec<(&str, u64)> = [5000, 5100, 5000, 5200, 4900].map(|took| ("a", took)).into();
    runs.push(("a", 20_000));
    let found = by_device(&runs);
    assert_eq!(found.strays.len(), 1);
    assert_eq!((found.strays[0].file.as_str(), found.strays[0].group.as_str()), ("5.json", "a"));
    let figure = &found.cases[0].groups[0];
    assert_eq!(figure.records, 6);
    assert!(figure.value < 5300.0, "the device's figure is the median of its records: {figure:?}");
    assert!(figure.greatest > 19_000.0 && figure.least < 5000.0, "{figure:?}");
}

#[test]
fn unlike_records_are_not_held_against_each_other() {
    let mut emulated = run("b", 500_000);
    emulated.host.class = HostClass::Tcg;
    let mut instructions = run("c", 15_000);
    instructions.host.class = HostClass::Icount;
    let mut placed = run("a", 1000);
    placed.plan.placement = "cross".to_owned();
    let runs = [run("a", 5000), emulated, instructions, placed];
    let samples = runs.each_ref().map(|run| Sample::of("x.json", run, Metric::Median));
    let found = across(&samples, By::Device, Metric::Median);
    assert_eq!(found.cases.len(), 4, "{found:?}");
    assert!(found.cases.iter().all(|case| case.groups.len() == 1));
    assert!(found.cases.iter().any(|case| case.unit == ClockUnit::Instructions));
    assert!(found.cases.iter().any(|case| case.key.case == "BM_sendVec_binder/4/cross"));
}

#[test]
fn nobody_stands_out_by_a_control() {
    let sample = |(index, took): (usize, u64)| {
        let mut run = run(&format!("phone-{index}"), 5000);
        run.cases.push(case("BM_sendVec_pipe", 4, 0, vec![measured(1000, took * 1000, 1000)]));
        Sample::of("x.json", &run, Metric::Median)
    };
    let samples: Vec<Sample> = [6000, 6100, 6050, 6000, 90_000].into_iter().enumerate().map(sample).collect();
    let found = across(&samples, By::Device, Metric::Median);
    assert_eq!((found.outliers.len(), found.cases.len()), (0, 2));
    assert!(found.cases[1].key.control, "controls come last");
}

#[test]
fn phones_are_told_by_serial_number_and_fingerprint() {
    let phone = |serial: &str, build: &str| {
        let mut run = run("localhost", 5000);
        let known = |word: &str| Some(word.to_owned());
        run.host.device =
            Some(crate::Device { serial: known(serial), fingerprint: known(build), ..Default::default() });
        Sample::of("x.json", &run, Metric::Median)
    };
    let samples = [phone("A1", "one"), phone("B2", "one"), phone("C3", "two")];
    assert_eq!(across(&samples, By::Device, Metric::Median).cases[0].groups.len(), 3);
    assert_eq!(across(&samples, By::Build, Metric::Median).cases[0].groups.len(), 2);
}

#[test]
fn groups_follow_the_question() {
    let mut other = run("a", 9000);
    other.host.kernel.release = "7.2".to_owned();
    let samples = [run("a", 5000), other].map(|run| Sample::of("x.json", &run, Metric::Median));
    assert_eq!(across(&samples, By::Device, Metric::Median).cases[0].groups.len(), 1);
    assert_eq!(across(&samples, By::Kernel, Metric::Median).cases[0].groups.len(), 2);
    assert_eq!(across(&samples, By::Build, Metric::Median).cases[0].groups.len(), 2);
}
