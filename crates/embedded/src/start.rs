//! Starts a directory's broker when a client finds none.
//! Not here: the broker (`broker`), the choice of the directory (`context`), when to start one (`broker_connection`).
//!
//! A program that can become a broker calls [`register_broker`]; it is then started again with those words. For any
//! other program, `$BINDERPERF_BROKER` and then `$PATH` are searched for `binderperf`. If there is none, the broker
//! runs on a thread of this process, and ends with the process at the latest; it prints a note on the standard error, unless the
//! context is private to this process.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::broker::{self, Event, Faults, Lifetime};
use driver::error::OpenError;

/// Hidden command that makes the `binderperf` program a broker.
pub const COMMAND: &str = "__broker";

/// Line that a started broker prints once it, or another broker, listens.
const READY: &str = "ready";

static REGISTERED: OnceLock<Vec<String>> = OnceLock::new();

/// Registers the words that make this program a broker: started with them and a directory, it calls
/// [`become_broker`]. Only the first call counts.
pub fn register_broker(words: &[&str]) {
    // Later calls come from the same program and mean the same.
    let _ = REGISTERED.set(words.iter().map(|word| (*word).to_owned()).collect());
}

/// Runs the broker of a directory until its last client is gone. Prints one line on standard output when it listens,
/// or why it cannot. Returns the exit code.
#[must_use]
pub fn become_broker(directory: &Path, faults: Faults) -> u8 {
    sys::title::name_thread("broker");
    // The reader leaves after the first line; the broker goes on.
    let say = |line: &str| drop(io::Write::write_all(&mut io::stdout(), format!("{line}\n").as_bytes()));
    // A broker holds descriptors of all clients. A failure to raise the limit is not fatal.
    let _ = sys::limits::raise_open_files(u64::MAX);
    let tell = |event: Event<'_>| {
        if let Event::Listening { .. } = event {
            say(READY);
        }
    };
    match broker::run_with(directory, Lifetime::LastClient, faults, tell) {
        Ok(()) => 0,
        Err(broker::RunError::Running { .. }) => {
            say(READY);
            0
        }
        Err(error) => {
            say(&without_directory(&error));
            3
        }
    }
}

/// Why a broker cannot run, for those who say of which directory it is.
fn without_directory(error: &broker::RunError) -> String {
    match error {
        broker::RunError::Directory(OpenError::Embedded { why, .. }) => why.clone(),
        other => other.to_string(),
    }
}

/// Whether a broker would be a process of its own, and not a thread of this one.
#[must_use]
pub fn finds_program() -> bool {
    let named = std::env::var_os("BINDERPERF_BROKER").is_some_and(|program| !program.is_empty());
    REGISTERED.get().is_some() || named || along_path().is_some()
}

/// Starts a broker and waits until it, or a faster one, listens.
///
/// # Errors
/// Text for the user: why no broker runs.
pub(super) fn start(directory: &Path) -> Result<(), String> {
    let directory = std::path::absolute(directory)
        .map_err(|error| format!("its path cannot be made absolute: {}", sys::errno::describe(&error)))?;
    if let Some(words) = REGISTERED.get() {
        return match run(OsStr::new("/proc/self/exe"), words, &directory) {
            Err(Failed::NoProgram(_)) => on_a_thread(&directory),
            other => other.map_err(Failed::into_text),
        };
    }
    let words = [COMMAND.to_owned()];
    if let Some(program) = std::env::var_os("BINDERPERF_BROKER").filter(|program| !program.is_empty()) {
        return run(&program, &words, &directory).map_err(Failed::into_text);
    }
    match along_path().map(|program| run(program.as_os_str(), &words, &directory)) {
        Some(Ok(())) => Ok(()),
        // The program is missing, or too old to become a broker.
        _ => {
            if !super::directory::is_private(&directory) {
                eprintln!("{}", warning(&directory));
            }
            on_a_thread(&directory)
        }
    }
}

/// Warning that other processes depend on this one.
fn warning(directory: &Path) -> String {
    format!(
        "binderperf: WARNING: no program binderperf is along $PATH, so the embedded driver's broker for {} runs inside this \
         process ({}): when it ends, every process there loses its objects. Put binderperf there, or set BINDERPERF_BROKER",
        directory.display(),
        std::process::id()
    )
}

fn along_path() -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("binderperf")).find(|program| program.is_file())
}

/// Failure of a program to become a broker.
enum Failed {
    NoProgram(String),
    Said(String),
}

impl Failed {
    fn into_text(self) -> String {
        let (Self::NoProgram(text) | Self::Said(text)) = self;
        text
    }
}

/// Runs a program as a detached broker: in its own session, reparented, without standard streams.
fn run(program: &OsStr, words: &[String], directory: &Path) -> Result<(), Failed> {
    let shown = program.to_string_lossy();
    let mut command = Command::new(program);
    command.args(words).arg(directory).current_dir("/");
    // A broker must not be a client of itself (crate `preload`).
    command.env_remove("LD_PRELOAD");
    sys::title::give(&mut command, "broker");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    sys::child::detach(&mut command);
    let mut child = command.spawn().map_err(|error| {
        Failed::NoProgram(format!(
            "its broker, {shown}, cannot be started: {}; set BINDERPERF_BROKER to the binderperf program",
            sys::errno::describe(&error)
        ))
    })?;
    let said = first_line(&mut child);
    // The intermediate process has ended, or is about to.
    let _ = child.wait();
    match said {
        Ok(line) if line == READY => Ok(()),
        Ok(line) if line.is_empty() => {
            Err(Failed::Said(format!("its broker, {shown}, ended without a word")))
        }
        Ok(line) => Err(Failed::Said(line)),
        Err(error) => {
            Err(Failed::Said(format!("its broker, {shown}, said nothing: {}", sys::errno::describe(&error))))
        }
    }
}

/// Time that a broker may take to start: it waits for a lock and two connections, each with its own, shorter limit.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest line that it may say, in bytes.
const LONGEST_LINE: usize = 1 << 16;

fn first_line(child: &mut Child) -> io::Result<String> {
    let mut output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (mut line, until) = (Vec::new(), Instant::now() + sys::patience::stretched(PATIENCE));
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let seen = sys::seqpacket::poll(output.as_fd(), i32::try_from(left).unwrap_or(i32::MAX))?;
        if !seen.readable && !seen.hung_up || line.len() > LONGEST_LINE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{} s passed", PATIENCE.as_secs())));
        }
        let mut some = [0; 512];
        let count = output.read(&mut some)?;
        line.extend_from_slice(&some[..count]);
        if count == 0 || line.contains(&b'\n') {
            let text = String::from_utf8_lossy(&line);
            return Ok(text.lines().next().unwrap_or_default().to_owned());
        }
    }
}

/// Runs the broker on a thread of this process.
fn on_a_thread(directory: &Path) -> Result<(), String> {
    let (tell, told) = mpsc::channel();
    let directory = directory.to_owned();
    let serve = move || {
        let ready = tell.clone();
        let result = broker::run(&directory, Lifetime::LastClient, |event| {
            if let Event::Listening { .. } = event {
                // The starter waits for this event.
                let _ = ready.send(Ok(()));
            }
        });
        // Received only if the broker failed before it served.
        let _ = tell.send(match result {
            Ok(()) | Err(broker::RunError::Running { .. }) => Ok(()),
            Err(error) => Err(without_directory(&error)),
        });
    };
    sys::title::thread("broker", serve).map_err(|error| {
        format!("a thread for its broker cannot be started: {}", sys::errno::describe(&error))
    })?;
    told.recv().unwrap_or_else(|_| Err("its broker's thread panicked".to_owned()))
}
