//! What is left of recorders that were killed, and what others made: removed, or named and left alone.
//! Not here: recordings that end (`trace_record`).
//! Each test looks only at instances of its own: others come and go meanwhile.

use std::fs;
use std::path::PathBuf;
use std::process::Child;

use needs::need;

use crate::support::{BINARY, Folder, binderperf, call, end, signal, tracing_switch};
use crate::trace_record::{TRACEFS, opened, sleeping};

/// A recorder that is under way, killed with its test.
struct Recorder {
    child: Option<Child>,
    instance: PathBuf,
}

impl Recorder {
    fn new(file: &str) -> Self {
        let (child, instance) = sleeping(file);
        Self { child: Some(child), instance }
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().and_then(|()| child.wait()).expect("it was running");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }
}

/// An instance that is not the program's, removed with its test.
struct Foreign(PathBuf);

impl Foreign {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(format!("{TRACEFS}/instances/{name}-{}", std::process::id()));
        fs::create_dir(&folder).expect("an instance");
        Self(folder)
    }

    fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).expect("UTF-8")
    }

    fn says(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).expect("readable").trim().to_owned()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn any_command_removes_what_a_killed_recorder_left_and_nothing_that_is_in_use() {
    need!(tracing_switch());
    let folder = Folder::new("trace-killed");
    let (dead, alive) = (folder.path("dead.trace"), folder.path("alive.trace"));
    for command in [&["--version"][..], &["trace", "restore"], &["help", "trace"], &["applet", "--list"]] {
        let mut killed = Recorder::new(&dead);
        let running = Recorder::new(&alive);
        // While both run, no command removes either.
        binderperf(command);
        assert!(killed.instance.exists() && running.instance.exists(), "{command:?}");
        killed.kill();
        let called = binderperf(command);
        assert!(!killed.instance.exists(), "{command:?} left {}: {called}", killed.instance.display());
        assert!(running.instance.exists(), "{command:?}");
    }
    // What it wrote until then can be read, beside the place that only a whole recording takes.
    assert!(!opened(&format!("{dead}.partial")).report().is_whole(), "it was not ended");
    assert!(!std::path::Path::new(&dead).exists(), "it is not whole");
}

/// Whether a process lives cannot be looked up without a descriptor.
#[test]
fn a_command_that_is_short_of_descriptors_removes_nothing() {
    need!(tracing_switch());
    let folder = Folder::new("trace-short");
    let running = Recorder::new(&folder.path("t.trace"));
    for limit in 3..9 {
        let script = format!("ulimit -n {limit}; exec \"$0\" --version");
        call("sh", &["-c", &script, BINARY], &[]);
        assert!(running.instance.exists(), "with {limit} descriptors");
    }
}

#[test]
fn restore_and_the_doctor_name_what_they_leave_alone() {
    need!(tracing_switch());
    let folder = Folder::new("trace-named");
    let mut running = Recorder::new(&folder.path("t.trace"));
    let (idle, recording) = (Foreign::new("vendor-idle"), Foreign::new("vendor-recording"));
    let event = "events/sched/sched_process_exec/enable";
    fs::write(recording.0.join(event), "1").expect("an event of every kernel");
    let told = |name: &str| {
        let called = binderperf(&["trace", "restore"]).ended(0);
        called.stdout.lines().find(|line| line.contains(name)).map(str::to_owned).unwrap_or_default()
    };
    let own = running.instance.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
    assert!(told(&own).contains(&format!("is running (process {})", running.pid())), "{}", told(&own));
    assert!(told(idle.name()).contains("no event is on"), "{}", told(idle.name()));
    assert!(told(recording.name()).contains("sched/sched_process_exec is on"), "{}", told(recording.name()));
    let checkup = binderperf(&["doctor", "--no-measure", "--format", "json"]).json();
    let checks = checkup["checks"].as_array().expect("a list");
    let check = checks.iter().find(|check| check["id"] == "kernel-tracing").expect("a check");
    let text = check["text"].as_str().expect("a text");
    assert!(
        text.contains(&format!("a recorder of binderperf is running (pid {})", running.pid())),
        "{check}"
    );
    assert!(text.contains(&format!("on in the trace instance {}", recording.name())), "{check}");
    assert_eq!((recording.says("tracing_on"), recording.says(event)), ("1".into(), "1".into()));
    signal(running.pid(), "INT");
    end(running.child.take().expect("it runs")).ended(128 + 15);
    assert!(!running.instance.exists());
}
