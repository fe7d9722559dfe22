//! Errors of running a command on another machine.
//! Not here: a command that ran and failed; that is an outcome.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use intake::IntakeError;

/// Everything that can prevent a command from running there, or its results from coming back. `Display` says what was
/// tried, what came back and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteError {
    /// The user's program is not there.
    NoTool {
        /// `adb` or `ssh`.
        program: String,
        /// The error.
        source: io::Error,
    },
    /// The machine did not answer.
    Unreachable {
        /// The target as named.
        target: String,
        /// Words of adb or ssh.
        said: String,
    },
    /// adb sees several devices and none was named.
    SeveralDevices(Vec<String>),
    /// There is no build of this program for that machine.
    NoProgram {
        /// The machine's architecture.
        arch: &'static str,
        /// The target to build it for.
        target: &'static str,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// This program has no build for such machines.
    UnknownMachine(String),
    /// The named program cannot run there.
    BadProgram {
        /// Its file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The other side refused.
    Refused {
        /// The kind of reason.
        kind: Refusal,
        /// The reason.
        said: String,
    },
    /// The answer makes no sense.
    Garbled(String),
    /// The connection was lost and did not come back in time.
    Lost {
        /// The target as named.
        target: String,
        /// The longest wait.
        after: Duration,
        /// The folder there with the results.
        folder: String,
        /// Last words of adb or ssh.
        said: String,
    },
    /// The machine did not do what an orderly end needs, and the user had asked for one.
    Deaf {
        /// The target as named.
        target: String,
        /// The folder there with the results.
        folder: String,
    },
    /// It sends more than is taken, or it cannot be written here.
    Intake(IntakeError),
    /// The command ended there without a status.
    Died {
        /// The target as named.
        target: String,
    },
    /// A file or folder of this machine.
    Here {
        /// The operation.
        doing: String,
        /// The error.
        source: io::Error,
    },
    /// Fetching failed on this side, so the results are still there.
    Kept {
        /// The folder there.
        folder: String,
        /// The error.
        why: Box<RemoteError>,
    },
    /// A signal of this name asked this process to stop.
    Stopped(&'static str),
}

/// Kinds of reasons for which the other side refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No space left there.
    Space,
    /// Its folder is mounted `noexec`.
    NoExec,
    /// The program does not run there.
    Program,
    /// A program that `remote.sh` calls is missing there.
    Tools,
    /// The command's folder is not there any more.
    Gone,
    /// This program has not been copied there yet.
    Absent,
    /// Any other; its text says which.
    Other,
}

impl Refusal {
    /// The kind of this word of `remote.sh`.
    pub(crate) fn of_word(word: &str) -> Self {
        match word {
            "space" => Self::Space,
            "noexec" => Self::NoExec,
            "exec" => Self::Program,
            "tools" => Self::Tools,
            "gone" => Self::Gone,
            "absent" => Self::Absent,
            _ => Self::Other,
        }
    }
}

impl RemoteError {
    /// Exit status: 1 stopped by a signal, 2 bad input, 3 the environment, 4 this machine's failure.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped(_) => 1,
            Self::SeveralDevices(_) | Self::BadProgram { .. } => 2,
            Self::NoTool { .. } | Self::Unreachable { .. } | Self::NoProgram { .. } => 3,
            Self::UnknownMachine(_) | Self::Refused { .. } | Self::Lost { .. } | Self::Died { .. } => 3,
            Self::Deaf { .. } => 3,
            Self::Garbled(_) | Self::Here { .. } | Self::Intake(_) => 4,
            Self::Kept { why, .. } => why.exit_code(),
        }
    }

    /// The same of results that are still on the other machine.
    pub(crate) fn kept_in(self, folder: String) -> Self {
        match self {
            Self::Lost { .. } | Self::Deaf { .. } => self,
            Self::Refused { kind: Refusal::Gone, .. } => self,
            why => Self::Kept { folder, why: Box::new(why) },
        }
    }

    /// Wraps an I/O error of this machine.
    pub(crate) fn here(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Here { doing, source }
    }
}

/// Advice about these words of adb or ssh.
fn remedy(said: &str) -> &'static str {
    const KNOWN: [(&str, &str); 9] = [
        ("unauthorized", "confirm this computer on the device's screen, then again"),
        ("offline", "unplug it and plug it in again, or `adb reconnect`"),
        ("no devices", "plug one in and allow USB debugging, or name one over the network: adb:HOST:PORT"),
        ("no permissions", "the user may not use this USB device: `adb devices -l` says more"),
        ("not found", "`adb devices` lists those that are there"),
        ("Permission denied", "`ssh HOST true` must work without a password: `ssh-copy-id HOST`"),
        ("Host key verification failed", "log in once by hand to accept its key"),
        ("Could not resolve", "no such host here, and none in ~/.ssh/config"),
        ("onnection refused", "no server listens there: is the port right?"),
    ];
    KNOWN.iter().find(|(word, _)| said.contains(word)).map_or("", |(_, what)| what)
}

/// A reason, followed by what to do about it, if that is known.
fn with_remedy(f: &mut fmt::Formatter<'_>, remedy: &str) -> fmt::Result {
    if remedy.is_empty() { Ok(()) } else { write!(f, " ({remedy})") }
}

impl From<IntakeError> for RemoteError {
    fn from(error: IntakeError) -> Self {
        Self::Intake(error)
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTool { program, source } => {
                let package = if program.ends_with("adb") { "adb" } else { "openssh-client" };
                let why = sys::errno::describe(source);
                write!(f, "cannot run {program}: {why}; install it (Debian: apt-get install {package})")
            }
            Self::Unreachable { target, said } => {
                write!(f, "cannot reach {target}: {said}")?;
                with_remedy(f, remedy(said))
            }
            Self::SeveralDevices(serials) => {
                f.write_str("adb sees several devices; name one:")?;
                serials.iter().try_for_each(|serial| write!(f, " --on adb:{serial}"))
            }
            Self::NoProgram { arch, target, looked } => {
                write!(f, "no binderperf for {arch}; looked for:")?;
                looked.iter().try_for_each(|path| write!(f, "\n  - {}", path.display()))?;
                write!(
                    f,
                    "\n`make release` builds it for all architectures and leaves it in target/dist; put it as binderperf-{target} \
                     into one of these folders, or name it with --binary FILE"
                )
            }
            Self::UnknownMachine(machine) => {
                write!(f, "there is no build for {machine}: only for x86_64, aarch64 and armv7")
            }
            Self::BadProgram { path, why } => write!(f, "{} cannot run there: {why}", path.display()),
            Self::Refused { kind, said } => {
                let (what, todo) = match kind {
                    Refusal::Space => ("no space left there", "remove something there"),
                    Refusal::NoExec => (
                        "nothing may be executed there",
                        "set TMPDIR there to a folder that is not mounted noexec",
                    ),
                    Refusal::Program => {
                        ("the program does not run there", "name one for that machine with --binary FILE")
                    }
                    Refusal::Tools => {
                        ("a program is missing there", "install util-linux, toybox or busybox there")
                    }
                    Refusal::Gone => {
                        ("the command's folder has gone", "something removed it; nothing can be fetched")
                    }
                    Refusal::Absent | Refusal::Other => ("the other side cannot work", ""),
                };
                write!(f, "{what}: {said}")?;
                with_remedy(f, todo)
            }
            Self::Garbled(line) => write!(f, "the other side sent {line:?}, which means nothing"),
            Self::Lost { target, after, folder, said } => {
                let seconds = after.as_secs();
                write!(
                    f,
                    "the connection to {target} did not come back within {seconds} s: {said}; the command goes on there to its end, \
                     and what it leaves is in {folder} for a week"
                )
            }
            Self::Deaf { target, folder } => write!(
                f,
                "{target} did not end the command in time, which was asked to stop; it may go on there, and what it leaves is in \
                 {folder} for a week"
            ),
            Self::Intake(error) => error.fmt(f),
            Self::Died { target } => write!(
                f,
                "the command ended on {target} without a status: that machine was restarted, or killed it for want of memory"
            ),
            Self::Here { doing, source } => write!(f, "{doing}: {}", sys::errno::describe(source)),
            Self::Kept { folder, why } => write!(f, "{why}; the results are still there, in {folder}"),
            Self::Stopped(signal) => write!(f, "stopped by {signal}"),
        }
    }
}
