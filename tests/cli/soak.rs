//! `run --soak` on the embedded driver as its users meet it: injected leaks are named, a clean soak has none; a kill, Ctrl-C
//! and a full disk keep the turns.
//! Not here: the verdicts on made-up series (`record::soak::judge`).

use std::io::Write;
use std::process::Stdio;

use needs::need;
use record::soak::Soak;

use crate::support::{BINARY, Called, Folder, SmallDisk, command, contents, end, signal, start, wait_until};

/// Turns that a verdict needs, with warm-up.
const ENOUGH: &str = "--turns=14";
/// Turns that a verdict needs on times, which other work of this machine makes uneven.
const ENOUGH_FOR_TIMES: &str = "--turns=20";

/// A load that leaves the CPUs to the turns, which are then half as long.
const LOAD: &str = "--load=cpu:1:idle";

fn words<'w>(out: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    [&["run", "--soak=1h", "--tiny", "--driver=embedded", LOAD, "--out", out][..], more].concat()
}

fn soaked(out: &str, more: &[&str]) -> Called {
    end(start(&words(out, more)))
}

fn log(out: &str) -> Soak {
    Soak::parse(&contents(format!("{out}/soak.jsonl"))).expect("a log")
}

/// The verdict on a series.
#[track_caller]
fn verdict<'c>(called: &'c Called, series: &str) -> &'c str {
    let line = called.stdout.lines().find(|line| line.starts_with(&format!("{series} ")));
    line.unwrap_or_else(|| panic!("no {series} in {called}"))
        .trim_end()
        .rsplit("  ")
        .next()
        .expect("a word")
        .trim()
}

#[test]
fn a_clean_soak_grows_nothing() {
    let folder = Folder::new("soak-clean");
    let out = folder.path("out");
    let called = soaked(&out, &[ENOUGH]);
    // Times, memory and the kernel's log depend on what else runs here; the status says nothing else.
    let is_bad = ["DRIFTS", "GROWS", "FAILED"].into_iter().any(|word| called.stdout.contains(word));
    let called = called.ended(i32::from(is_bad));
    for count in
        ["driver nodes", "driver references", "driver processes", "service descriptors", "own descriptors"]
    {
        assert_eq!(verdict(&called, count), "steady", "{count}: {called}");
    }
    assert!(
        log(&out).turns.iter().all(|turn| turn.missing.iter().all(|why| why.contains("/dev/kmsg"))),
        "{called}"
    );
    let page = contents(format!("{out}/soak.html"));
    assert!(page.contains("<figure>") && page.contains("driver nodes: steady"));
    // What is over is only shown again.
    let again = soaked(&out, &[ENOUGH]);
    assert_eq!((again.code, &again.stdout), (called.code, &called.stdout), "{again}");
}

#[test]
fn a_leak_of_the_broker_and_a_slowdown_are_named() {
    let folder = Folder::new("soak-broker");
    let called = soaked(
        &folder.path("out"),
        &[ENOUGH_FOR_TIMES, "--inject=leak-broker", "--inject=leak-memory=2048", "--inject=slow-down=60000"],
    );
    for grows in ["driver nodes", "service memory, KiB"] {
        assert_eq!(verdict(&called, grows), "GROWS", "{grows}: {called}");
    }
    // Of the two, one may have met other work of this machine.
    let medians = ["latency_binder/fifo median", "latency_binder/other median"];
    assert!(medians.into_iter().any(|median| verdict(&called, median) == "DRIFTS"), "{called}");
    assert_eq!(verdict(&called, "service descriptors"), "steady", "{called}");
    called.ended(1).printed("injected leak-broker,leak-memory=2048,slow-down=60000");
}

#[test]
fn a_leak_of_the_service_is_named() {
    let folder = Folder::new("soak-service");
    let faults = ["--inject=leak-nodes=3", "--inject=leak-buffers=3", "--inject=leak-descriptors=4"];
    let called = soaked(&folder.path("out"), &[&[ENOUGH][..], &faults].concat());
    for grows in ["driver nodes", "driver references", "driver buffers", "service descriptors"] {
        assert_eq!(verdict(&called, grows), "GROWS", "{grows}: {called}");
    }
    assert_eq!(verdict(&called, "own descriptors"), "steady", "{called}");
    called.ended(1);
}

#[test]
fn a_killed_soak_goes_on_with_its_turns_and_ctrl_c_keeps_them() {
    let folder = Folder::new("soak-killed");
    let out = folder.path("out");
    let turns = |least: usize| {
        let text = std::fs::read_to_string(format!("{out}/soak.jsonl")).unwrap_or_default();
        Soak::parse(&text).is_ok_and(|soak| soak.turns.len() >= least)
    };
    // An update of the program meanwhile ends no soak.
    let program = folder.path("program");
    std::fs::copy(BINARY, &program).expect("copied");
    let mut child = command(&program, &words(&out, &[]));
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_until("a turn", || turns(1));
    std::fs::remove_file(&program).expect("removed");
    let begun = log(&out).turns.len();
    wait_until("two more turns", || turns(begun + 2));
    signal(child.id(), "KILL");
    assert_eq!(end(child).code, None);
    let before = log(&out);
    assert!(before.turns.iter().all(|turn| turn.failed.is_empty()), "{before:?}");
    // As if the kill had come within a write.
    let mut file = std::fs::File::options().append(true).open(format!("{out}/soak.jsonl")).expect("the log");
    file.write_all(b"{\"turn\":99,\"str").expect("written");
    let child = start(&words(&out, &[]));
    wait_until("a further turn", || turns(before.turns.len() + 1));
    signal(child.id(), "INT");
    let called = end(child);
    called.complained("Stopped by a signal").complained("Goes on behind turn").printed("in 2 stretches");
    called.printed("in the same boot").printed("1 line of the log");
    let after = log(&out);
    assert_eq!(after.turns[..before.turns.len()], before.turns[..], "no turn is lost");
    let (last, next) = (before.turns.last().expect("two"), &after.turns[before.turns.len()]);
    assert_eq!((next.turn, next.stretch), (last.turn + 1, 2));
    assert!(next.soaked_s > last.soaked_s && next.boot == last.boot && !next.boot.is_empty());
    assert!(contents(format!("{out}/soak.html")).contains("stretches"));
    called.ended(3).printed("too few turns");
    // Turns under another load would not compare.
    soaked(&out, &["--load=io:1"]).ended(2).complained("another setup");
    assert_eq!(log(&out), after);
}

#[test]
fn a_full_disk_keeps_the_turns_before() {
    let folder = Folder::new("soak-full");
    let disk = need!(SmallDisk::new(folder.path("disk"), "size=4k"));
    let called = soaked(&disk.0, &["--turns=40"]).ended(4);
    called.complained("cannot write all of a turn to").complained("ENOSPC").printed("without a break");
    let kept = log(&disk.0);
    assert!(!kept.turns.is_empty() && kept.turns.len() < 40 && kept.strange.is_empty(), "{called}");
}

#[test]
fn what_makes_no_soak_is_refused() {
    let folder = Folder::new("soak-refused");
    let out = folder.path("out");
    for (more, why) in [
        (&["--quick"][..], "cannot be used with"),
        (&["--inject=leak-all"], "leak-nodes"),
        (&["--turns=0"], "0 is not in"),
    ] {
        soaked(&out, more).ended(2).complained(why);
    }
    end(start(&["run", "--quick", "--inject=leak-broker"])).ended(2).complained("needs --soak");
    let strange = folder.write("strange/soak.jsonl", "{}\n");
    soaked(&folder.path("strange"), &[]).ended(2).complained("does not begin with the setup");
    assert_eq!(contents(strange), "{}\n");
    soaked(&folder.path("none"), &["--device=/dev/nosuch"]).ended(3);
    assert!(!std::path::Path::new(&folder.path("none")).exists());
}
