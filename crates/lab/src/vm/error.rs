//! Room: why a guest could not be run to its end.
//! Not here: a command that ran and failed; that is an outcome (`Outcome::status`).

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that can stop the VM lane. `Display` says what was tried, what came back and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum VmError {
    /// QEMU is not installed and could not be installed.
    NoQemu {
        /// The program looked for.
        program: &'static str,
        /// How to get it.
        remedy: String,
    },
    /// QEMU ended before the guest did, for a reason of its own.
    Qemu {
        /// What it printed.
        said: String,
    },
    /// KVM gave up where emulation could not take over: it was demanded, or the command had started.
    Kvm {
        /// What QEMU printed.
        said: String,
    },
    /// The file or name given as kernel cannot be one.
    BadKernel {
        /// As it was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// No kernel could be had from anywhere.
    NoKernel {
        /// What was asked for.
        wanted: String,
        /// Each place tried and what came back.
        tried: Vec<String>,
    },
    /// A program that the guest should run cannot run there.
    BadProgram {
        /// The program's file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A tool of the host failed or is missing.
    Tool {
        /// The command.
        command: String,
        /// What came back, and what to do.
        why: String,
    },
    /// A file of the host could not be read or written.
    Host {
        /// What was being done.
        doing: String,
        /// What came back.
        source: io::Error,
    },
    /// What the command prints could not be passed on.
    Output {
        /// What came back.
        source: io::Error,
    },
    /// A signal asked this process to stop, and the command had not started or did not obey.
    Stopped {
        /// The signal's name.
        signal: &'static str,
    },
    /// The kernel panicked.
    Panic {
        /// The panic's first line.
        what: String,
        /// The telling lines of the console.
        console: String,
    },
    /// The guest never reported that it was up.
    NeverStarted {
        /// How long it was given.
        after: Duration,
        /// The telling lines of the console.
        console: String,
    },
    /// The command did not end in time.
    Timeout {
        /// How long it was given.
        after: Duration,
        /// The telling lines of the console.
        console: String,
    },
    /// The guest's own start-up failed: a module, the channel, the command itself.
    Guest {
        /// What the guest said.
        said: String,
        /// The telling lines of the console.
        console: String,
    },
    /// The kernel runs but has no Binder driver.
    NoBinder {
        /// What the guest looked for.
        said: String,
        /// The kernel's release.
        release: String,
    },
    /// The guest went down without a word.
    Lost {
        /// The telling lines of the console.
        console: String,
    },
}

impl VmError {
    /// Wraps an error of the host's filesystem.
    pub(super) fn host(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Host { doing, source }
    }

    /// Whether it ended because nobody reads the command's standard output any more.
    #[must_use]
    pub fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The exit status that this failure deserves: 2 bad input, 3 the environment cannot, 4 the lane
    /// or the guest broke; 1 a run that was stopped, as where no guest is involved.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BadKernel { .. } | Self::BadProgram { .. } => 2,
            Self::NoQemu { .. } | Self::NoKernel { .. } | Self::NoBinder { .. } | Self::Tool { .. } => 3,
            Self::Qemu { .. } | Self::Kvm { .. } | Self::Host { .. } | Self::Guest { .. } => 3,
            Self::Panic { .. } | Self::NeverStarted { .. } | Self::Timeout { .. } | Self::Lost { .. } => 4,
            Self::Output { .. } => 4,
            Self::Stopped { .. } => 1,
        }
    }
}

/// Lines of the console, indented below the sentence that it explains.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; its console stayed empty");
        }
        f.write_str("; its console:")?;
        self.0.lines().try_for_each(|line| write!(f, "\n  | {line}"))
    }
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQemu { program, remedy } => write!(f, "no {program} in PATH; {remedy}"),
            Self::Qemu { said } => write!(f, "QEMU ended before the guest did: {said}"),
            Self::Kvm { said } => {
                write!(f, "KVM gave up: {said}; run it again with --accel tcg")
            }
            Self::BadKernel { given, why } => write!(f, "'{given}' is no kernel to boot: {why}"),
            Self::NoKernel { wanted, tried } => {
                write!(f, "no kernel for {wanted}; tried:")?;
                tried.iter().try_for_each(|attempt| write!(f, "\n  - {attempt}"))?;
                f.write_str("\ngive one with --kernel FILE (a bzImage or Debian's .deb)")
            }
            Self::BadProgram { path, why } => write!(f, "{} cannot run in a guest: {why}", path.display()),
            Self::Tool { command, why } => write!(f, "{command}: {why}"),
            Self::Host { doing, source } => write!(f, "{doing}: {}", sys::errno::describe(source)),
            Self::Output { source } => {
                write!(f, "passing on the command's standard output: {}", sys::errno::describe(source))
            }
            Self::Stopped { signal } => write!(f, "stopped by {signal}; the guest was ended"),
            Self::Panic { what, console } => {
                write!(f, "the guest's kernel panicked ({what}){}", Excerpt(console))
            }
            Self::NeverStarted { after, console } => {
                write!(f, "the guest did not come up within {} s{}", after.as_secs(), Excerpt(console))
            }
            Self::Timeout { after, console } => write!(
                f,
                "the command was still running after {} s and the guest was ended (raise --timeout){}",
                after.as_secs(),
                Excerpt(console)
            ),
            Self::Guest { said, console } => {
                write!(f, "the guest could not run the command: {said}{}", Excerpt(console))
            }
            Self::NoBinder { said, release } => write!(
                f,
                "kernel {release} has no Binder driver: {said}; it needs CONFIG_ANDROID_BINDER_IPC built in, or a \
                 binder_linux module (--modules DIR)"
            ),
            Self::Lost { console } => {
                write!(f, "the guest went down before the command ended{}", Excerpt(console))
            }
        }
    }
}

impl std::error::Error for VmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Host { source, .. } | Self::Output { source } => Some(source),
            _ => None,
        }
    }
}
