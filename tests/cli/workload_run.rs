//! `workload run`: loads that are carried out on the embedded driver.

use std::path::Path;

use crate::support::{Called, Folder, binderperf, read};
use record::Outcome;

const LOAD: &str = "binderperf workload 1
process server pool 2
process back
process client copies 2
thread client times 3
  call server 96>8 times 2
    work 10us
    call back 64>16
  oneway back 100
  sleep 1ms
  call server 5000>4 fds 2 known 3
";

fn run(folder: &Folder, text: &str, more: &[&str]) -> Called {
    let (file, record) = (folder.path("load.txt"), folder.path("r.json"));
    std::fs::write(&file, text).expect("written");
    let words = ["workload", "run", &file, "--driver", "embedded", "--record", &record];
    binderperf(&[&words[..], more].concat())
}

#[test]
fn each_call_of_a_load_is_made_and_counted() {
    let folder = Folder::new("workload-run");
    for (more, times) in [(&[][..], 1), (&["--scale", "3", "--rounds", "2"], 3)] {
        run(&folder, LOAD, more).ended(0).printed("client:server ");
        let record = read(&folder.path("r.json"));
        for (name, calls) in [("client:server", 18), ("server:back", 12), ("client:back/oneway", 6)] {
            let case = record.case(name).unwrap_or_else(|| panic!("no case {name}"));
            assert_eq!(case.repetitions.len() == 2, times == 3);
            for repetition in &case.repetitions {
                let Outcome::Measured(measured) = &repetition.outcome else {
                    panic!("{name}: {repetition:?}")
                };
                assert_eq!(measured.iterations, calls * times, "{name}");
            }
        }
    }
}

#[test]
fn a_load_that_cannot_go_on_ends_with_its_reason_and_an_old_record_stays() {
    let folder = Folder::new("workload-broken");
    run(&folder, LOAD, &[]).ended(0);
    let before = std::fs::read(folder.path("r.json")).expect("a record");
    let held = "binderperf workload 1\nprocess a\nprocess b\nthread a\n  call b 4>4\n    hold\n";
    run(&folder, held, &["--patience", "1"]).ended(1).printed("no call was served in ");
    let large = "binderperf workload 1\nprocess a\nprocess b\nthread a\n  call b 2000000>4\n";
    run(&folder, large, &[]).ended(1).printed("a call to b: ");
    let taken = "binderperf workload 1\nprocess a\nprocess b\nthread a\n  call b 4>4 refused\n";
    run(&folder, taken, &[]).ended(1).printed("a call was taken that the driver should refuse");
    // Some processes have reported while others still call them.
    let endless = "binderperf workload 1\nprocess a copies 3\nprocess b pool 2\nthread a forever\n  call b 4>4\n    call a 4>4\n";
    run(&folder, endless, &["--seconds", "1"]).ended(0);
    let refused = "binderperf workload 1\nprocess a\nprocess b\nthread a\n  oneway b 600000 maybe-refused times 5\n  oneway b 64\n";
    run(&folder, refused, &[]).ended(0).printed("a:b/oneway: 5 of 6 calls were refused");
    let nested = "binderperf workload 1\nprocess a\nprocess b\nprocess c\nthread a\n  call b 4>4\n    call c 4>4 fds 3 known 2 new 1\n";
    run(&folder, nested, &[]).ended(0).printed("b:c ");
    for (text, why) in [
        (
            "binderperf workload 1\nprocess a\nthread a\n  call b 4>4\n",
            "load.txt: line 4: no process is named \"b\"",
        ),
        (
            "binderperf workload 1\nprocess a copies 9999\nthread a\n  work 1us\n",
            "9999 processes are too many here",
        ),
        ("binderperf workload 1\nprocess a\nmeasure\n  list\n", "a measuring process or steps of it"),
        ("binderperf workload 1\nprocess a\nprocess b copies 0\nthread a\n  call b 4>4\n", "no copies"),
    ] {
        std::fs::write(folder.path("r.json"), &before).expect("written");
        run(&folder, text, &[]).ended(2).complained(why);
        assert_eq!(std::fs::read(folder.path("r.json")).expect("a record"), before, "{text}");
    }
}

/// From a recording to a description, its replay, the recording of that, and their distance.
#[test]
fn a_replay_makes_the_calls_of_its_original() {
    needs::need!(crate::support::tracing_switch());
    let folder = Folder::new("workload-replay");
    let [original, description, replay] = ["a.trace", "a.txt", "b.trace"].map(|name| folder.path(name));
    let load = folder.path("load.txt");
    std::fs::write(&load, LOAD).expect("written");
    let record = |out: &str, file: &str| {
        let run = ["workload", "run", file, "--driver", "embedded"];
        let words = [&["trace", "record", "-o", out, "--", crate::support::BINARY], &run[..]].concat();
        binderperf(&words).ended(0);
    };
    record(&original, &load);
    binderperf(&["workload", "from", &original, "-o", &description]).ended(0);
    record(&replay, &description);
    assert!(Path::new(&replay).exists());
    let judged = binderperf(&["workload", "distance", &original, &replay]).ended(0);
    let row = |name: &str| {
        let row =
            judged.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{judged}"));
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // 12 + 6 calls of the clients, 12 within them; 6 oneway ones.
    assert_eq!(row("calls ")[1..4], ["30", "30", "1"], "{judged}");
    assert_eq!(row("oneway calls ")[2..5], ["6", "6", "1"], "{judged}");
}

#[test]
fn constraints_are_kept_or_refused_with_the_reason() {
    let folder = Folder::new("workload-constraints");
    // Not here: --sched-ext, which would schedule the whole machine; guests do it.
    for (words, held_to, refusal) in [
        (["--memory", "1G"], "memory 1024 MiB", "--memory: "),
        (["--uclamp", "0:512"], "utilization 0 to 512 of 1024", "clamping the utilization to 0 to 512: "),
    ] {
        let called = run(&folder, LOAD, &words);
        match called.code {
            Some(0) => {
                let held = read(&folder.path("r.json")).constraints.expect("it was held").words();
                assert_eq!(held, held_to);
                called.printed(format!("Held    {held}"));
            }
            _ => {
                called.ended(3).complained(refusal);
            }
        }
    }
    for (words, why) in [
        (["--memory", "12"], "no size of 8M or more"),
        (["--memory", "64X"], "no size"),
        (["--uclamp", "512:0"], "no range MIN:MAX"),
    ] {
        run(&folder, LOAD, &words).ended(2).complained(why);
    }
}
