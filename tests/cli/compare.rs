//! `binderperf compare` and `gate` on records: measured ones, the same ones made slower, and broken ones.
//! Not here: how often their verdicts are right (`record::compare`), Google's `compare.py` (`compare_py`).

use crate::support::{Called, Folder, binderperf, contents, with_full_stdout, without_checksum};
use serde_json::Value;

/// A record of one short run on the embedded driver.
fn measured(folder: &Folder, name: &str) -> Value {
    let path = folder.path(name);
    let words = ["throughput", "binder", "--driver=embedded", "--controls=none", "--benchmark_min_time=200x"];
    let filter = "--benchmark_filter=/(4|64)$";
    binderperf(&[&words[..], &[filter, "--record", &path]].concat()).ended(0);
    without_checksum(path)
}

/// A folder of records made of one: each with all times so many times as long, and a little more or less.
fn runs(folder: &Folder, name: &str, record: &Value, factor: f64, count: usize) -> String {
    let path = folder.path(name);
    std::fs::create_dir_all(&path).expect("a folder");
    for at in 0..count {
        let mut run = record.clone();
        // Records of one moment with the same numbers are copies, which are refused.
        run["started"] = format!("2026-01-31T12:{at:02}:00Z").into();
        let factor = factor * (1.0 + 0.002 * (at % 5) as f64);
        for case in run["cases"].as_array_mut().expect("cases") {
            slow_down(&mut case["repetitions"][0]["outcome"]["measured"], factor);
        }
        std::fs::write(format!("{path}/{at}.json"), run.to_string()).expect("written");
    }
    path
}

/// Replaces all samples by ones around the median that take so many times as long.
fn slow_down(numbers: &mut Value, factor: f64) {
    let samples = (0..1000u64).map(|at| ((20_000 + at) as f64 * factor) as u64);
    let samples: Vec<u64> = samples.collect();
    let distribution = record::Distribution::of(samples.iter().copied());
    numbers["iterations"] = samples.len().into();
    numbers["real_total"] = distribution.sum.into();
    numbers["samples"] = serde_json::to_value(&distribution).expect("JSON");
}

fn gate(a: &str, b: &str, more: &[&str]) -> Called {
    binderperf(&[&["gate", "--baseline", a, "--max-regress=5%", b], more].concat())
}

#[test]
fn groups_of_records_are_compared_and_gated() {
    let folder = Folder::new("compare-groups");
    let record = measured(&folder, "one.json");
    let a = runs(&folder, "a", &record, 1.0, 12);
    let (same, slower) = (runs(&folder, "same", &record, 1.0, 12), runs(&folder, "slower", &record, 1.1, 12));

    let called = binderperf(&["compare", &a, &slower]).ended(0);
    assert!(
        called.stdout.trim_end().ends_with("B is slower in 2 cases: 2 slower; p99 worse in 2"),
        "{}",
        called.stdout
    );
    let called = binderperf(&["compare", &a, &same, "--format=json"]);
    let json: Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!((called.code, json["word"].as_str()), (Some(0), Some("no difference")));
    let called = binderperf(&["compare", &slower, &a, "--format=markdown", "--metric=p90"]);
    assert!(called.stdout.starts_with("**B is faster"), "{}", called.stdout);

    assert_eq!(gate(&a, &same, &[]).code, Some(0));
    gate(&a, &slower, &[]).ended(1).printed("Gate at +5 %: exceeded");
    assert_eq!(gate(&slower, &a, &["--format=json"]).code, Some(0), "faster is fine");
    assert_eq!(binderperf(&["gate", "--baseline", &a, "--max-regress=20%", &slower]).code, Some(0));
}

#[test]
fn doubt_is_an_outcome_of_its_own() {
    let folder = Folder::new("compare-doubt");
    let record = measured(&folder, "one.json");
    let (a, b) = (runs(&folder, "a", &record, 1.0, 1), runs(&folder, "b", &record, 1.02, 1));
    gate(&a, &b, &[]).ended(3).printed("Gate at +5 %: cannot tell").printed("within run");
    assert_eq!(gate(&a, &b, &["--cannot-tell=pass"]).code, Some(0));
    assert_eq!(gate(&a, &b, &["--cannot-tell=fail"]).code, Some(1));
}

#[test]
fn files_with_commas_between_are_a_group() {
    let folder = Folder::new("compare-commas");
    let record = measured(&folder, "one.json");
    let a = runs(&folder, "a", &record, 1.0, 2);
    let both = format!("{a}/0.json,{a}/1.json");
    binderperf(&["compare", &both, &folder.path("one.json")]).ended(0).printed("(2 runs)");
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let folder = Folder::new("compare-refused");
    let record = measured(&folder, "one.json");
    let one = folder.path("one.json");
    let changed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut other = record.clone();
        change(&mut other);
        folder.write(name, other.to_string())
    };
    let tcg = changed("tcg.json", &|run| run["host"]["class"] = "tcg".into());
    let counted = changed("counted.json", &|run| run["clock"]["unit"] = "instructions".into());
    let other = changed("other.json", &|run| run["cases"][0]["payload_bytes"] = 8.into());
    let newer = changed("newer.json", &|run| run["version"] = 9.into());
    let damaged = changed("damaged.json", &|run| run["cases"][0]["threads"] = 0.into());
    let cut = folder.write("cut.json", &record.to_string()[..record.to_string().len() / 2]);
    let empty = folder.write("empty.json", "");
    let nothing = folder.path("nothing");
    std::fs::create_dir_all(&nothing).expect("a folder");
    let missing = folder.path("missing.json");
    let mixed = format!("{one},{other}");
    for (b, said) in [
        (&tcg, "emulated"),
        (&counted, "--icount"),
        (&newer, "version 9"),
        (&damaged, "contradicts itself"),
        (&cut, "breaks off"),
        (&empty, "is empty"),
        (&nothing, "has no record"),
        (&missing, "cannot open"),
        (&mixed, "not of the same test"),
    ] {
        for words in [&["compare", &one, b][..], &["gate", "--baseline", b, &one]] {
            binderperf(words).ended(2).complained(said).printed_nothing();
        }
    }
    binderperf(&["compare", &one, &tcg, "--force"]).ended(0).printed("WARNING");
    binderperf(&["compare", &one, &other]).ended(0).printed("payload 4 B and 8 B");
}

#[test]
fn an_output_that_takes_nothing_is_an_error() {
    let folder = Folder::new("compare-full");
    measured(&folder, "one.json");
    let one = folder.path("one.json");
    let nowhere = folder.path("no/such/folder.txt");
    binderperf(&["compare", &one, &one, "--out", &nowhere]).ended(4).complained("folder.txt");
    assert_eq!(with_full_stdout(&["compare", &one, &one]), Some(4));
    let written = folder.path("out.md");
    binderperf(&["compare", &one, &one, "--format=markdown", "--out", &written]).ended(0).printed_nothing();
    assert!(contents(&written).starts_with("**Cannot tell"));
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for words in [
        &["compare", "x"][..],
        &["compare", "x", "y", "--metric=p98"],
        &["compare", "x", "y", "--resolution=0%"],
        &["gate", "x"],
        &["gate", "--baseline=x", "y", "--max-regress=much"],
    ] {
        assert_eq!(binderperf(words).code, Some(2), "{words:?}");
    }
}

#[test]
fn a_slow_device_stands_out_of_a_folder_of_folders() {
    let folder = Folder::new("compare-across");
    let record = measured(&folder, "one.json");
    for device in 0..6 {
        let mut of_device = record.clone();
        of_device["host"]["host_name"] = format!("phone-{device}").into();
        let factor = if device == 5 { 3.0 } else { 1.0 + 0.01 * f64::from(device) };
        runs(&folder, &format!("fleet/phone-{device}"), &of_device, factor, 3);
    }
    std::fs::remove_file(folder.path("one.json")).expect("the original");
    // A broken file among them is told, and spoils nothing.
    std::fs::write(folder.path("fleet/phone-0/broken.json"), "{\"schema\":").expect("written");
    let fleet = folder.path("fleet");

    let called = binderperf(&["compare", "--across", &fleet]).ended(0);
    assert!(called.stdout.starts_with("18 records of 6 devices"), "{}", called.stdout);
    assert!(called.stdout.contains("1 device stands out"), "{}", called.stdout);
    assert!(called.stdout.contains("\n  phone-5: in 2 of 2 cases"), "{}", called.stdout);
    assert!(
        called.stderr.contains("broken.json") && called.stderr.contains("passed over"),
        "{}",
        called.stderr
    );
    let called = binderperf(&["compare", "--across=kernel", &fleet]).ended(0);
    assert!(called.stdout.contains("No kernel can be called unusual"), "{}", called.stdout);

    let page = folder.path("across.html");
    binderperf(&["report", "--across", &fleet, "-o", &page]).ended(0);
    assert!(contents(&page).contains("phone-5: in 2 of 2 cases"));
    binderperf(&["compare", "--across", &folder.path("")]).ended(0);
    let empty = Folder::new("compare-across-empty");
    let called = binderperf(&["compare", "--across", &empty.path("")]).ended(2);
    assert!(called.stderr.contains("no record in"), "{}", called.stderr);
    let called = binderperf(&["compare", &fleet]).ended(2);
    assert!(called.stderr.contains("two sides are compared"), "{}", called.stderr);
}
