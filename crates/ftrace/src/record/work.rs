//! The workload of a recording: a command, or a time span.
//! Not here: recording it (`record`).

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::switch::{FOLDER_VARIABLE, LOG_VARIABLE, MARKS_VARIABLE};
use crate::tracefs::TraceError;

/// Poll interval.
const STEP: Duration = Duration::from_millis(50);

/// Grace period of a command after SIGTERM; then it is killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A command.
    Command {
        /// Program path, or a name to look up in `PATH`.
        program: PathBuf,
        /// `argv[0]`.
        name: String,
        /// Arguments.
        words: Vec<String>,
        /// Whether to discard its output.
        silent: bool,
    },
    /// Whatever happens in this time span.
    Time(Duration),
}

/// How the workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command ended.
    Command(ExitStatus),
    /// The time elapsed, or a signal came first.
    Time,
}

/// A running workload.
#[derive(Debug)]
pub(super) enum Running {
    Child { child: Child, asked: Option<Instant> },
    Until(Instant),
}

impl Work {
    /// Starts the workload. A command gets [`FOLDER_VARIABLE`], [`LOG_VARIABLE`] and, with a folder for marks,
    /// [`MARKS_VARIABLE`], and dies with the recorder.
    pub(super) fn start(
        &self,
        folder: &Path,
        marks: Option<&Path>,
        log: &Path,
    ) -> Result<Running, TraceError> {
        match self {
            Self::Time(time) => Ok(Running::Until(Instant::now() + *time)),
            Self::Command { program, name, words, silent } => {
                let mut command = Command::new(program);
                if *silent {
                    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                }
                command.arg0(name).args(words).env(FOLDER_VARIABLE, folder).env(LOG_VARIABLE, log);
                match marks {
                    Some(marks) => command.env(MARKS_VARIABLE, marks),
                    None => command.env_remove(MARKS_VARIABLE),
                };
                sys::child::die_with_parent(&mut command);
                match command.spawn() {
                    Ok(child) => Ok(Running::Child { child, asked: None }),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(TraceError::Usage(format!("{name}: no such command")))
                    }
                    Err(error) => Err(TraceError::refused(format!("starting {name}"))(error)),
                }
            }
        }
    }
}

impl Running {
    /// Waits up to [`STEP`]; returns how the workload ended, if it has. `stop` asks it to end.
    pub(super) fn step(&mut self, stop: bool) -> io::Result<Option<Ended>> {
        match self {
            Self::Until(end) => {
                let left = end.saturating_duration_since(Instant::now());
                if stop || left.is_zero() {
                    return Ok(Some(Ended::Time));
                }
                std::thread::sleep(left.min(STEP));
            }
            Self::Child { child, asked } => {
                if let Some(status) = child.try_wait()? {
                    return Ok(Some(Ended::Command(status)));
                }
                match asked {
                    None if stop => {
                        *asked = Some(Instant::now());
                        sys::child::ask_to_end(child)?;
                    }
                    Some(since) if since.elapsed() > PATIENCE => child.kill()?,
                    _ => {}
                }
                std::thread::sleep(STEP);
            }
        }
        Ok(None)
    }
}
