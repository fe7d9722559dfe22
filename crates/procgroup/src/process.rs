//! A worker process, seen from its parent.
//! Not here: its work (`role`), detecting that it hangs (`group`, `watchdog`).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::role::{self, READY_WORD, Role};

/// Called once when the process has ended.
pub type OnEnd = Box<dyn FnOnce() + Send>;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program that workers execute in place of the running one, which may be a test's. Only the first
/// call counts.
pub fn use_program(path: PathBuf) {
    let _ = PROGRAM.set(path);
}

/// The program that runs, also if its file was replaced or deleted meanwhile.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

static SACRIFICED: AtomicBool = AtomicBool::new(false);

/// Makes workers that are started from now on the first that the kernel kills for want of memory, so that the process that
/// measures lives to say so.
pub fn sacrifice_workers() {
    SACRIFICED.store(true, Relaxed);
}

/// Path of the program that workers execute.
fn program() -> &'static Path {
    PROGRAM.get().map_or(Path::new(OWN_PROGRAM), PathBuf::as_path)
}

/// Time limit to see a worker's death after it closed its output.
const GRACE: Duration = Duration::from_secs(2);
/// Interval in ms of the looks at the clock while a worker says nothing.
const LOOK_MS: i32 = 50;

/// Standard streams of a worker.
pub struct Streams {
    /// Standard input.
    pub stdin: Stdio,
    /// Standard output.
    pub stdout: Stdio,
    /// Standard error.
    pub stderr: Stdio,
}

impl Streams {
    /// No input; output piped to this process; standard error inherited.
    #[must_use]
    pub fn heard() -> Self {
        Self::of(Stdio::null(), Stdio::piped())
    }

    /// No input; output and standard error piped to this process.
    #[must_use]
    pub fn all_heard() -> Self {
        Self { stderr: Stdio::piped(), ..Self::heard() }
    }

    /// The given streams; standard error inherited.
    #[must_use]
    pub fn of(stdin: Stdio, stdout: Stdio) -> Self {
        Self { stdin, stdout, stderr: Stdio::inherit() }
    }
}

/// A started process; killed and reaped on drop, and when the *thread* that started it ends.
pub struct WorkerProcess {
    state: Mutex<State>,
}

struct State {
    child: Child,
    /// Bytes read after the last line.
    unread: Vec<u8>,
    end: Option<ExitStatus>,
    on_end: Option<OnEnd>,
}

fn all_of(stream: impl Read) -> String {
    /// Size limit, in bytes, far above any reason.
    const MOST: u64 = 4096;
    let mut said = Vec::new();
    // Text that cannot be read counts as empty.
    let _ = stream.take(MOST).read_to_end(&mut said);
    String::from_utf8_lossy(&said).trim().to_owned()
}

impl WorkerProcess {
    /// Starts this program as a worker in this role.
    ///
    /// # Errors
    /// The errors of `fork(2)` and `execve(2)`.
    pub fn start<R: Role>(role: &R, streams: Streams, on_end: Option<OnEnd>) -> io::Result<Self> {
        Self::spawn(program(), &role.title(), &role::words(role)?, streams, on_end)
    }

    /// Starts `program` under this title with these arguments, in a process group of its own: Ctrl-C in the terminal then
    /// reaches only the process that measures and decides.
    ///
    /// # Errors
    /// The errors of `fork(2)` and `execve(2)`.
    pub fn spawn(
        program: &Path,
        title: &str,
        words: &[String],
        Streams { stdin, stdout, stderr }: Streams,
        on_end: Option<OnEnd>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(words).stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
        sys::title::give(&mut command, title);
        sys::child::die_with_parent(&mut command);
        let named = |error| sys::needs::missing().map_or(error, io::Error::other);
        let child = command.spawn().map_err(named)?;
        if SACRIFICED.load(Relaxed) {
            // It may have ended.
            let _ = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), "1000");
        }
        Ok(Self { state: Mutex::new(State { child, unread: Vec::new(), end: None, on_end }) })
    }

    /// Replaces this process's program by a worker in this role, which keeps the process, its standard streams and the
    /// descriptors that are not closed on exec. Returns only if that failed.
    pub fn replace_this<R: Role>(role: &R) -> io::Error {
        let words = match role::words(role) {
            Ok(words) => words,
            Err(error) => return error,
        };
        let mut command = Command::new(program());
        command.args(words);
        sys::title::give(&mut command, &role.title());
        command.exec()
    }

    /// Process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.lock().child.id()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exit status, if it has ended.
    pub fn end(&self) -> Option<ExitStatus> {
        let mut state = self.lock();
        if state.end.is_none() {
            state.end = state.child.try_wait().ok().flatten();
            if state.end.is_some()
                && let Some(on_end) = state.on_end.take()
            {
                on_end();
            }
        }
        state.end
    }

    /// Exit status, if it has ended or ends within `time`.
    pub fn end_within(&self, time: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            let end = self.end();
            if end.is_some() || start.elapsed() >= time {
                return end;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills the process, if it has not ended.
    pub fn kill(&self) {
        // An error means that it has already ended.
        let _ = self.lock().child.kill();
    }

    /// Kills the process, if it has not ended, and returns its unread standard output.
    pub fn last_words(&self) -> String {
        self.kill();
        let (stdout, unread) = self.take_stdout();
        match stdout {
            Some(stdout) => all_of(unread.chain(stdout)),
            None => all_of(unread),
        }
    }

    /// Kills the process, if it has not ended, and returns its standard error, if that is piped.
    pub fn complaints(&self) -> String {
        self.kill();
        let stderr = self.lock().child.stderr.take();
        stderr.map(all_of).unwrap_or_default()
    }

    /// Hands each further line of standard output to `hear`, and `None` at its end, on a thread of its own.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn listen(&self, mut hear: impl FnMut(Option<String>) + Send + 'static) -> io::Result<()> {
        let (stdout, unread) = self.take_stdout();
        let output = stdout.map(|stdout| BufReader::new(unread.chain(stdout)));
        let listen = move || {
            let lines = output.into_iter().flat_map(BufRead::lines);
            lines.map_while(Result::ok).for_each(|line| hear(Some(line)));
            hear(None);
        };
        sys::title::thread("worker output", listen).map(drop)
    }

    fn take_stdout(&self) -> (Option<ChildStdout>, io::Cursor<Vec<u8>>) {
        let mut state = self.lock();
        (state.child.stdout.take(), io::Cursor::new(std::mem::take(&mut state.unread)))
    }

    /// Reads the next line, without its line end; empty if the process ends before.
    ///
    /// # Errors
    /// No line within the time limit, or its output cannot be read.
    pub fn line(&self, limit: Duration) -> Result<String, String> {
        // Not under the lock: the watchdog may have to kill the process meanwhile.
        let (stdout, unread) = self.take_stdout();
        let (start, mut said) = (Instant::now(), unread.into_inner());
        let Some(mut stdout) = stdout else { return Ok(String::new()) };
        let os = |error: io::Error| format!("reading its output: {}", sys::errno::describe(&error));
        let mut searched = 0;
        let end = loop {
            if let Some(end) = said[searched..].iter().position(|byte| *byte == b'\n') {
                break searched + end + 1;
            }
            searched = said.len();
            let seen = sys::seqpacket::poll(stdout.as_fd(), LOOK_MS).map_err(os)?;
            if !seen.readable && !seen.hung_up {
                if sys::patience::is_over(start, limit) {
                    return Err(format!("it said nothing for {} s", start.elapsed().as_secs()));
                }
                continue;
            }
            let mut some = [0; 16_384];
            match stdout.read(&mut some).map_err(os)? {
                0 => break said.len(),
                count => said.extend_from_slice(&some[..count]),
            }
        };
        let rest = said.split_off(end);
        let mut state = self.lock();
        state.unread = rest;
        state.child.stdout = Some(stdout);
        Ok(String::from_utf8_lossy(&said).trim_end().to_owned())
    }

    /// Waits until it is ready, and returns the text passed to [`tell_ready`](role::tell_ready).
    ///
    /// # Errors
    /// Its own reason, its exit status, or that it wrote nothing within the time limit.
    pub fn ready(&self, limit: Duration) -> Result<String, String> {
        let line = self.line(limit)?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            (READY_WORD, text) => Ok(text.to_owned()),
            ("", _) => Err(match self.end_within(sys::patience::stretched(GRACE)) {
                Some(end) => format!("it ended first ({end})"),
                None => "it closed its output first".to_owned(),
            }),
            _ => Err(line),
        }
    }

    /// Resumes a worker with piped input that waits in [`wait_for_go`](role::wait_for_go).
    ///
    /// # Errors
    /// It has ended.
    pub fn go(&self) -> io::Result<()> {
        self.write_line("go")
    }

    /// Writes a line to piped standard input.
    ///
    /// # Errors
    /// It has ended.
    pub fn write_line(&self, line: &str) -> io::Result<()> {
        self.lock()
            .child
            .stdin
            .as_mut()
            .map_or(Ok(()), |input| input.write_all(format!("{line}\n").as_bytes()))
    }

    /// Pauses (SIGSTOP) or resumes (SIGCONT) the process, if it has not ended.
    pub fn pause(&self, on: bool) {
        let child = &mut self.lock().child;
        // An error means that it has ended.
        let _ = if on { sys::child::pause(child) } else { sys::child::go_on(child) };
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
        let _ = self.lock().child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> WorkerProcess {
        let words = ["-c".to_owned(), script.to_owned()];
        let streams = Streams { stdin: Stdio::piped(), ..Streams::heard() };
        WorkerProcess::spawn(Path::new("/bin/sh"), "a shell", &words, streams, None).expect("a shell")
    }

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn each_line_is_heard_once_and_the_rest_are_last_words() {
        let worker = shell("echo ready; read go; echo ready 1 2; echo why; exec sleep 60");
        assert_eq!(worker.ready(LIMIT), Ok(String::new()));
        worker.go().expect("it listens");
        assert_eq!(worker.ready(LIMIT), Ok("1 2".to_owned()));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(worker.last_words(), "why");
    }

    #[test]
    fn one_that_is_not_ready_says_why_or_how_it_ended() {
        assert_eq!(shell("echo no right; exec sleep 60").ready(LIMIT), Err("no right".to_owned()));
        let silent = shell("exit 3").ready(LIMIT).expect_err("it ends");
        assert!(silent.contains("ended first (exit status: 3)"), "{silent}");
        let slow = shell("exec sleep 60").ready(Duration::ZERO).expect_err("nothing was said");
        assert!(slow.contains("said nothing"), "{slow}");
        let missing = WorkerProcess::spawn(Path::new("/nonexistent"), "nothing", &[], Streams::heard(), None);
        assert_eq!(missing.err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
    }
}
