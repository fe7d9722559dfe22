//! `binderperf kpi`: the table, its record, and what takes that record.
//! Not here: kernels and counted instructions (`guest`), RPC binder by itself (`rpc`), whether `ab` finds a slower
//! side (`alone`).

use crate::support::{Folder, binderperf, contents, read};

/// A few calls of the smallest payload.
const SMALL: [&str; 9] = ["kpi", "--driver", "embedded", "-s", "64", "-i", "20", "--rounds", "6"];

#[test]
fn the_kpis_are_one_table_with_intervals_and_ratios() {
    let folder = Folder::new("kpi");
    let record = folder.path("kpi.json");
    let called = binderperf(&[&SMALL[..], &["--threads", "1,2", "--record", &record]].concat()).ended(0);
    let row = |begin: &[&str]| -> usize {
        let lines = called.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines
            .into_iter()
            .find(|line| line.starts_with(begin))
            .unwrap_or_else(|| panic!("{begin:?} in {called}"))
            .len()
    };
    // Name, payload and unit, threads, median, low - high, and the ratios to a pipe and a socket.
    for begin in [
        &["Binder-rpc", "64", "B", "1"][..],
        &["Binder-addints", "8", "B", "1"],
        &["Hwbinder", "64", "B", "1"],
    ] {
        assert!((8..=10).contains(&row(begin)), "{called}");
    }
    // One caller's control says nothing of two.
    assert!(row(&["Binder-rpc", "64", "B", "2"]) <= 8, "{called}");
    called.printed("medians of the medians of 6 rounds, in ns");
    let run = read(&record);
    assert_eq!((run.plan.test.as_str(), run.plan.random_interleaving), ("kpi", true));
    assert_eq!(run.case("BM_sendVec_rpc/64/threads:2").expect("measured").repetitions.len(), 6);
    binderperf(&["show", &record]).ended(0).printed("Binder-addints");
    binderperf(&["show", "--format=gbench-json", &record]).ended(0).printed("\"threads\": 2");
}

#[test]
fn two_records_are_compared_and_kept_over_time() {
    let folder = Folder::new("kpi-kept");
    let [one, other, history] = ["1.json", "2.json", "history.jsonl"].map(|name| folder.path(name));
    for record in [&one, &other] {
        binderperf(&[&SMALL[..], &["--record", record]].concat()).ended(0);
    }
    let called = binderperf(&["compare", &one, &other]).ended(0);
    for case in ["BM_sendVec_rpc/64", "BM_addInts", "BM_sendVec_binderize/64", "BM_sendVec_pipe/64"] {
        called.printed(case);
    }
    let added = binderperf(&["history", "--file", &history, "--add", &format!("{one},{other}")]).ended(0);
    added.complained("numbers added to");
    binderperf(&["history", "--file", &history, "--case", "addInts"]).ended(0).printed("BM_addInts");
    assert!(contents(&history).contains("BM_sendVec_rpc/64"));
}

#[test]
fn ab_judges_each_case() {
    let folder = Folder::new("kpi-ab");
    let records = folder.path("records");
    let sides =
        ["ab", "--a=direct=on", "--b=direct=off", "--records", &records, "--pairs=2", "--until-width=0%"];
    let test = [&["--"][..], &SMALL[..7], &["--rounds=1", "--controls=none"]].concat();
    let called = binderperf(&[&sides[..], &test].concat()).ended(0);
    for case in ["BM_addInts", "BM_sendVec_binderize/64", "BM_sendVec_rpc/64 "] {
        let line = called.stdout.lines().find(|line| line.contains(case));
        let line = line.unwrap_or_else(|| panic!("{case} in {called}"));
        assert!(line.contains("too few runs"), "{line}");
    }
}

#[test]
fn what_breaks_is_named_and_wrong_words_are_refused() {
    let called =
        binderperf(&[&SMALL[..], &["--controls", "none", "--fault", "kill-server=BM_addInts"]].concat())
            .ended(1);
    called.printed("the server died (signal: 6").printed("Hwbinder");
    for (words, why) in [
        (&["-s", "200000"][..], "RPC binder's messages end at"),
        (&["--threads", "0"], "0 is not in 1..=64"),
        (&["--device", "binder"], "each flavour needs a context of its own"),
        (&["--filter", "nothing"], "Failed to match any benchmarks"),
    ] {
        binderperf(&[&["kpi", "--driver", "embedded"], words].concat()).ended(2).complained(why);
    }
}
