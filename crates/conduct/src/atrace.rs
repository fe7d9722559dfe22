//! Android's `atrace`: the order of its steps.
//! Not here: its flags (`binderperf`), tracefs and restoring its settings (`ftrace::atrace`).
//! Facts: frameworks/native `cmds/atrace/atrace.cpp` (Android 14): flags, defaults, what it prints and when.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use console::{CommandResult, Failure, exit, note, say, terminal};
use ftrace::atrace::{Plan, Session};
use ftrace::categories::{self, Category, known, of_userspace};
use ftrace::tracefs::{TraceError, Tracefs};
use store::input;
use sys::draft::Draft;

/// Longest list of names that is read, in bytes.
const LONGEST_LIST: u64 = 16 << 20;

/// A signal ended it.
const STOPPED: Failure = Failure { status: exit::FAILED, message: None };

/// Its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Record, and print the recording.
    #[default]
    Record,
    /// Print events as they occur, until a signal.
    Stream,
    /// Start recording, and return.
    Start,
    /// Print the recording so far.
    Dump,
    /// Stop, print the recording, and restore the settings.
    Stop,
}

/// A call of the tool.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Its work.
    pub mode: Mode,
    /// Categories of events.
    pub categories: Vec<String>,
    /// A file with further ones.
    pub file: Option<PathBuf>,
    /// Whether sections of applications are asked for.
    pub applications: bool,
    /// Kernel functions whose calls are recorded.
    pub functions: Vec<String>,
    /// Size of each CPU's buffer in KB.
    pub buffer_kb: u64,
    /// Whether the newest events are kept when the buffer is full.
    pub circular: bool,
    /// Whether signals end the program at once.
    pub no_signals: bool,
    /// Seconds to wait before recording.
    pub sleep: u64,
    /// Seconds to record.
    pub time: u64,
    /// Whether the output is compressed.
    pub compress: bool,
    /// The output's file, if it is not the standard output.
    pub output: Option<PathBuf>,
    /// Whether the kernel's events are left out.
    pub only_userspace: bool,
}

/// Lists the categories that can be recorded here.
///
/// # Errors
/// The kernel's tracing cannot be used.
pub fn list() -> CommandResult {
    say(&categories::list(&Tracefs::find()?.global()))
}

impl Job {
    /// Runs the tool.
    ///
    /// # Errors
    /// The kernel's tracing cannot be used, or an output not be written.
    pub fn run(&self) -> CommandResult {
        let names = self.all_names()?;
        let (kernel, mut userspace) = known(&names)?;
        userspace.extend(self.applications.then_some("-a"));
        of_userspace(&userspace).iter().for_each(|remark| console::tell(remark));
        if self.only_userspace {
            note("--only_userspace: nothing of the kernel's is switched\n");
            return Ok(exit::FINE);
        }
        let session = Session::new()?;
        if !self.no_signals {
            let denied = |error| TraceError::Refused { tried: "catching signals".to_owned(), error };
            ftrace::catch_stops().map_err(denied)?;
        }
        if matches!(self.mode, Mode::Dump | Mode::Stop) {
            return self.end(&session);
        }
        // A bad path is reported before anything is switched.
        let mut draft = self.draft()?;
        self.pause(self.sleep)?;
        let notes = session.start(&self.plan(kernel))?;
        notes.iter().for_each(|line| note(format_args!("{line}\n")));
        if self.mode == Mode::Start {
            return say("capturing trace...");
        }
        let recorded = self.record(&session, &mut *writer(&mut draft));
        let restored = session.restore();
        recorded.and_then(|()| self.kept(draft))?;
        restored?;
        Ok(exit::FINE)
    }

    fn all_names(&self) -> Result<Vec<String>, TraceError> {
        let mut names = self.categories.clone();
        if let Some(path) = &self.file {
            let text = input::text(path, LONGEST_LIST, console::tell).map_err(|error| {
                TraceError::Usage(format!("reading {}: {}", path.display(), sys::errno::describe(&error)))
            })?;
            let separates = |letter: char| letter.is_whitespace() || letter == ',';
            names.extend(text.split(separates).filter(|word| !word.is_empty()).map(str::to_owned));
        }
        Ok(names)
    }

    fn plan(&self, categories: Vec<&'static Category>) -> Plan {
        Plan {
            categories,
            functions: self.functions.clone(),
            buffer_kb: self.buffer_kb,
            // A recording that is stopped at an event must hold what led to it.
            overwrite: self.circular || self.mode == Mode::Start,
            lasting: self.mode == Mode::Start,
        }
    }

    /// Records in the foreground until the time is over or a signal arrives.
    fn record(&self, session: &Session, output: &mut dyn Write) -> Result<(), Failure> {
        if self.mode == Mode::Stream {
            return Ok(session.stream(output, self.place())?);
        }
        tell("capturing trace...")?;
        if let Err(stopped) = self.pause(self.time) {
            tell("\ntrace aborted.\n")?;
            return Err(stopped);
        }
        session.stop()?;
        Ok(self.dump(session, output)?)
    }

    /// `--async_dump` and `--async_stop`.
    fn end(&self, session: &Session) -> CommandResult {
        session.must_be_ours()?;
        let mut draft = self.draft()?;
        if self.mode == Mode::Stop {
            session.stop()?;
        }
        self.dump(session, &mut *writer(&mut draft))?;
        // The buffer has it until the file does.
        self.kept(draft)?;
        if self.mode == Mode::Stop {
            session.restore()?;
        } else {
            session.buffer().clear()?;
        }
        Ok(exit::FINE)
    }

    fn dump(&self, session: &Session, output: &mut dyn Write) -> Result<(), TraceError> {
        tell(" done\n")?;
        let writing = |error| TraceError::Output { place: self.place().to_owned(), error };
        output.write_all(b"TRACE:\n").map_err(writing)?;
        if self.compress {
            session.dump_compressed(output, self.place())?;
        } else {
            session.dump(output, self.place())?;
        }
        output.flush().map_err(writing)?;
        Ok(())
    }

    fn place(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new("the standard output"))
    }

    /// The output's file, if it is not the standard output.
    fn draft(&self) -> Result<Option<Draft>, TraceError> {
        let Some(path) = &self.output else { return Ok(None) };
        let mut draft =
            Draft::new(path).map_err(|error| TraceError::Output { place: path.clone(), error })?;
        if self.mode == Mode::Stream {
            draft.show();
        }
        Ok(Some(draft))
    }

    /// Puts the file in its place, if there is one.
    fn kept(&self, draft: Option<Draft>) -> Result<(), Failure> {
        let unwritten = |error| TraceError::Output { place: self.place().to_owned(), error };
        Ok(draft.map_or(Ok(()), Draft::commit).map_err(unwritten)?)
    }

    /// Waits for some seconds or a signal.
    fn pause(&self, seconds: u64) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            if ftrace::stop_asked().is_some() {
                return Err(STOPPED);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// Where a recording goes.
fn writer(draft: &mut Option<Draft>) -> Box<dyn Write + '_> {
    match draft {
        Some(draft) => Box::new(draft),
        None => terminal::passed_on(),
    }
}

/// Prints progress where Android's tool prints it.
fn tell(text: &str) -> Result<(), TraceError> {
    let mut stdout = terminal::own();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| TraceError::Output { place: PathBuf::from("the standard output"), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_words_and_a_file_and_a_lasting_recording_overwrites() {
        let folder = sys::private_folder::PrivateFolder::new("atrace").expect("a folder");
        let file = folder.path().join("names");
        std::fs::write(&file, "sched, irq\nfreq").expect("a file");
        let job = Job {
            mode: Mode::Start,
            categories: vec!["idle".to_owned()],
            file: Some(file),
            ..Job::default()
        };
        assert_eq!(job.all_names().expect("names"), ["idle", "sched", "irq", "freq"]);
        assert!(job.plan(Vec::new()).overwrite && job.plan(Vec::new()).lasting);
        let stream = Job { mode: Mode::Stream, ..job };
        assert!(!stream.plan(Vec::new()).overwrite && !stream.plan(Vec::new()).lasting);
    }
}
