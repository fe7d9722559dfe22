//! `throughput addints`: Android's sum of two numbers, by its name and by ours.

use crate::support::{Folder, binderperf, read};
use record::Outcome;

const FEW: &str = "--benchmark_min_time=50x";

#[test]
fn two_numbers_are_added_with_and_without_a_delay() {
    let folder = Folder::new("addints");
    let cpu = sys::sched::affinity().expect("asked")[0].to_string();
    for (more, controls) in [(&[][..], "raw"), (&["-c", &cpu, "-s", &cpu, "-d", "0.01"], "none")] {
        let record = folder.path("r.json");
        let words = [
            "throughput",
            "addints",
            "--driver",
            "embedded",
            "--controls",
            controls,
            FEW,
            "--record",
            &record,
        ];
        let called = binderperf(&[&words[..], more].concat()).ended(0);
        let run = read(&record);
        let case = run.case("BM_addInts").expect("measured");
        let Outcome::Measured(result) = &case.repetitions[0].outcome else { panic!("{case:?}") };
        assert_eq!((result.iterations, case.payload_bytes), (50, 8));
        match more {
            [] => drop(called.printed("x_raw=")),
            // The client spins for 10 ms before each call, and is not charged for it.
            _ => {
                assert!(result.cpu_total < 50 * 5_000_000, "{result:?}");
                let placement = format!("default; client on CPU {cpu}, server on CPU {cpu}");
                assert_eq!(run.plan.placement, placement);
            }
        }
    }
}

#[test]
fn by_its_name_it_prints_what_androids_tool_prints() {
    let called = binderperf(&["binderAddInts", FEW]).ended(0);
    let rows: Vec<&str> = called.stdout.lines().filter(|line| line.starts_with("BM_")).collect();
    assert!(matches!(rows[..], [row] if row.starts_with("BM_addInts ") && row.contains(" 50")), "{called}");
}

#[test]
fn a_wrong_sum_and_wrong_words_are_noticed() {
    let wrong = [
        "throughput",
        "addints",
        "--driver",
        "embedded",
        "--controls",
        "none",
        FEW,
        "--fault",
        "corrupt-reply=BM_addInts",
    ];
    binderperf(&wrong).ended(1).printed("1 and 4 came back as ");
    for (words, why) in [
        (&["-c", "100000"][..], "CPU 100000 may not be used here"),
        (&["-d", "11"], "a delay is 0 to 10 seconds"),
        (&["-d", "nan"], "a delay is 0 to 10 seconds"),
        (&["-s", "0", "--placement", "same"], "use one way"),
        (&["-s", "0", "--service", "x", "--device", "binder"], "--service is another process's"),
    ] {
        let called = binderperf(&[&["throughput", "addints"], words].concat());
        assert!(matches!(called.code, Some(2 | 3)), "{called}");
        called.complained(why);
    }
    binderperf(&["throughput", "binder", "-d", "1"])
        .ended(2)
        .complained("-d does not go with throughput binder");
}
