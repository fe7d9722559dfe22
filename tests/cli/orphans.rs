//! Programs that are not ours, whose broker is killed under them (`programs/orphans.c`): every thread of each of them ends,
//! with `ECONNRESET`, whatever it waits for and however often signals come.
//! Not here: our own tests and benchmarks without their broker (`broker_lost`).

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

use needs::{Lack, Need, need};

use crate::shim::{compiled, library};
use crate::support::{Folder, broker, signal, start};

/// A thread that has not ended after this time never does: each looks for its broker once a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a program's calls reach the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Preloaded,
    Supervised,
}

/// A program under `shim`.
struct Program {
    shim: Child,
    output: BufReader<ChildStdout>,
    role: &'static str,
}

impl Program {
    fn start(way: Way, directory: &str, program: &str, role: &'static str, interrupted: bool) -> Self {
        let library = library().to_string_lossy();
        let mut words = vec!["shim", "--context-dir", directory];
        match way {
            Way::Preloaded => words.extend(["--library", &library]),
            Way::Supervised => words.push("--supervise"),
        }
        words.extend(["--", program, role]);
        words.extend(interrupted.then_some("TIMER"));
        let mut shim = start(&words);
        let output = BufReader::new(shim.stdout.take().expect("piped"));
        Self { shim, output, role }
    }

    /// Waits until its calls are answered.
    fn is_running(&mut self) -> Result<(), Lack> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        if line == "running\n" {
            return Ok(());
        }
        let mut why = String::new();
        self.shim.stderr.take().expect("piped").read_to_string(&mut why).expect("text");
        assert!(why.contains("cannot supervise"), "{}: {line}{why}", self.role);
        Err(Need::Supervision.lacks(why))
    }

    /// Waits until it has ended by itself.
    fn ends(&mut self, since: Instant) {
        loop {
            if let Some(status) = self.shim.try_wait().expect("ours") {
                let mut said = String::new();
                self.output.read_to_string(&mut said).expect("text");
                assert_eq!(status.code(), Some(0), "{}: {said}", self.role);
                return;
            }
            let hangs = sys::patience::is_over(since, PATIENCE);
            assert!(!hangs, "{} hangs without its broker: {}", self.role, self.threads());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Number and system call of each thread, for whoever looks for the fault.
    fn threads(&self) -> String {
        let folder = format!("/proc/{}/task", self.shim.id());
        let tasks = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let call = |path: &Path| std::fs::read_to_string(path.join("syscall")).unwrap_or_default();
        tasks.map(|task| format!("\n{}: {}", task.path().display(), call(&task.path()).trim())).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, unless the test fails.
        let _ = self.shim.kill();
        let _ = self.shim.wait();
    }
}

/// Kills the broker of programs in these roles, the first of which manages the context. Returns the time until the last
/// of them had ended.
fn orphaned(
    way: Way,
    program: &str,
    directory: &str,
    roles: &[&'static str],
    round: u32,
) -> Result<Duration, Lack> {
    // Without signals every second time.
    let interrupted = round.is_multiple_of(2);
    let mut programs = Vec::new();
    for role in roles {
        let mut started = Program::start(way, directory, program, role, interrupted);
        started.is_running()?;
        programs.push(started);
    }
    // At another point of the calls each time.
    std::thread::sleep(Duration::from_millis(u64::from(round * 7 % 40)));
    signal(broker(|of| of == directory).expect("a broker"), "KILL");
    let killed = Instant::now();
    programs.iter_mut().for_each(|program| program.ends(killed));
    Ok(killed.elapsed())
}

/// Kills this many brokers, one after another.
fn kills(way: Way, roles: &[&'static str], times: u32) {
    let folder = Folder::new(&format!("orphans-{way:?}-{}", roles[0]));
    let program = compiled(&folder, "orphans", &[]);
    let mut took = Vec::new();
    for round in 0..times {
        let directory = folder.path(&format!("context-{round}"));
        let one = need!(orphaned(way, &program, &directory, roles, round));
        took.push(one);
    }
    took.sort_unstable();
    let (median, last) = (took[took.len() / 2], took[took.len() - 1]);
    println!(
        "{way:?}, {roles:?}: {times} kills; all had ended after {median:.0?} (median), {last:.0?} (at most)"
    );
}

const CROWD: [&str; 3] = ["serve", "call", "call"];
/// Two programs whose calls go through shared memory, and need no broker once they know each other.
const TALKERS: [&str; 2] = ["answer", "talk"];

#[test]
fn preloaded_programs_end_with_their_broker() {
    kills(Way::Preloaded, &CROWD, 8);
    kills(Way::Preloaded, &TALKERS, 2);
}

#[test]
fn supervised_programs_end_with_their_broker() {
    kills(Way::Supervised, &CROWD, 8);
    kills(Way::Supervised, &TALKERS, 2);
}

/// `cargo test --test cli two_hundred_brokers -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes; part of make test-all"]
fn two_hundred_brokers() {
    for way in [Way::Preloaded, Way::Supervised] {
        kills(way, &CROWD, 80);
        kills(way, &TALKERS, 20);
    }
}
