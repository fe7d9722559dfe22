//! Tests of the text and the page of records beside one another.

use super::*;
use crate::Run;
use crate::across::{By, Sample, across};
use crate::compare::Metric;
use crate::fixtures::{self, case, measured};

fn found(devices: &[(&str, u64)]) -> Across {
    let run = |(device, took): &(&str, u64)| -> Run {
        let mut run = fixtures::run();
        run.host.host_name = (*device).to_owned();
        run.cases = vec![case("BM_sendVec_binder", 4, 0, vec![measured(1000, took * 1000, 1000)])];
        run
    };
    let samples: Vec<Sample> =
        devices.iter().map(|one| Sample::of(&format!("{}.json", one.0), &run(one), Metric::Median)).collect();
    across(&samples, By::Device, Metric::Median)
}

const MANY: [(&str, u64); 8] = [
    ("phone-1", 5000),
    ("phone-2", 5100),
    ("phone-3", 4900),
    ("phone-4", 5200),
    ("phone-5", 5000),
    ("phone-6", 5100),
    ("phone-7", 5050),
    ("phone-8", 15_000),
];

#[test]
fn who_stands_out_comes_first() {
    let text = text(&found(&MANY));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("8 records of 8 devices (1 kernel, 1 build), by device"), "{text}");
    assert!(lines[2].starts_with("1 device stands out: more than 3.5 times"), "{text}");
    let worst = "  phone-8: in 1 of 1 case, most in BM_sendVec_binder/4 (driver kernel, C; real CPUs): 15.0 us against ";
    assert!(lines[3].starts_with(worst), "{text}");
    assert!(text.contains("greatest/least"), "more groups than columns: their spread: {text}");
    assert!(super::text(&found(&MANY[..7])).contains("No device stands out"));
}

#[test]
fn few_groups_have_a_column_each() {
    let text = text(&found(&MANY[5..]));
    assert!(text.contains("No device can be called unusual: that takes 5"), "{text}");
    let head = text.lines().find(|line| line.starts_with("Case")).expect("a head");
    assert_eq!(head.split_whitespace().collect::<Vec<_>>(), ["Case", "phone-6", "phone-7", "phone-8"]);
}

#[test]
fn the_page_names_the_same_and_escapes_what_records_say() {
    let mut devices = MANY.to_vec();
    devices[7].0 = "<script>alert(1)</script>";
    let page = html(&found(&devices)).expect("a sound template");
    assert!(!page.contains("<script>"));
    assert!(page.contains("1 device stands out") && page.contains("stands out</td>"), "{page}");
    assert_eq!(page.matches("<circle").count(), 8);
    assert_eq!(page.matches("class=\"out\"").count(), 1);
    let read: serde_json::Value = serde_json::from_str(&json(&found(&MANY))).expect("JSON");
    assert_eq!(read["across"]["outliers"][0]["group"], "phone-8");
}
