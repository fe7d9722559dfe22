//! The priority-inversion experiment as a user or a script calls it, on the embedded driver.
//! Not here: the verdict's rules (`record::experiments::inversion`), load in general (`load`).
//! Times are only compared with those of the same call's reference, by the command itself.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use needs::{Need, need};

use crate::support::{
    BINARY, Called, Folder, binderperf, end, read, realtime, signal, start, wait_until, words,
};
use record::{Run, Sched, Setting};
use sys::sched;

/// Held by each test that measures: all would use the same CPU.
static CPU: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // Whatever broke another test is over.
    CPU.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inversion(words: &[&str]) -> Called {
    binderperf(&[&["inversion", "--driver=embedded", "-i", "40", "--rounds=2"], words].concat())
}

fn inverted(run: &Run, setting: Setting) -> Option<bool> {
    run.inversion().expect("the experiment").row(setting).expect("its row").inverted
}

#[test]
fn without_inheritance_there_is_inversion_and_with_it_there_is_none() {
    need!(realtime());
    let _cpu = alone();
    let own_nice = sched::nice_of(0).expect("one's own");
    for flavour in ["hwbinder", "binder"] {
        let folder = Folder::new(&format!("inversion-{flavour}"));
        let record = folder.path("r.json");
        let called = inversion(&["--flavour", flavour, "--record", &record]).ended(0);
        called.printed("NO INVERSION with inheritance");
        let run = read(&record);
        assert!(run.complete);
        let [off, on] = [Setting::Off, Setting::On].map(|setting| inverted(&run, setting));
        assert_eq!((off, on), (Some(true), Some(false)), "{}", called.stdout);
        let experiment = run.inversion().expect("the experiment");
        // Real-time threads keep the nice that these tests were started with.
        assert_eq!(experiment.caller, Sched { nice: own_nice, ..Sched::fifo(99) });
        for (setting, want) in [
            (Setting::Quiet, Sched::other(0)),
            (Setting::Off, Sched::other(0)),
            (Setting::On, Sched::fifo(99)),
            (Setting::Raised, Sched::fifo(99)),
        ] {
            let row = experiment.row(setting).expect("a row");
            assert_eq!((row.calls, row.served.len()), (80, 1), "{row:?}");
            let served = row.served[0].sched;
            assert_eq!((served.policy, served.priority), (want.policy, want.priority), "{row:?}");
            assert!(run.case(&row.case).is_some_and(|case| case.repetitions.len() == 2), "{row:?}");
        }
        let shown = binderperf(&["show", &record]);
        assert_eq!((shown.code, shown.stdout), (Some(0), called.stdout), "the table is the record's");
    }
}

/// Hogs that are real-time themselves leave a server of normal priority nothing, wherever it is on its way: a
/// moment of that between two calls would show.
#[test]
fn inheritance_leaves_no_gap_for_real_time_hogs() {
    need!(realtime());
    let _cpu = alone();
    for words in [&["--work=1000"][..], &["--work=0"]] {
        inversion(&[&["--hogs=1", "--hog-class=fifo10"], words].concat()).ended(0);
    }
}

/// Nice is inherited and does not help: the verdict can be the other one.
#[test]
fn inheriting_nice_only_leaves_the_inversion() {
    need!(realtime());
    let _cpu = alone();
    inversion(&["--inherit=nice", "--hogs=1", "--hog-class=fifo10"]).ended(1).printed("\nINVERSION although");
    inversion(&["--inherit=nice", "--hogs=1", "--hog-class=fifo10", "--expect=inversion"]).ended(0);
}

/// Such hogs do not keep a server waiting. Others on this machine may, as during this test.
#[test]
fn hogs_that_are_in_nobodys_way_show_nothing_and_it_says_so() {
    need!(realtime());
    let _cpu = alone();
    let folder = Folder::new("inversion-idle");
    let record = folder.path("r.json");
    let called = inversion(&["--hog-class=idle", "--record", &record]).ended(0);
    let shown = inverted(&read(&record), Setting::Off) == Some(true);
    let words = if shown { "without it there is" } else { "says nothing about inheritance" };
    called.printed(words);
}

#[test]
fn nonsense_is_refused() {
    for (words, says) in [
        (&["--hogs=0"][..], "1 to 64"),
        (&["--hogs=65"], "1 to 64"),
        (&["--hog-class=fifo99"], "1 to 98"),
        (&["--work=50001"], "50000 at most"),
        (&["-i", "0"], "1.."),
        (&["--flavour=vndbinder"], "hwbinder, binder"),
    ] {
        binderperf(&[&["inversion", "--driver=embedded"], words].concat()).ended(2).complained(says);
    }
    binderperf(&["inversion", "--driver=embedded", "-i", "9", "--rounds=2"]).ended(2);
    inversion(&["--cpu=60000"]).ended(3).complained("CPU 60000 may not be used here; use one of");
}

#[test]
fn a_caller_that_may_not_be_real_time_is_no_experiment() {
    const NOBODY: u32 = 65534;
    let mut command = Command::new(BINARY);
    command.args(["inversion", "--driver=embedded"]).stdin(Stdio::null()).env_remove("XDG_RUNTIME_DIR");
    if sys::identity::effective_uid() == 0 {
        command.uid(NOBODY);
    } else {
        need!(Need::OtherUser.met_if(realtime().is_err(), "this process is allowed to be real-time"));
    }
    let output = need!(command.output().map_err(|error| Need::OtherUser.lacks(error)));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("SCHED_FIFO 99") && said.contains("RLIMIT_RTPRIO"), "{said}");
}

/// What is in the command line of a hog.
const LOAD: &str = "__worker\0load";

/// Processes below this one that were started with such a word.
fn descendants(parent: u32, word: &str) -> Vec<u32> {
    let text =
        |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| {
        let ours = text(pid, "status").lines().any(|line| line == format!("PPid:\t{parent}"));
        ours && text(pid, "cmdline").contains(word)
    })
    .collect()
}

/// Waits until hogs are at work, and then does this to the process or to one of its children.
fn interrupted(record: &str, name: &str, word: Option<&str>) -> (Called, Vec<u32>) {
    let long = words("inversion --driver=embedded -i 100 --rounds=1000 --format=json --record");
    let child = start(&[&long[..], &[record]].concat());
    let hogs = || descendants(child.id(), LOAD);
    let group = || descendants(child.id(), "__worker\0inversion");
    wait_until("hogs are at work", || hogs().len() == 3 && group().len() == 4);
    let family = [hogs(), group()].concat();
    // Some calls are to be kept.
    std::thread::sleep(Duration::from_millis(100));
    let target = word.map_or(child.id(), |word| descendants(child.id(), word)[0]);
    signal(target, name);
    (end(child), family)
}

#[test]
fn what_breaks_is_said_and_what_was_measured_is_kept() {
    need!(realtime());
    let _cpu = alone();
    let folder = Folder::new("inversion-broken");
    for (name, signal, word, says) in [
        ("server", "KILL", Some("\"raised\":true"), "the raised server"),
        ("caller", "KILL", Some("Caller"), "the caller died (signal: 9"),
        ("hog", "KILL", Some(LOAD), "the load cpu:3 ended while it was needed"),
        ("signal", "TERM", None, "stopped by SIGTERM"),
    ] {
        let record = folder.path(name);
        let (called, family) = interrupted(&record, signal, word);
        called.ended(1).complained(says);
        let run = read(&record);
        assert!(!run.complete && run.incomplete_reason.is_some_and(|why| why.contains(says)), "{name}");
        assert!(run.cases[0].repetitions[0].outcome.measured().is_some(), "{name}: the quiet ones were made");
        let left: Vec<&u32> =
            family.iter().filter(|pid| Path::new(&format!("/proc/{pid}/stat")).exists()).collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

#[test]
fn it_ends_when_its_time_is_over() {
    need!(realtime());
    let _cpu = alone();
    let called = binderperf(&["inversion", "--driver=embedded", "-i", "1000000", "--time-limit=1"]);
    // On a busy machine the time is over before all processes are ready.
    assert!([Some(1), Some(3)].contains(&called.code), "{called}");
    called.complained("time limit");
}
