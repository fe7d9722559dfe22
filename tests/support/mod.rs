//! Calling the built program, and a folder for what it leaves behind.

#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod ktap;
pub(crate) mod live;
pub(crate) mod names;

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use needs::{Lack, Need};
use sys::private_folder::PrivateFolder;

/// The built program.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_binderperf");

/// A call that ended.
pub(crate) struct Called {
    /// Its words, for messages of tests that fail.
    words: String,
    /// Exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error.
    pub(crate) stderr: String,
}

impl std::fmt::Display for Called {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { words, code, stdout, stderr } = self;
        write!(f, "{words}: {code:?}\n{stdout}\n{stderr}")
    }
}

impl Called {
    fn of(words: &[&str], output: Output) -> Self {
        Self {
            words: words.join(" "),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Asserts that this text is in the standard output.
    #[track_caller]
    pub(crate) fn printed(&self, text: impl AsRef<str>) -> &Self {
        let text = text.as_ref();
        assert!(self.stdout.contains(text), "{text:?} is not in the output of {self}");
        self
    }

    /// Asserts that the standard output is empty.
    #[track_caller]
    pub(crate) fn printed_nothing(&self) -> &Self {
        assert!(self.stdout.is_empty(), "{self}");
        self
    }

    /// Asserts that this text is in the standard error.
    #[track_caller]
    pub(crate) fn complained(&self, text: impl AsRef<str>) -> &Self {
        let text = text.as_ref();
        assert!(self.stderr.contains(text), "{text:?} is not among the messages of {self}");
        self
    }

    /// The standard output, which is JSON and nothing else.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

/// The program under test. In a guest, where the built file is missing, it is process 1.
fn program() -> &'static str {
    if Path::new(BINARY).exists() { BINARY } else { "/proc/1/exe" }
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
    Called::of(words, command.output().unwrap_or_else(|error| panic!("{program}: {error}")))
}

/// Calls `binderperf`, and once more if it says that QEMU's emulation of several CPUs failed it: a guest leaves nothing
/// behind.
pub(crate) fn binderperf(words: &[&str]) -> Called {
    let once = || call(program(), words, &[]);
    let called = once();
    let slipped = called.code == Some(4) && called.stderr.contains("a fault of QEMU's emulation");
    if slipped { once() } else { called }
}

/// Calls `binderperf throughput binder`.
pub(crate) fn throughput(words: &[&str]) -> Called {
    binderperf(&[&["throughput", "binder"], words].concat())
}

/// Calls an Android program by its name, on the embedded driver.
pub(crate) fn android(name: &str, words: &[&str]) -> Called {
    call(BINARY, &[&[name], words].concat(), &[("BINDERPERF_DRIVER", "embedded")])
}

/// The words of a command line without quotes.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Makes a call with `--record` that ends with this exit code; returns the record as well.
#[track_caller]
pub(crate) fn recorded(
    code: i32,
    call: impl FnOnce(&[&str]) -> Called,
    words: &[&str],
) -> (Called, record::Run) {
    let folder = Folder::new("recorded");
    let path = folder.path("r.json");
    let called = call(&[words, &["--record", &path]].concat()).ended(code);
    assert!(Path::new(&path).exists(), "no record of {called}");
    let run = read(&path);
    (called, run)
}

/// Asserts that each of these calls is refused: exit code 2, a message with this text, nothing on the standard output.
#[track_caller]
pub(crate) fn refused(call: impl Fn(&[&str]) -> Called, cases: &[(&[&str], &str)]) {
    for (words, says) in cases {
        call(words).ended(2).complained(says).printed_nothing();
    }
}

/// Starts `binderperf` with its outputs in pipes.
pub(crate) fn start(words: &[&str]) -> Child {
    let mut command = command(program(), words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits for the end of a started program.
pub(crate) fn end(child: Child) -> Called {
    let words = child.id().to_string();
    Called::of(&[&words], child.wait_with_output().expect("it ends"))
}

/// Calls `binderperf` with an output that takes nothing.
pub(crate) fn with_full_stdout(words: &[&str]) -> Option<i32> {
    command(BINARY, words).stdout(full()).stderr(Stdio::null()).status().expect("the program starts").code()
}

/// Calls `binderperf` with a standard error that takes nothing.
pub(crate) fn with_full_stderr(words: &[&str]) -> Option<i32> {
    command(BINARY, words).stdout(Stdio::null()).stderr(full()).status().expect("the program starts").code()
}

fn full() -> File {
    File::options().write(true).open("/dev/full").expect("/dev/full")
}

/// Calls `binderperf` with an output that nobody reads any more.
pub(crate) fn with_stdout_unread(words: &[&str]) -> Called {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = command(BINARY, words).stdout(writer).stderr(Stdio::piped()).spawn();
    end(child.expect("the program starts"))
}

/// Threads of this process that may be real-time.
pub(crate) fn realtime() -> Result<(), Lack> {
    let tried = std::thread::spawn(|| host::realtime::become_fifo(99)).join().expect("no panic");
    tried.map(drop).map_err(|problem| Need::Realtime.lacks(problem))
}

/// The switch of the shared trace buffer. Tracefs is mounted where it can be, as the commands under test do.
pub(crate) fn tracing_switch() -> Result<File, Lack> {
    let open = |path: &Path| File::options().read(true).write(true).open(path);
    let tracefs = ftrace::tracefs::Tracefs::find().map_err(|error| error.to_string());
    let switch = tracefs
        .and_then(|tracefs| open(&tracefs.root().join("tracing_on")).map_err(|error| error.to_string()));
    switch.map_err(|why| Need::Tracefs.lacks(format_args!("none that this user may write: {why}")))
}

/// A file system in memory with little room, unmounted on drop.
pub(crate) struct SmallDisk(pub(crate) String);

impl SmallDisk {
    /// Mounts it at a path that is made, with this option of tmpfs, such as `size=16k`.
    pub(crate) fn new(place: String, room: &str) -> Result<Self, Lack> {
        std::fs::create_dir_all(&place).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", room, "tmpfs", &place]).status();
        let fine = mounted.is_ok_and(|status| status.success());
        Need::Mount.met_if(fine, "no small file system can be mounted")?;
        Ok(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l", &self.0]).status();
    }
}

/// The broker of a directory that fits.
pub(crate) fn broker(fits: impl Fn(&str) -> bool) -> Option<u32> {
    let serves = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        let mut words = words.split('\0').skip_while(|word| *word != "__broker").skip(1);
        words.next().is_some_and(&fits)
    };
    let folders = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut pids = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(serves)
}

/// Waits until something is so. What never comes is a failure after minutes, and later on a busy machine.
#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(sys::patience::until(Duration::from_secs(120), is_so), "in vain: {what}");
}

/// The path of a trace among the fixtures of the crate `trace`.
pub(crate) fn fixture(name: &str) -> String {
    format!("{}/crates/trace/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Calls `tools/lava`, which fetches LAVA's packages.
pub(crate) fn tool_lava(words: &[&str]) -> Result<Called, Lack> {
    let called = call(&format!("{}/tools/lava", env!("CARGO_MANIFEST_DIR")), words, &[]);
    Need::Programs.met_if(called.code != Some(3), &called.stderr)?;
    Ok(called)
}

/// The text of a file.
#[track_caller]
pub(crate) fn contents(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A record, read as any reader does.
pub(crate) fn read(path: &str) -> record::Run {
    record::Run::read(File::open(path).expect("a record")).expect("a sound record")
}

/// A record as JSON, without its checksum, for tests that change it.
#[track_caller]
pub(crate) fn without_checksum(path: impl AsRef<Path>) -> serde_json::Value {
    let mut record: serde_json::Value = serde_json::from_str(&contents(path)).expect("JSON");
    record.as_object_mut().expect("an object").remove("checksum").expect("a checksum");
    record
}

/// Starts `binderperf` and returns once one of its processes serves calls, or it has ended.
pub(crate) fn with_servers(words: &[&str]) -> (Child, Vec<u32>) {
    started_until(words, is_at_work)
}

/// Starts `binderperf` and returns, with all processes that it has started, once one of them is so, or it has ended.
fn started_until(words: &[&str], is_so: impl Fn(u32) -> bool) -> (Child, Vec<u32>) {
    let mut child = start(words);
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let processes = || -> Vec<u32> {
        let list = std::fs::read_to_string(&path).unwrap_or_default();
        list.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    wait_until("a process is started and at work", || {
        child.try_wait().expect("a child").is_some() || processes().into_iter().any(&is_so)
    });
    (child, processes())
}

/// Whether a process has done more than to start: it has waited for many calls, or answered many without a wait.
fn is_at_work(pid: u32) -> bool {
    let of_threads = |file: &str| -> Vec<String> {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join(file)).ok()).collect()
    };
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or(0);
    let waits = |text: &String| {
        text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).map(number)
    };
    let cpu_ns = |text: &String| text.split(' ').next().map(number);
    of_threads("status").iter().filter_map(waits).sum::<u64>() > 100
        || of_threads("schedstat").iter().filter_map(cpu_ns).sum::<u64>() > 500_000_000
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, signal: &str) {
    call("kill", &[&format!("-{signal}"), &pid.to_string()], &[]).ended(0);
}

/// Sends a signal once servers run, twice as `timeout(1)` does, and waits for the end.
pub(crate) fn stopped_when_servers_run(words: &[&str], name: &str) -> Called {
    stopped(with_servers(words).0, name)
}

/// The same once a process is started, where each of them ends soon.
pub(crate) fn stopped_once_begun(words: &[&str], name: &str) -> Called {
    stopped(started_until(words, |_| true).0, name)
}

fn stopped(child: Child, name: &str) -> Called {
    signal(child.id(), name);
    signal(child.id(), name);
    end(child)
}

/// Sends a signal once servers run, and checks that they go away.
pub(crate) fn servers_end_with(words: &[&str], name: &str) {
    let (mut child, servers) = with_servers(words);
    signal(child.id(), name);
    child.wait().expect("it ends");
    let alive = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    wait_until("no server is left", || !servers.iter().any(alive));
}

/// A folder that goes away with the value.
pub(crate) struct Folder(PrivateFolder);

impl Folder {
    /// A new one, whose name no other has.
    pub(crate) fn new(name: &str) -> Self {
        Self(PrivateFolder::new(name).expect("a folder"))
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes a file; returns its path.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
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
