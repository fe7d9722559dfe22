//! `binderperf vm --profile`: the instructions of a round trip by function.

use crate::one_guest;
use crate::support::{Folder, binderperf};

#[test]
fn the_profile_of_a_round_trip_is_whole_and_names_the_driver() {
    let _guest = one_guest();
    let folder = Folder::new("profile");
    let (file, out) = (folder.path("p.json"), folder.path("out"));
    let test = [
        "throughput",
        "binder",
        "--driver=kernel",
        "--controls=none",
        "--benchmark_filter=/4$",
        // The profile is of the first 100; each is emulated one instruction at a time.
        "--benchmark_min_time=200x",
        "--record=r.json",
    ];
    let words = [&["vm", "--icount", "--profile", &file, "--out", &out, "--"], &test[..]].concat();
    let called = binderperf(&words).ended(0);
    called.printed("Profile of BM_sendVec_binder/4: ");
    let document = std::fs::read_to_string(&file).expect("the profile");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let profiles = document["profiles"].as_array().expect("a list");
    let named = |name: &str| profiles.iter().find(|one| one["case"] == name).expect("a case");
    let found = named("BM_sendVec_binder/4");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let all = number(&found["instructions"]);
    let sum = |what: &str, field: &str| {
        found[what].as_array().expect("a list").iter().map(|one| number(&one[field])).sum::<f64>()
    };
    for (what, field) in [("functions", "own"), ("groups", "instructions"), ("stacks", "instructions")] {
        assert!((sum(what, field) - all).abs() < 0.01, "{what}: {} of {all}", sum(what, field));
    }
    let share = |name: &str| {
        let function = found["functions"].as_array().expect("a list").iter().find(|one| one["name"] == name);
        number(&function.unwrap_or_else(|| panic!("no {name}: {}", called.stdout))["total"]) / all
    };
    assert!(share("binder_ioctl") > 0.5, "{}", called.stdout);
    assert!(share("__schedule") > 0.05, "{}", called.stdout);

    // What the test itself counts lies between two readings of the clock, a few instructions closer.
    let run = crate::support::read(&format!("{out}/r.json"));
    let case = run.case("BM_sendVec_binder/4").expect("the case");
    let counted =
        case.measurements().next().and_then(|numbers| numbers.samples.percentile(50.0)).expect("a median");
    assert!((0.95..=1.0).contains(&(counted as f64 / all)), "{counted} of {all}");
}
