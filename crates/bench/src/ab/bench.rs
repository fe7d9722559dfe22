//! One run of one side: a child process that writes a record.
//! Not here: number and order of the runs (`super`).

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use record::Run;
use record::compare::Member;

use super::Side;

/// Poll interval for a child.
const STEP: Duration = Duration::from_millis(20);
/// Time limit for a child to end after a stop request: a guest's command has 20 s for it.
const FAREWELL: Duration = Duration::from_secs(30);
/// Exit status for wrong usage.
const USAGE: i32 = 2;
/// Exit status of a test that this machine can run only in part.
const CANNOT: i32 = 3;
/// Lines shown of a failed run.
const SHOWN_LINES: usize = 6;

/// Error of a run without a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunFailure {
    /// The test was called with wrong usage.
    Usage(String),
    /// The run ended without a usable record.
    Broken(String),
    /// A local error, outside of the run.
    Here(String),
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(why) | Self::Broken(why) | Self::Here(why)) = self;
        f.write_str(why)
    }
}

/// Runs tests one after the other, and stores their records.
pub struct Bench {
    program: PathBuf,
    test: Vec<String>,
    folder: PathBuf,
    patience: Duration,
    icount: bool,
}

impl Bench {
    /// Prepares runs of this test; creates the folder for its records and catches signals from now on.
    ///
    /// # Errors
    /// The folder cannot be written, or the test is empty.
    pub fn new(test: &[String], folder: &Path, patience: Duration, icount: bool) -> Result<Self, RunFailure> {
        if test.is_empty() {
            return Err(RunFailure::Usage("which test? give its words behind --".to_owned()));
        }
        let here = |what: String| {
            move |error: io::Error| RunFailure::Here(format!("{what}: {}", sys::errno::describe(&error)))
        };
        fs::create_dir_all(folder).map_err(here(format!("cannot make {}", folder.display())))?;
        let program = std::env::current_exe().map_err(here("finding this program's file".to_owned()))?;
        sys::stop_signal::catch().map_err(here("catching signals".to_owned()))?;
        Ok(Self { program, test: test.to_vec(), folder: folder.to_owned(), patience, icount })
    }

    /// Makes one run under this name, with a mark in its record's context.
    ///
    /// # Errors
    /// [`RunFailure`]; the run's output is stored beside the records.
    pub fn run(&self, side: &Side, name: &str, mark: (String, String)) -> Result<Member, RunFailure> {
        let record = self.folder.join(format!("{name}.json"));
        let log = self.folder.join(format!("{name}.log"));
        let guest = self.icount || side.is_guest();
        // Files from a guest arrive in a folder of their own.
        let back = self.folder.join(format!("{name}.guest"));
        // Not the record's name: what is there is of an earlier run until this one is accepted.
        let new = self.folder.join(format!("{name}.new"));
        let (left, words) = match guest {
            true => {
                // A run that was killed may have left a record there.
                let _ = fs::remove_dir_all(&back);
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&back)
                    .map_err(|error| unwritten(&back, &error))?;
                let words = side.words(&self.test, &back, Path::new("record.json"), self.icount);
                (back.join("record.json"), words)
            }
            false => {
                let _ = fs::remove_file(&new);
                (new.clone(), side.words(&self.test, &self.folder, &new, false))
            }
        };
        let status = self.child(side, &words, &log)?;
        let run = File::open(&left).map_err(|_| "it left no record".to_owned());
        let run = run.and_then(|file| Run::read(file).map_err(|error| error.to_string()));
        let outcome = match (run, status.code()) {
            (Ok(run), Some(0 | 1)) if !run.cases.is_empty() => self.keep(run, &record, mark),
            // The run may be partial, for example without the right to SCHED_FIFO; its measurements are
            // valid.
            (Ok(run), Some(CANNOT)) if run.complete && measured(&run) => self.keep(run, &record, mark),
            (_, Some(USAGE)) if !side.can_start() => {
                Err(RunFailure::Broken(description(&words, "could not start", &log)))
            }
            (_, Some(USAGE)) => Err(RunFailure::Usage(description(&words, "was called wrongly", &log))),
            (Ok(_), _) => Err(RunFailure::Broken(description(&words, &format!("ended with {status}"), &log))),
            (Err(why), _) => {
                Err(RunFailure::Broken(description(&words, &format!("ended with {status}: {why}"), &log)))
            }
        };
        if outcome.is_ok() {
            let _ = fs::remove_file(&log);
            let _ = fs::remove_file(&new);
        } else {
            // The partial record stays, under a name that a reader of the folder ignores.
            let _ = fs::rename(&left, self.folder.join(format!("{name}.refused")));
        }
        if guest {
            // Everything worth keeping has been read.
            let _ = fs::remove_dir_all(&back);
        }
        outcome
    }

    /// Writes the record to its final place.
    fn keep(&self, mut run: Run, record: &Path, mark: (String, String)) -> Result<Member, RunFailure> {
        run.context.retain(|(key, _)| *key != mark.0);
        run.context.push(mark);
        sys::draft::write(record, run.to_json()).map_err(|error| unwritten(record, &error))?;
        Ok(Member { file: record.display().to_string(), run })
    }

    fn child(&self, side: &Side, words: &[String], log: &Path) -> Result<ExitStatus, RunFailure> {
        let said = File::create(log).map_err(|error| unwritten(log, &error))?;
        let program = side.binary.as_ref().unwrap_or(&self.program);
        let mut command = Command::new(program);
        command.args(words).envs(side.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        sys::child::die_with_parent(&mut command);
        let failed = |error: io::Error| {
            let why = format!("{}: {}", program.display(), sys::errno::describe(&error));
            // A side's own program is under test, and may be missing like a kernel that was not built.
            if side.binary.is_some() { RunFailure::Broken(why) } else { RunFailure::Here(why) }
        };
        let mut child = command.spawn().map_err(failed)?;
        wait(&mut child, self.patience)
            .map_err(|error| RunFailure::Here(format!("waiting for a run: {}", sys::errno::describe(&error))))
    }
}

/// Whether a file of this name holds a run, accepted or not, of one of these sides or series.
#[must_use]
pub fn is_record_of(name: &str, sides: &[&str]) -> bool {
    let Some((stem, "json" | "refused")) = name.split_once('.') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    stem.rsplit_once('-').is_some_and(|(side, number)| sides.contains(&side) && is_number(number))
}

/// Returns true if any case has numbers.
fn measured(run: &Run) -> bool {
    run.cases.iter().any(|case| case.measurements().next().is_some())
}

/// Waits until the child has ended; asks it to end on a timeout or a stop request, then kills it.
fn wait(child: &mut Child, patience: Duration) -> io::Result<ExitStatus> {
    let start = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match asked {
            None if sys::stop_signal::received().is_some() || start.elapsed() > patience => {
                asked = Some(Instant::now());
                sys::child::ask_to_end(child)?;
            }
            Some(since) if since.elapsed() > FAREWELL => child.kill()?,
            _ => {}
        }
        std::thread::sleep(STEP);
    }
}

fn unwritten(path: &Path, error: &io::Error) -> RunFailure {
    RunFailure::Here(format!("cannot write {}: {}", path.display(), sys::errno::describe(error)))
}

/// Describes a run: its command, its exit status and the end of its output.
fn description(words: &[String], how: &str, log: &Path) -> String {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].iter().map(|line| format!("\n    {line}"));
    format!("binderperf {} {how}{}", words.join(" "), last.collect::<String>())
}
