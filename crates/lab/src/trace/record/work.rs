//! Room: what a recording lasts for: a command, or some time.
//! Not here: recording it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::trace::switch::{FOLDER_VARIABLE, LOG_VARIABLE};
use crate::trace::tracefs::Trouble;

/// How often it is looked at.
const STEP: Duration = Duration::from_millis(50);

/// A command that was asked to end has so long to do it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A program, what it is called, and its words.
    Command {
        /// Its file, or a name to look for where commands are.
        program: PathBuf,
        /// Its own name for itself.
        name: String,
        /// What it is told.
        words: Vec<String>,
        /// Whether nobody is to hear what it says.
        silent: bool,
    },
    /// Whatever happens for so long.
    Time(Duration),
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command did.
    Command(ExitStatus),
    /// The time was over, or a signal came first.
    Time,
}

/// Something that lasts.
#[derive(Debug)]
pub(super) enum Running {
    Child { child: Child, asked: Option<Instant> },
    Until(Instant),
}

impl Work {
    /// Starts it; a command is told where it is recorded, and does not outlive the recorder.
    pub(super) fn start(&self, folder: &Path, log: &Path) -> Result<Running, Trouble> {
        match self {
            Self::Time(time) => Ok(Running::Until(Instant::now() + *time)),
            Self::Command { program, name, words, silent } => {
                let mut command = Command::new(program);
                if *silent {
                    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                }
                command.arg0(name).args(words).env(FOLDER_VARIABLE, folder).env(LOG_VARIABLE, log);
                sys::tied_child::die_with_parent(&mut command);
                match command.spawn() {
                    Ok(child) => Ok(Running::Child { child, asked: None }),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(Trouble::Usage(format!("{name}: no such command")))
                    }
                    Err(error) => Err(Trouble::Refused { tried: format!("starting {name}"), error }),
                }
            }
        }
    }
}

impl Running {
    /// Waits a little; how it ended, if it has. With `stop` it shall end.
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
