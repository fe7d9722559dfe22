//! Results of other programs in `compare`, `gate`, `show`, `report` and `history`: Google Benchmark's JSON and the text of Android's
//! Binder tests. Not here: reading them (`record::import`).

use std::fs;

use crate::support::{Folder, binderperf};

fn input(name: &str) -> String {
    format!("{}/crates/record/src/import/tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn one_run_each_is_compared_by_its_size_and_proves_nothing() {
    let (a, b) = (input("gb_kcalloc.json"), input("gb_kvcalloc.json"));
    let called = binderperf(&["compare", &a, &b]).ended(0);
    called.printed("BM_sendVec_binder/4").printed("+1.2 %").printed("The mean of each run");
    called.printed("Cannot tell in 6 cases").printed("nothing but the size of the difference is known");
    assert!(!called.stdout.contains("emulated") && !called.stdout.contains("too wide"), "{}", called.stdout);
    binderperf(&["gate", "--baseline", &a, &b]).ended(3).printed("cannot tell");
    let called = binderperf(&["compare", &input("btt_base.txt"), &input("btt_patched.txt")]).ended(0);
    called
        .printed("binderThroughputTest/rate")
        .printed("-0.5 %")
        .printed("binderThroughputTest/call")
        .printed("+0.0 %");
    let latency = input("schd-dbg.txt");
    binderperf(&["compare", &latency, &latency, "--metric=max"]).ended(0).printed("schd-dbg/fifo");
}

#[test]
fn several_files_are_a_group() {
    let folder = Folder::new("others-group");
    let text = fs::read_to_string(input("gb_kcalloc.json")).expect("the input");
    let side = |name: &str, percent: u64| -> String {
        let path = folder.path(name);
        fs::create_dir_all(&path).expect("a folder");
        for at in 0..10_u64 {
            let slower = |line: &str| match line.trim().strip_prefix("\"real_time\": ") {
                Some(time) => {
                    let time: u64 = time.trim_end_matches(',').parse().expect("a time");
                    format!("   \"real_time\": {},\n", time * (percent * 1000 + at) / 100_000)
                }
                None => format!("{line}\n"),
            };
            let dated = text.replace("T10:00:00", &format!("T10:{at:02}:00"));
            fs::write(format!("{path}/{at}.json"), dated.lines().map(slower).collect::<String>())
                .expect("written");
        }
        path
    };
    let (a, b) = (side("a", 100), side("b", 110));
    binderperf(&["compare", &a, &b]).ended(0).printed("B is slower in 6 cases");
    binderperf(&["gate", "--baseline", &a, "--max-regress=5%", &b]).ended(1).printed("exceeded");
    binderperf(&["gate", "--baseline", &a, "--max-regress=5%", &a]).ended(0).printed("kept");
}

#[test]
fn they_are_shown_reported_and_kept_over_time() {
    let folder = Folder::new("others-show");
    let (gb, text) = (input("gb_kcalloc.json"), input("btt_base.txt"));
    let shown = binderperf(&["show", &gb]).ended(0);
    shown
        .printed("Google Benchmark")
        .printed("8 CPUs of 2000 MHz")
        .printed("39.1 us")
        .printed("single times");
    assert!(!shown.stdout.contains("Driver  none"), "{}", shown.stdout);
    binderperf(&["show", &text]).ended(0).printed("2.83 ms").printed("572 ms");
    let twice = folder.path("twice.txt");
    let one = fs::read_to_string(&text).expect("the input");
    fs::write(&twice, format!("{one}{}", one.replace("31917.7", "31918.7"))).expect("written");
    let shown = binderperf(&["show", &twice]).ended(0);
    assert_eq!(shown.stdout.matches("binderThroughputTest/rate").count(), 2, "{}", shown.stdout);
    // As a record it is read again.
    let record = folder.path("record.json");
    fs::write(&record, binderperf(&["show", &gb, "--format=json"]).ended(0).stdout).expect("written");
    binderperf(&["compare", &record, &input("gb_kvcalloc.json")]).ended(0).printed("+1.2 %");
    let page = folder.path("page.html");
    binderperf(&["report", &gb, &text, "-o", &page]).ended(0);
    let page = fs::read_to_string(&page).expect("a page");
    assert!(page.contains("BM_sendVec_binder/4") || page.contains("BM_sendVec_binder"), "{page}");
    let history = folder.path("history.jsonl");
    binderperf(&["history", "--file", &history, "--add", &gb, "--add", &text]).ended(0);
    let kept = binderperf(&["history", "--file", &history]).ended(0);
    kept.printed("BM_sendVec_binder/4").printed("binderThroughputTest/call");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let folder = Folder::new("others-bad");
    let text = fs::read_to_string(input("btt_base.txt")).expect("the input");
    let bad = folder.path("bad.txt");
    fs::write(&bad, text.replace("2.83375ms", "fast")).expect("written");
    for words in
        [&["show", &bad][..], &["compare", &bad, &bad], &["history", "--add", &bad], &["report", &bad]]
    {
        binderperf(words).ended(2).complained("binderThroughputTest makes no sense in line 3");
    }
}
