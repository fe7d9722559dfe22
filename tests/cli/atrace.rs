//! `atrace` on this machine's shared trace buffer, which is left as it was.
//! Not here: recordings in buffers of their own (`trace_record`).
//! Without tracefs, or the right to use it, or while somebody else traces, these tests say so and look at nothing.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use needs::{Lack, Need, need};

use crate::support::{
    BINARY, Called, Folder, call, command, contents, end, ends_with_the_miss, signal, stopped_at,
    tracing_switch, wait_until, words,
};

const TRACEFS: &str = "/sys/kernel/tracing";

const KNOBS: [&str; 7] = [
    "tracing_on",
    "trace_clock",
    "current_tracer",
    "options/overwrite",
    "options/record-tgid",
    "set_event",
    "events/sched/sched_switch/enable",
];

fn knob(name: &str) -> String {
    contents(format!("{TRACEFS}/{name}")).trim().to_owned()
}

fn set(name: &str, value: &str) {
    std::fs::write(format!("{TRACEFS}/{name}"), value).expect("tracefs");
}

/// A turn with the shared buffer, and a place for `atrace` to keep its state.
struct Turn {
    folder: Folder,
    before: Vec<String>,
    /// Locked: all that switch the shared buffer take turns, whichever test program they are in.
    _switch: File,
}

impl Turn {
    fn take(name: &str) -> Result<Self, Lack> {
        let switch = tracing_switch()?;
        switch.lock().expect("a lock");
        let free = knob("current_tracer") == "nop" && knob("set_event").is_empty();
        Need::Tracefs.met_if(free, "another tool is tracing")?;
        let before = KNOBS.map(knob).to_vec();
        Ok(Self { folder: Folder::new(&format!("atrace-{name}")), before, _switch: switch })
    }

    fn call(&self, words: &[&str]) -> Called {
        let state = self.folder.path("");
        call(BINARY, words, &[("XDG_RUNTIME_DIR", &state)])
    }

    fn state_file(&self) -> Option<std::path::PathBuf> {
        let entries = std::fs::read_dir(self.folder.path("")).expect("the folder").flatten();
        entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|it| it == "json"))
    }

    /// Whether the embedded driver's processes are told to write marks.
    fn is_announced(&self) -> bool {
        std::path::Path::new(&self.folder.path("binderperf/tracing")).exists()
    }

    fn is_as_before(&self) {
        assert_eq!(self.before, KNOBS.map(knob));
        assert!(!knob("buffer_size_kb").starts_with("8000") && self.state_file().is_none());
    }

    /// Starts a recording in the foreground, and waits until it records.
    fn started(&self, words: &[&str]) -> std::process::Child {
        let mut command = command(BINARY, words);
        command.env("XDG_RUNTIME_DIR", self.folder.path(""));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        wait_until("it records", || knob("tracing_on") != "0" && !knob("set_event").is_empty());
        child
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Also when the test failed.
        self.call(&["trace", "restore"]);
    }
}

#[test]
fn the_documented_session() {
    let turn = need!(Turn::take("session"));
    let run = |line: &str| turn.call(&words(line));
    let called = run("atrace --async_start -b 8000 -c sched idle workq binder_driver sync freq");
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "capturing trace..."), "{}", called.stderr);
    assert!(knob("set_event").contains("sched:sched_switch") && knob("tracing_on") == "1");
    assert!(knob("buffer_size_kb").starts_with("8000") && knob("options/record-tgid") == "1");
    let mode = std::fs::metadata(turn.state_file().expect("the state is kept")).expect("it").mode();
    assert_eq!(mode & 0o777, 0o600);

    // The documented one is met, so that nothing is stopped; and one that is not.
    let fine = "libhwbinder_latency -deadline_us 60000000 -trace -i 20 -pair 3 --driver=embedded --no-scenes";
    let called = run(fine);
    assert!(called.code == Some(0) && knob("tracing_on") == "1", "{}", called.stderr);
    let test =
        "libhwbinder_latency -deadline_us 500 -trace -i 50000 -pair 3 --driver=embedded --aosp-compat=off";
    let called = run(test).ended(1);
    let message = format!("deadline triggered: halt & stop trace\nlog:{TRACEFS}/trace\n");
    assert!(called.stderr.contains(&message) && knob("tracing_on") == "0", "{}", called.stderr);
    // What to do next is said, and does what it says.
    let next = format!("binderperf trace analyze {TRACEFS}/trace");
    called.complained(&next);
    let (named, words) = stopped_at(&called.stdout);
    let why = turn.call(&["trace", "analyze", &format!("{TRACEFS}/trace")]).ended(1);
    let verdicts: Vec<&str> = why.stdout.lines().filter(|line| line.starts_with("- MISS ")).collect();
    // Others may have missed in the moment before tracing was off.
    assert!(verdicts.iter().any(|line| line.contains(&format!("{named}: call "))), "{named}: {}", why.stdout);
    ends_with_the_miss(&contents(format!("{TRACEFS}/trace")), &words);

    let called = turn.call(&["atrace", "--async_dump"]);
    assert!(called.stdout.starts_with(" done\nTRACE:\n# tracer: nop\n"), "{:.100}", called.stdout);
    called.printed(": sched_switch: ").printed("trace_event_clock_sync: parent_ts=");
    // Begun anew on top of itself: what was there first counts.
    assert_eq!(turn.call(&["atrace", "--async_start", "-b", "64", "irq"]).code, Some(0));
    assert!(!knob("set_event").contains("sched:sched_switch") && knob("set_event").contains("irq:"));
    let called = turn.call(&["atrace", "--async_stop"]).ended(0);
    assert!(called.stdout.starts_with(" done\nTRACE:\n# tracer: nop\n"), "{:.100}", called.stdout);
    turn.is_as_before();
    assert_eq!(turn.call(&["atrace", "--async_stop"]).code, Some(2), "there is none any more");
    assert!(!turn.is_announced());
}

#[test]
fn the_embedded_drivers_processes_are_told_of_a_recording_of_binder_until_it_is_over() {
    let turn = need!(Turn::take("told"));
    let start = |categories: &[&str]| {
        let called = turn.call(&[&["atrace", "--async_start"], categories].concat()).ended(0);
        called.stderr
    };
    start(&["sched"]);
    assert!(!turn.is_announced(), "nobody asked for binder");
    let said = start(&["sched", "binder_driver"]);
    assert!(turn.is_announced());
    let of_its_own = std::path::Path::new(TRACEFS).join("events/binder").exists();
    assert!(
        of_its_own || said.contains("binder_driver: this kernel has no binder driver; the embedded"),
        "{said}"
    );
    start(&["sched"]);
    assert!(!turn.is_announced(), "begun anew without it");
    start(&["binder_driver"]);
    assert_eq!(turn.call(&["atrace", "--async_stop", "-o", "/dev/null"]).code, Some(0));
    assert!(!turn.is_announced());
    for next in [&["trace", "restore"][..], &["atrace", "-t", "0", "irq"]] {
        let mut child = turn.started(&["atrace", "-t", "1000", "sched", "binder_driver"]);
        wait_until("it is announced", || turn.is_announced());
        child.kill().and_then(|()| child.wait()).expect("it was running");
        assert_eq!(turn.call(next).code, Some(0));
        assert!(!turn.is_announced(), "{next:?} puts that back, too");
        turn.is_as_before();
    }
}

#[test]
fn a_recording_in_the_foreground_goes_to_a_file_also_compressed() {
    let turn = need!(Turn::take("file"));
    let file = turn.folder.path("t.atrace");
    let names = turn.folder.path("names");
    std::fs::write(&names, "sched, irq\n").expect("a file");
    let called = turn.call(&["atrace", "-t", "0", "-f", &names, "-o", &file]);
    assert_eq!(
        (called.code, called.stdout.as_str()),
        (Some(0), "capturing trace... done\n"),
        "{}",
        called.stderr
    );
    let plain = std::fs::read(&file).expect("the file");
    assert!(plain.starts_with(b"TRACE:\n# tracer: nop\n"));
    turn.is_as_before();
    turn.call(&["atrace", "-z", "-t", "0", "sched", "-o", &file]).ended(0);
    let packed = std::fs::read(&file).expect("the file");
    let stream = packed.strip_prefix(b"TRACE:\n").expect("what is behind it is zlib's");
    assert_eq!((stream[0], u16::from_be_bytes([stream[0], stream[1]]) % 31), (0x78, 0), "zlib's header");
    turn.is_as_before();
}

#[test]
fn a_signal_puts_everything_back_and_after_a_crash_restore_does() {
    let turn = need!(Turn::take("crash"));
    let child = turn.started(&["atrace", "-t", "1000", "-b", "8000", "sched"]);
    assert!(turn.call(&["atrace", "-t", "0", "irq"]).stderr.contains(&format!("process {}", child.id())));
    signal(child.id(), "TERM");
    assert_eq!(end(child).ended(1).stdout, "capturing trace...\ntrace aborted.\n");
    turn.is_as_before();

    for next in [&["trace", "restore"][..], &["atrace", "-t", "0", "irq"]] {
        let mut child = turn.started(&["atrace", "-t", "1000", "-b", "8000", "sched"]);
        child.kill().and_then(|()| child.wait()).expect("it was running");
        assert!(knob("set_event").contains("sched:"), "nobody has put it back");
        assert_eq!(turn.call(next).code, Some(0));
        turn.is_as_before();
    }

    let mut child = turn.started(&["atrace", "--stream", "sched"]);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(": sched_switch: ")), "it ended before");
    signal(child.id(), "INT");
    lines.for_each(drop);
    end(child);
    turn.is_as_before();
}

#[test]
fn somebody_elses_recording_is_left_alone() {
    let turn = need!(Turn::take("others"));
    let theirs = "events/sched/sched_process_exec/enable";
    set(theirs, "1");
    let outcome = std::panic::catch_unwind(|| {
        for words in [
            &["atrace", "--async_start", "irq"][..],
            &["atrace", "-t", "0", "irq"],
            &["atrace", "--async_stop"],
        ] {
            turn.call(words)
                .ended(3)
                .complained("sched/sched_process_exec")
                .complained("another tool is tracing");
        }
        let file = turn.folder.path("t.trace");
        let called = turn.call(&["trace", "record", "-o", &file, "irq", "--", "true"]);
        assert_eq!(called.code, Some(0), "a buffer of its own is no trouble: {}", called.stderr);
        called.complained("another tool is tracing");
        assert_eq!(knob(theirs), "1");
    });
    set(theirs, "0");
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    turn.is_as_before();
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let turn = need!(Turn::take("bad"));
    let cases: [(&[&str], i32, &str); 7] = [
        (&["-t", "0", "skhed"], 2, "unknown tracing category \"skhed\"; there are: sched "),
        (&["-b", "0", "-t", "0", "sched"], 2, "records nothing"),
        (&["-b", "18446744073709551615", "-t", "0", "sched"], 2, "exceed half"),
        (&["-f", "/no/such/file"], 2, "/no/such/file: ENOENT"),
        (&["-o", "/no/such/folder/file", "-t", "0", "sched"], 4, "/no/such/folder/file: ENOENT"),
        (&["-o", "/dev/full", "-t", "0", "sched"], 4, "ENOSPC"),
        (&["--async_start", "--async_stop"], 2, "cannot be used with"),
    ];
    for (words, status, want) in cases {
        turn.call(&[&["atrace"], words].concat()).ended(status).complained(want);
        turn.is_as_before();
    }
    // It does not exist, or this kernel records none at all, or lets nobody.
    let called = turn.call(&["atrace", "-k", "no_such_function_anywhere", "-t", "0"]);
    assert!(called.code == Some(2) || called.code == Some(3), "{}", called.stderr);
    assert!(called.stderr.contains("-k: ") || called.stderr.contains("even to root"), "{}", called.stderr);
    turn.is_as_before();
    turn.call(&["atrace", "--only_userspace", "--async_start", "view"]).ended(0);
    turn.is_as_before();
    let listed = turn.call(&["atrace", "--list_categories"]).stdout;
    assert!(listed.contains("sched - ") && listed.contains("binder_driver - "), "{listed}");
}
