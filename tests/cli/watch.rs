//! `binderperf watch` as its users meet it: what is caught, and what a catch holds.
//! Not here: the conditions, the limits and the actions by themselves (crate `live`).
//!
//! A peer is this test program with a role in its environment; it ends with its test.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use binder::{Process, ProcessOptions, ServiceManager, Services, Status};
use embedded::{EmbeddedContext, Settings};

use needs::need;

use crate::support::{
    BINARY, Called, Folder, SmallDisk, binderperf, command, contents, end, refused, signal, tracing_switch,
    wait_until,
};

const ROLE: &str = "WATCH_TEST_ROLE";
const PLACE: &str = "WATCH_TEST_PLACE";
const PATIENCE: Duration = Duration::from_secs(120);

binder::interface! {
    mod part = "example.IWatchedPart" {
        fn ping() -> i32;
        /// Calls `ping` of another part again and again, until it fails.
        fn relay(name: String);
        /// Calls `fill` of another part so many times, and keeps the replies.
        fn keep(name: String, times: i32);
        fn fill() -> String;
        fn hold();
    }
}

struct Part {
    process: Process,
}

impl Part {
    fn other(&self, name: &str) -> Result<binder::Binder, Status> {
        let services = Services::wait(&self.process, PATIENCE).map_err(|_| Status::UNKNOWN_TRANSACTION)?;
        services.wait_for(name, PATIENCE).map_err(|_| Status::UNKNOWN_TRANSACTION)
    }
}

impl part::Service for Part {
    fn ping(&self) -> Result<i32, Status> {
        Ok(1)
    }

    fn relay(&self, name: String) -> Result<(), Status> {
        let other = part::Client::from(self.other(&name)?);
        while other.ping().is_ok() {}
        Err(Status::UNKNOWN_TRANSACTION)
    }

    fn keep(&self, name: String, times: i32) -> Result<(), Status> {
        let other: &'static binder::Binder = Box::leak(Box::new(self.other(&name)?));
        for _ in 0..times {
            let reply = other.call(4, other.request("example.IWatchedPart"));
            std::mem::forget(reply.map_err(|_| Status::UNKNOWN_TRANSACTION)?);
        }
        Ok(())
    }

    fn fill(&self) -> Result<String, Status> {
        Ok("y".repeat(900))
    }

    fn hold(&self) -> Result<(), Status> {
        loop {
            thread::sleep(PATIENCE);
        }
    }
}

fn open(place: &str, max_threads: u32) -> Process {
    let context = EmbeddedContext::at(Path::new(place), "binder", Settings::default());
    let options = ProcessOptions { max_threads, ..ProcessOptions::default() };
    let process = Process::open(&binder::AnyContext::Embedded(context), options).expect("open");
    process.start_thread_pool().expect("a pool");
    process
}

/// Not a test: what a peer process runs.
#[test]
fn role() {
    let (Ok(name), Ok(place)) = (std::env::var(ROLE), std::env::var(PLACE)) else { return };
    let process = open(&place, 0);
    let part = process.publish(part::Served(Part { process: process.clone() }));
    Services::wait(&process, PATIENCE).expect("a manager").add(&name, &part).expect("registered");
    // The test holds the other end as long as it lives.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A context of which this process is the manager, and a folder for catches.
struct Stage {
    folder: Folder,
    place: String,
    names: ServiceManager,
    _process: Process,
}

impl Stage {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let place = folder.path("context");
        let (process, names) = (open(&place, 4), ServiceManager::new());
        process.become_context_manager(names.clone()).expect("the manager");
        Self { folder, place, names, _process: process }
    }

    fn peer(&self, name: &str) -> Peer {
        let child = Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", "watch::role", "--nocapture", "--test-threads=1"])
            .envs([(ROLE, name), (PLACE, &self.place)])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("start a peer");
        let peer = Peer(child);
        wait_until("the peer's service", || self.names.find(name).is_some());
        peer
    }

    fn part(&self, name: &str) -> part::Client {
        part::Client::from(self.names.find(name).expect(name))
    }

    fn out(&self) -> String {
        self.folder.path("out")
    }

    /// A watch of this context, once it has looked. Other tests' trace events do not get to it.
    fn watch(&self, words: &[&str]) -> Child {
        self.watch_with([], words)
    }

    /// [`Self::watch`] with these variables.
    fn watch_with<const N: usize>(&self, variables: [(&str, String); N], words: &[&str]) -> Child {
        let out = self.out();
        let place = ["watch", "--context-dir", &self.place, "--out", &out];
        let mut watch = command(BINARY, &[&place, words].concat());
        watch.env("XDG_RUNTIME_DIR", self.folder.path("")).envs(variables);
        watch.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = watch.spawn().expect("it starts");
        let mut told = Vec::new();
        while !told.ends_with(b"watching; ") {
            let mut byte = [0];
            child.stderr.as_mut().expect("piped").read_exact(&mut byte).expect("it watches");
            told.extend(byte);
        }
        child
    }

    fn catches(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.out()).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut whole: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_none_or(|end| end != "partial")).collect();
        whole.sort();
        whole
    }

    /// Waits for the catch with this word whose report says this.
    fn caught(&self, word: &str, said: &str) -> PathBuf {
        let is_it = |path: &PathBuf| {
            path.to_string_lossy().contains(&format!("Z-{word}")) && text(path, "report.txt").contains(said)
        };
        wait_until(&format!("a catch of {word}"), || self.catches().iter().any(is_it));
        self.catches().into_iter().find(is_it).expect("there")
    }
}

fn text(catch: &Path, name: &str) -> String {
    fs::read_to_string(catch.join(name)).unwrap_or_else(|why| panic!("{name} of {}: {why}", catch.display()))
}

fn stopped(watch: Child) -> Called {
    signal(watch.id(), "INT");
    end(watch)
}

#[test]
fn a_deadlock_is_caught_once_with_the_driver_files_and_the_actions_follow() {
    let stage = Stage::new("watch-deadlock");
    let (_one, _other) = (stage.peer("one"), stage.peer("other"));
    let made = stage.folder.path("made");
    // Not the machine's switch: other tests trace.
    let switch = stage.folder.write("tracing/tracing_on", "1");
    let tracing = [(ftrace::switch::FOLDER_VARIABLE, stage.folder.path("tracing"))];
    let exec = format!("exec echo \"$BINDERPERF_CATCH\" >> {made}");
    let then = ["--then", "trace", "--then", "snapshot", "--then", &exec, "--then", "continue"];
    let watch = stage.watch_with(tracing, &then);
    for (name, whom) in [("one", "other"), ("other", "one")] {
        let part = stage.part(name);
        thread::spawn(move || drop(part.relay(whom)));
    }
    let catch = stage.caught("deadlock", "BAD: deadlock: 2 threads wait for each other");
    wait_until("the command", || {
        fs::read_to_string(&made).is_ok_and(|made| made.trim_end() == catch.to_string_lossy())
    });
    assert!(text(&catch, "report.html").contains("deadlock: 2 threads"));
    assert!(text(&catch, "after/state").contains("outgoing transaction"));
    assert!(text(&catch, "before/stats").contains("binder stats"));
    assert_eq!(contents(switch), "0", "tracing was on before the catch");
    let snapshot = catch.join("snapshot").to_string_lossy().into_owned();
    let judged = binderperf(&["doctor", "--from", &snapshot, "--no-measure"]);
    assert!(matches!(judged.code, Some(0 | 1)), "{judged}");
    let called = stopped(watch).ended(1);
    called.printed("caught deadlock: 2 threads").complained("SIGINT ended the watch: 1 time caught");
    assert_eq!(stage.catches(), [catch]);
}

#[test]
fn buffers_that_are_kept_and_calls_that_fail_are_caught_and_a_healthy_time_is_not() {
    let stage = Stage::new("watch-leak");
    let (_leaker, _giver, holder) = (stage.peer("leaker"), stage.peer("giver"), stage.peer("holder"));
    let when = ["--when", "buffers>20%", "--when", "failed > 0", "--when", "dead>0"];
    let watch = stage.watch(&[&when[..], &["--unanswered=1", "--most=30"]].concat());
    for _ in 0..100 {
        assert!(stage.part("giver").ping().is_ok());
    }
    stage.part("leaker").keep("giver", 40).expect("few");
    let hold = || {
        let held = stage.part("holder");
        thread::spawn(move || drop(held.hold()));
    };
    hold();
    // The look that sees this call old saw the calls and the few buffers from before.
    stage.caught("unanswered", &format!("for process {} in call", holder.0.id()));
    let is_named = |path: &PathBuf, word: &str| path.to_string_lossy().contains(&format!("Z-{word}"));
    let early = stage.catches();
    let ill = early.iter().find(|path| ["buffers", "failed", "dead"].iter().any(|word| is_named(path, word)));
    assert!(ill.is_none(), "{early:?}");
    // A call that waits for ever hides no later one of the same process.
    hold();
    wait_until("a catch of the second call", || {
        stage.catches().iter().filter(|path| is_named(path, "unanswered")).count() == 2
    });
    stage.part("leaker").keep("giver", 260).expect("kept");
    stage.caught("buffers", "buffers>20%: buffers of ");
    drop(holder);
    stage.caught("failed", "failed>0: failed of ");
    // A death is seen in the same look as the failed call, or in one after it.
    let mut watch = watch;
    let mut told = String::new();
    signal(watch.id(), "TERM");
    watch.stderr.as_mut().expect("piped").read_to_string(&mut told).expect("text");
    assert!(
        told.contains("has ended; others used its services") && told.contains("SIGTERM ended the watch"),
        "{told}"
    );
    end(watch).ended(1);
}

#[test]
fn a_late_call_is_caught_with_the_events_that_led_to_it() {
    drop(need!(tracing_switch()));
    let stage = Folder::new("watch-late");
    let (context, out) = (stage.path("context"), stage.path("out"));
    let place = [
        "watch",
        "--context-dir",
        &context,
        "--out",
        &out,
        "--deadline-us=1",
        "--when=p99>1s",
        "--then=stop",
    ];
    let mut watch = command(BINARY, &place);
    watch.env("XDG_RUNTIME_DIR", stage.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = watch.spawn().expect("it starts");
    wait_until("the announcement of the trace", || Path::new(&stage.path("binderperf/tracing")).exists());
    let mut calls =
        command(BINARY, &["latency", "binder", "--context-dir", &context, "-i", "100", "-pair", "1"]);
    calls.env("XDG_RUNTIME_DIR", stage.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut calls = calls.spawn().expect("it starts");
    watch.wait().expect("it stops by itself");
    calls.wait().expect("it ends");
    let called = end(watch).ended(1);
    called.printed("caught a call took ").complained("the action `stop` ended the watch: 1 time caught");
    let catch = called.stdout.trim_end().rsplit(": ").next().expect("a folder");
    let analysed = binderperf(&["trace", "analyze", &format!("{catch}/trace.bptrace"), "--deadline-us", "1"]);
    assert_ne!(analysed.code, Some(2), "{analysed}");
    assert!(text(Path::new(catch), "report.txt").contains("The slowest calls of the trace"));
}

#[test]
fn a_full_disk_is_said_once_and_the_watch_goes_on() {
    let stage = Stage::new("watch-full");
    let disk = need!(SmallDisk::new(stage.out(), "size=16k"));
    fs::write(format!("{}/filler", disk.0), vec![0; 16 << 10]).expect("it fits");
    let (_leaker, _giver, _holder) = (stage.peer("leaker"), stage.peer("giver"), stage.peer("holder"));
    let made = stage.folder.path("made");
    let watch = stage.watch(&[
        "--when",
        "oldest>1s",
        "--when",
        "buffers>20%",
        "--then",
        &format!("exec echo x >> {made}"),
    ]);
    let held = stage.part("holder");
    thread::spawn(move || drop(held.hold()));
    let tried = |tries: &str| fs::read_to_string(&made).is_ok_and(|made| made.starts_with(tries));
    wait_until("a try", || tried("x\n"));
    stage.part("leaker").keep("giver", 300).expect("kept");
    wait_until("two tries", || tried("x\nx\n"));
    assert_eq!(stage.catches().len(), 1, "the filler alone");
    let called = stopped(watch).ended(1);
    called.complained("ENOSPC").complained("not kept either").complained("could not be kept");
    assert_eq!(called.stderr.matches("ENOSPC").count(), 1, "{called}");
}

#[test]
fn two_watches_need_two_folders_and_bad_words_are_named() {
    let stage = Stage::new("watch-two");
    let first = stage.watch(&[]);
    let (out, other) = (stage.out(), stage.folder.path("other"));
    let pid = first.id();
    binderperf(&["watch", "--out", &out]).ended(2).complained(format!("process {pid} is writing to"));
    let words = ["watch", "--context-dir", &stage.place, "--out", &other, "--for", "2s"];
    binderperf(&words).ended(0).complained("the time is over: 0 times caught");
    // Ended by its time, the first one goes on.
    let called = stopped(first).ended(0);
    called.printed_nothing();
    refused(
        binderperf,
        &[
            (&["watch", "--when", "p98>5ms"], "there are p50, p99"),
            (&["watch", "--when", "p99>5"], "none such as 500us"),
            (&["watch", "--then", "reboot"], "there are trace, snapshot"),
            (&["watch", "--then", "signal 4194305", "--out", &other], "process 4194305: ESRCH"),
            (&["watch", "--for", "long"], "no time such as"),
        ],
    );
}
