//! `binderperf trace record --via perfetto` with a stand-in for Perfetto's recorder: its configuration, each way in which
//! it can fail, misses.
//! Not here: the recorder itself; recordings by tracefs (`trace_record`).

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::{
    BINARY, Called, Folder, binderperf, call, command, contents, end, fixture, refused, wait_until,
};

/// A recorder that keeps its configuration and, asked to end, writes a recording that was made before.
const PERFETTO: &str = r#"#!/bin/sh
case "$*" in *--help*) [ "$MODE" = old ] || echo "  --notify-fd FD" >&2; exit 0 ;; esac
while [ $# -gt 0 ]; do
    [ "$1" = -o ] && out=$2
    shift
done
cat >"$FAKE/config"
case $MODE in
no-traced) echo "perfetto_cmd.cc:1184 Could not connect to the traced socket /tmp/perfetto-consumer. Ensure traced is running" >&2; exit 1 ;;
refuses) echo "The trace config is invalid, bailing out." >&2; exit 1 ;;
sources) printf '\1'; sleep 10 ;;
breaks) printf '\0'; sleep 0.2; echo "traced closed the connection" >&2; exit 1 ;;
full) trap 'echo "write failed: No space left on device" >&2; exit 1' TERM ;;
empty) trap 'printf "\n\2P\1" >"$out"; exit 0' TERM ;;
*) trap 'grep -q STOP_TRACING "$FAKE/config" && [ ! -e "$FAKE/triggered" ] || cp "$FAKE/recording" "$out"; exit 0' TERM INT ;;
esac
echo $$ >"$FAKE/pid"
[ "$MODE" = old ] || printf '\0'
while :; do sleep 0.02; done
"#;

/// A program that sends triggers.
const TRIGGER: &str = r#"#!/bin/sh
[ "$1" = binderperf-miss ] && touch "$FAKE/triggered" && kill "$(cat "$FAKE/pid")"
"#;

struct Fake(Folder);

impl Fake {
    fn new(name: &str, trigger: bool) -> Self {
        let folder = Folder::new(name);
        std::fs::create_dir(folder.path("out")).expect("a folder");
        std::fs::copy(fixture("perfetto/c-latency-binder.pftrace"), folder.path("recording"))
            .expect("a fixture");
        let fake = Self(folder);
        fake.program("perfetto", PERFETTO);
        if trigger {
            fake.program("trigger_perfetto", TRIGGER);
        }
        fake
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.0.write(name, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }

    fn record(&self, mode: &str, words: &[&str], command: &[&str]) -> Called {
        let out = self.out();
        let words = [&["trace", "record", "--via", "perfetto", "-o", &out], words, &["--"], command].concat();
        let variables = self.variables(mode);
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        call(BINARY, &words, &variables)
    }

    fn out(&self) -> String {
        self.0.path("out/out.pftrace")
    }

    /// The variables of a call.
    fn variables(&self, mode: &str) -> [(&'static str, String); 3] {
        let folder = self.0.path("");
        [("PATH", format!("{folder}:/usr/bin:/bin")), ("FAKE", folder), ("MODE", mode.to_owned())]
    }

    /// Names of what is beside the recording, hidden files, too.
    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path("out")).expect("the folder").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

#[test]
fn a_command_is_recorded_and_nothing_else_is_left() {
    let fake = Fake::new("via-perfetto", false);
    let called =
        fake.record("", &["sched", "binder_driver", "aidl", "--app", "*"], &["sh", "-c", "exit 7"]).ended(7);
    called.complained("bytes by perfetto, 9").complained(" events");
    assert_eq!(std::fs::read(fake.out()).expect("it"), std::fs::read(fake.0.path("recording")).expect("it"));
    assert_eq!(fake.left(), ["out.pftrace"]);
    let config = contents(fake.0.path("config"));
    for has in [
        "sched/sched_switch",
        "rust_binder/binder_transaction\"",
        "atrace_categories: \"aidl\"",
        "atrace_apps: \"*\"",
        "write_into_file: true",
    ] {
        assert!(config.contains(has), "{has}: {config}");
    }
    // The newest events only; a recorder that cannot tell when it is on.
    let page = fake.0.path("page.html");
    fake.record("old", &["--circular", "--html", &page], &["true"]).ended(0).complained("did not tell when");
    assert!(!contents(fake.0.path("config")).contains("write_into_file") && contents(page).contains("<svg"));
}

#[test]
fn each_failure_of_the_recorder_is_exit_status_3_with_its_reason() {
    let fake = Fake::new("via-perfetto-fails", false);
    for (mode, why) in [
        ("no-traced", "start traced and traced_probes first"),
        ("refuses", "it ended at once: The trace config is invalid"),
        ("sources", "its sources of data did not start"),
        ("breaks", "it ended before the command did: traced closed the connection"),
        ("full", "it could not finish the recording: write failed: No space left"),
        ("empty", "does traced_probes run"),
    ] {
        fake.record(mode, &[], &["sleep", "0.5"]).ended(3).complained(why);
        let left = if mode == "empty" { vec!["out.pftrace".to_owned()] } else { Vec::new() };
        assert_eq!(fake.left(), left, "{mode}");
        let _ = std::fs::remove_file(fake.out());
    }
    let (out, empty) = (fake.out(), fake.0.path("out"));
    let words = ["trace", "record", "--via=perfetto", "-o", &out, "--", "/bin/true"];
    call(BINARY, &words, &[("PATH", &empty)])
        .ended(3)
        .complained("no program perfetto")
        .complained("package perfetto")
        .complained("--via tracefs");
}

#[test]
fn what_is_interrupted_is_kept() {
    let fake = Fake::new("via-perfetto-interrupted", false);
    let begun = fake.0.path("begun");
    let command_line = format!("touch {begun}; exec sleep 600");
    let out = fake.out();
    let words = ["trace", "record", "--via", "perfetto", "-o", &out, "--", "sh", "-c", &command_line];
    let mut recorder = command(BINARY, &words);
    recorder.envs(fake.variables("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = recorder.spawn().expect("the program starts");
    // The command is started behind the recorder.
    wait_until("the command runs", || std::path::Path::new(&begun).exists());
    // A terminal's Ctrl-C reaches both.
    let (own, other) = (child.id().to_string(), contents(fake.0.path("pid")));
    call("kill", &["-INT", &own, other.trim()], &[]).ended(0);
    end(child).ended(143).complained("bytes by perfetto");
    assert_eq!(fake.left(), ["out.pftrace"]);
}

#[test]
fn until_a_miss_only_a_miss_is_kept() {
    for trigger in [true, false] {
        let fake = Fake::new("via-perfetto-miss", trigger);
        let record = |command: &[&str]| fake.record("", &["--until-miss"], command);
        record(&["true"]).ended(0).complained("nothing was missed");
        assert_eq!(fake.left(), [""; 0]);
        assert_eq!(contents(fake.0.path("config")).contains("STOP_TRACING"), trigger);
        // A test says so by its exit status, or at once by the switch that it finds.
        record(&["sh", "-c", "exit 1"]).ended(1).complained("as by a miss");
        assert_eq!(
            (fake.left(), std::path::Path::new(&fake.0.path("triggered")).exists()),
            (vec!["out.pftrace".to_owned()], trigger)
        );
        std::fs::remove_file(fake.out()).expect("it was there");
        record(&["sh", "-c", "printf 0 >$BINDERPERF_TRACING/tracing_on; sleep 0.4"])
            .ended(0)
            .complained("as by a miss");
        assert_eq!(fake.left(), ["out.pftrace"]);
    }
}

#[test]
fn what_is_wrong_is_told_before_or_instead_of_recording() {
    let fake = Fake::new("via-perfetto-usage", false);
    fake.record("", &[], &["/no/such/command"]).ended(2).complained("no such command");
    assert_eq!(fake.left(), [""; 0]);
    fake.record("", &["nosuch"], &["true"]).ended(2).complained("unknown tracing category");
    fake.record("", &["-o", "/no/such/folder/x"], &["true"]).ended(2).complained("-o");
    refused(
        binderperf,
        &[
            (&["trace", "record", "--until-miss", "--", "true"], "are of --via perfetto"),
            (&["trace", "record", "--app", "x", "--", "true"], "are of --via perfetto"),
            (&["trace", "record", "--via", "systrace", "--", "true"], "perfetto"),
            (&["trace", "record", "--via", "perfetto", "--until-miss", "-t", "1"], "cannot be used with"),
        ],
    );
}
