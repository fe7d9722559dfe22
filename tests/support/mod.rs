//! Room: calling the built program, and a folder for what it leaves behind.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A call that ended.
pub(crate) struct Called {
    /// Exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error.
    pub(crate) stderr: String,
}

/// A program with these words, no input, and no variable of a benchmark's.
pub(crate) fn command(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BENCHMARK_") {
            command.env_remove(name);
        }
    }
    command
}

/// Calls a program with these words and variables.
pub(crate) fn call(program: &str, words: &[&str], variables: &[(&str, &str)]) -> Called {
    let mut command = command(program, words);
    command.envs(variables.iter().copied());
    let output = command.output().expect("the program starts");
    Called {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Calls `binderperf`, and once more if it says that QEMU's emulation of several CPUs failed it: a guest leaves nothing
/// behind.
pub(crate) fn binderperf(words: &[&str]) -> Called {
    let once = || call(env!("CARGO_BIN_EXE_binderperf"), words, &[]);
    let called = once();
    let slipped = called.code == Some(4) && called.stderr.contains("a fault of QEMU's emulation");
    if slipped { once() } else { called }
}

/// Calls `binderperf throughput binder`.
pub(crate) fn throughput(words: &[&str]) -> Called {
    binderperf(&[&["throughput", "binder"], words].concat())
}

/// Calls `binderperf` with an output that takes nothing.
pub(crate) fn with_full_stdout(words: &[&str]) -> Option<i32> {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut command = command(env!("CARGO_BIN_EXE_binderperf"), words);
    command.stdout(full).stderr(Stdio::null()).status().expect("the program starts").code()
}

/// Calls `binderperf` with an output that nobody reads any more.
pub(crate) fn with_stdout_unread(words: &[&str]) -> Called {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = command(env!("CARGO_BIN_EXE_binderperf"), words);
    let output = command.stdout(writer).stderr(Stdio::piped()).spawn().and_then(Child::wait_with_output);
    let output = output.expect("the program starts");
    Called {
        code: output.status.code(),
        stdout: String::new(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Calls `binderperf` with a standard error that takes nothing.
pub(crate) fn with_full_stderr(words: &[&str]) -> Option<i32> {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut command = command(env!("CARGO_BIN_EXE_binderperf"), words);
    command.stdout(Stdio::null()).stderr(full).status().expect("the program starts").code()
}

/// A record, read as any reader does.
pub(crate) fn read(path: &str) -> record::Run {
    record::Run::read(File::open(path).expect("a record")).expect("a sound record")
}

/// Starts `binderperf` and returns once it has a server at work.
fn started(words: &[&str]) -> (Child, Vec<u32>) {
    let mut command = command(env!("CARGO_BIN_EXE_binderperf"), words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let servers = servers_of(child.id());
    (child, servers)
}

fn servers_of(pid: u32) -> Vec<u32> {
    let start = Instant::now();
    loop {
        let servers = children(pid);
        if !servers.is_empty() {
            // Time for some round trips; how many does not matter.
            std::thread::sleep(Duration::from_millis(200));
            return servers;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no server was started");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, signal: &str) {
    let status = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status();
    assert!(status.expect("kill starts").success());
}

/// Sends a signal once servers run, twice as `timeout(1)` does, and waits for the end.
pub(crate) fn stopped_when_servers_run(words: &[&str], name: &str) -> Called {
    let (child, _) = started(words);
    signal(child.id(), name);
    signal(child.id(), name);
    let output = child.wait_with_output().expect("it ends");
    Called {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Sends a signal once servers run, and checks that they go away.
pub(crate) fn servers_end_with(words: &[&str], name: &str) {
    let (mut child, servers) = started(words);
    signal(child.id(), name);
    child.wait().expect("it ends");
    let start = Instant::now();
    let alive = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while servers.iter().any(alive) {
        assert!(start.elapsed() < Duration::from_secs(60), "{servers:?} live on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A folder that goes away with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new one.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("binderperf-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The call that a latency test says it stopped at, as a trace's verdict names it: `P1 fifo #4211`; and how a mark does.
pub(crate) fn stopped_at(json: &str) -> (String, String) {
    let json: serde_json::Value = serde_json::from_str(json).expect("the test's output only");
    let miss = &json["stopped_at"];
    let (pair, class) =
        (&miss["pair"], miss["class"].as_str().unwrap_or_else(|| panic!("no miss in {json}")));
    let number = &miss["iteration"];
    (format!("P{pair} {class} #{number}"), format!("pair={pair} class={class} number={number}"))
}

/// That a trace's text ends with a missed call: its reply, then the mark that tells of it, and nothing of its pair
/// behind that.
pub(crate) fn ends_with_the_miss(text: &str, words: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let find = |verb: &str| {
        let mark = format!("binderperf: {verb} {words}");
        let of_it = |line: &&str| line.contains(&format!("{mark} ")) || line.ends_with(&mark);
        lines.iter().rposition(of_it).unwrap_or_else(|| panic!("no {mark:?} in the trace"))
    };
    let (began, missed) = (find("call"), find("miss"));
    assert!(began < missed);
    let replied = |line: &&str| line.contains("binder_transaction_received: transaction=");
    assert!(lines[began..missed].iter().filter(|line| replied(line)).count() >= 2, "without its reply");
    let pair = words.split(' ').next().expect("words");
    let next = format!("binderperf: call {pair} ");
    assert!(!lines[missed..].iter().any(|line| line.contains(&next)), "the pair's next call is there, too");
}
