//! Android's `atrace`: its flags and the order of its steps.
//! Not here: tracefs and restoring its settings (`ftrace::atrace`).
//! Facts: frameworks/native `cmds/atrace/atrace.cpp` (Android 14): flags, defaults, what it prints and when.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use ftrace::atrace::{Plan, Session};
use ftrace::categories::{self, Category, known, of_userspace};
use ftrace::tracefs::{TraceError, Tracefs};
use store::input;
use sys::draft::Draft;

use super::{A_YEAR_S, CommandResult, Failure, exit, note, parse, say, terminal};

/// Longest list of names that is read, in bytes.
const LONGEST_LIST: u64 = 16 << 20;

/// The flags of Android's tool.
#[derive(Debug, Parser)]
#[command(
    disable_version_flag = true,
    about = "Record the kernel's trace events in the buffer that all share, and put everything back; Android's atrace",
    long_about = "Record the kernel's trace events in the buffer that all share, and put everything back; Android's atrace\n\n\
        What was changed is kept in $XDG_RUNTIME_DIR or /tmp until --async_stop has put it back; after a crash, \
        `binderperf trace restore` does."
)]
pub(super) struct Words {
    /// Applications whose sections to record; Android switches them by system properties, which this program ignores
    #[arg(short = 'a', value_name = "APP,...")]
    applications: Option<String>,

    /// Size of each CPU's buffer in KB
    #[arg(short = 'b', value_name = "KB", default_value_t = 2048, allow_negative_numbers = true)]
    buffer_kb: u64,

    /// Keep the newest events when the buffer is full
    #[arg(short = 'c')]
    circular: bool,

    /// Read further categories from a file
    #[arg(short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,

    /// Kernel functions whose calls to record
    #[arg(short = 'k', value_name = "NAME,...", value_delimiter = ',')]
    functions: Vec<String>,

    /// Let signals end the program at once; `binderperf trace restore` then restores the settings
    #[arg(short = 'n')]
    no_signals: bool,

    /// Seconds to wait before recording
    #[arg(short = 's', value_name = "SEC", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=A_YEAR_S))]
    sleep: u64,

    /// Seconds to record
    #[arg(short = 't', value_name = "SEC", default_value_t = 5, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=A_YEAR_S))]
    time: u64,

    /// Compress the output with zlib
    #[arg(help_heading = "Output", short = 'z')]
    compress: bool,

    /// Write to a file instead of the standard output
    #[arg(help_heading = "Output", short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Start recording and return
    #[arg(help_heading = "Mode", long = "async_start", group = "mode")]
    async_start: bool,

    /// Print the recording so far
    #[arg(help_heading = "Mode", long = "async_dump", group = "mode")]
    async_dump: bool,

    /// Stop, print the recording, and restore the settings
    #[arg(help_heading = "Mode", long = "async_stop", group = "mode")]
    async_stop: bool,

    /// Print events as they occur, until a signal
    #[arg(help_heading = "Mode", long, group = "mode")]
    stream: bool,

    /// List the categories that can be recorded here
    #[arg(help_heading = "Mode", long = "list_categories", group = "mode")]
    list_categories: bool,

    /// Do not record the kernel's events
    #[arg(long = "only_userspace")]
    only_userspace: bool,

    /// Categories of events
    categories: Vec<String>,
}

/// Where a recording goes.
enum Output {
    Stdout(Box<dyn Write>),
    File(Draft),
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File(draft) => draft.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File(draft) => draft.flush(),
        }
    }
}

/// A signal ended it.
const STOPPED: Failure = Failure { status: exit::FAILED, message: None };

/// Runs the tool.
pub(crate) fn run(name: &str, words: Vec<String>) -> CommandResult {
    parse::<Words>(name, words)?.carry_out()
}

impl Words {
    fn carry_out(&self) -> CommandResult {
        if self.list_categories {
            return say(&categories::list(&Tracefs::find()?.global()));
        }
        let names = self.all_names()?;
        let (kernel, mut userspace) = known(&names)?;
        userspace.extend(self.applications.as_deref().map(|_| "-a"));
        of_userspace(&userspace).iter().for_each(|remark| super::tell(remark));
        if self.only_userspace {
            note("--only_userspace: nothing of the kernel's is switched\n");
            return Ok(exit::FINE);
        }
        let session = Session::new()?;
        if !self.no_signals {
            let denied = |error| TraceError::Refused { tried: "catching signals".to_owned(), error };
            ftrace::catch_stops().map_err(denied)?;
        }
        if self.async_dump || self.async_stop {
            return self.end(&session);
        }
        // A bad path is reported before anything is switched.
        let mut output = self.open_output()?;
        self.pause(self.sleep)?;
        let notes = session.start(&self.plan(kernel))?;
        notes.iter().for_each(|line| note(format_args!("{line}\n")));
        if self.async_start {
            return say("capturing trace...");
        }
        let recorded = self.record(&session, &mut output);
        let restored = session.restore();
        recorded.and_then(|()| self.kept(output))?;
        restored?;
        Ok(exit::FINE)
    }

    fn all_names(&self) -> Result<Vec<String>, TraceError> {
        let mut names = self.categories.clone();
        if let Some(path) = &self.file {
            let text = input::text(path, LONGEST_LIST, super::tell).map_err(|error| {
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
            overwrite: self.circular || self.async_start,
            lasting: self.async_start,
        }
    }

    /// Records in the foreground until the time is over or a signal arrives.
    fn record(&self, session: &Session, output: &mut dyn Write) -> Result<(), Failure> {
        if self.stream {
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
        let mut output = self.open_output()?;
        if self.async_stop {
            session.stop()?;
        }
        self.dump(session, &mut output)?;
        // The buffer has it until the file does.
        self.kept(output)?;
        if self.async_stop {
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

    fn open_output(&self) -> Result<Output, TraceError> {
        let Some(path) = &self.output else { return Ok(Output::Stdout(terminal::passed_on())) };
        let mut draft =
            Draft::new(path).map_err(|error| TraceError::Output { place: path.clone(), error })?;
        if self.stream {
            draft.show();
        }
        Ok(Output::File(draft))
    }

    /// Puts the file in its place, if there is one.
    fn kept(&self, output: Output) -> Result<(), Failure> {
        let Output::File(draft) = output else { return Ok(()) };
        let unwritten = |error| TraceError::Output { place: self.place().to_owned(), error };
        Ok(draft.commit().map_err(unwritten)?)
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
    fn androids_flags_are_understood() {
        let words = "x --async_start -b 8000 -c sched idle workq binder_driver sync freq";
        let words = Words::try_parse_from(words.split(' ')).expect("the documented call");
        assert!(words.async_start && words.circular && words.buffer_kb == 8000);
        let (kernel, userspace) = known(&words.categories).expect("known");
        assert_eq!((kernel.len(), userspace.len()), (6, 0));
        let words = "x -z -n -s 1 -t 2 -k a,b -a app -f file -o out --only_userspace view";
        let words = Words::try_parse_from(words.split(' ')).expect("all others");
        assert_eq!((words.sleep, words.time, words.functions.len()), (1, 2, 2));
        assert!(words.compress && words.only_userspace && words.no_signals);
        for bad in
            ["x -b -1", "x -b x", "x -t -1", "x --async_start --async_stop", "x --stream --list_categories"]
        {
            assert!(Words::try_parse_from(bad.split(' ')).is_err(), "{bad}");
        }
    }
}
