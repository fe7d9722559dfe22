//! Errors of running a guest.
//! Not here: a command that ran and failed; that is an outcome (`Outcome::status`).

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use intake::IntakeError;
use thiserror::Error;

use super::arch::Arch;

/// Everything that can prevent a command from running in a guest. `Display` says what was tried, what failed and what
/// to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VmError {
    /// QEMU is not installed and could not be installed.
    #[error("no {program} in PATH; {remedy}")]
    NoQemu {
        /// The program looked for.
        program: &'static str,
        /// How to install it.
        remedy: String,
    },
    /// QEMU itself failed, with this output.
    #[error("QEMU ended before the guest did: {0}")]
    Qemu(String),
    /// KVM failed, with this output of QEMU, and emulation was no option: KVM was requested, or the command had
    /// started.
    #[error("KVM gave up: {0}; run it again with --accel tcg")]
    Kvm(String),
    /// The given kernel is not usable.
    #[error("'{given}' is not a bootable kernel: {why}")]
    BadKernel {
        /// The file or name as given.
        given: String,
        /// The reason.
        why: String,
    },
    /// No kernel was found.
    #[error(
        "no kernel for {wanted}; tried:{}\ngive one with vm --kernel FILE or run --vm=FILE (a bzImage or Debian's .deb)",
        Below(tried)
    )]
    NoKernel {
        /// The requested kernel.
        wanted: String,
        /// Each source tried and its error.
        tried: Vec<String>,
    },
    /// There is no build of this program for the guest's architecture.
    #[error(
        "no binderperf for {arch}; looked for:{}\n`make release` builds it, as does `rustup target add {target}; cargo build \
         --release --target {target}`; or put it there, or name it with --binary FILE",
        Below(&looked.iter().map(|path| path.display()).collect::<Vec<_>>())
    )]
    NoProgram {
        /// The guest's architecture.
        arch: Arch,
        /// The target to build it for.
        target: &'static str,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// A program cannot run in the guest.
    #[error("{} cannot run in a guest: {why}", path.display())]
    BadProgram {
        /// The program's file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file tree cannot be the guest's root.
    #[error("{} cannot be a guest's root: {why}", path.display())]
    BadRoot {
        /// The folder or archive.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A host tool failed or is missing.
    #[error("{command}: {why}")]
    Tool {
        /// The command line.
        command: String,
        /// The error and what to do.
        why: String,
    },
    /// A host file could not be read or written.
    #[error("{doing}: {}", sys::errno::describe(source))]
    Host {
        /// The operation.
        doing: String,
        /// The error.
        source: io::Error,
    },
    /// It sends more than is taken, or it cannot be written here.
    #[error(transparent)]
    Intake(#[from] IntakeError),
    /// The command's standard output could not be written.
    #[error("passing on the command's standard output: {}", sys::errno::describe(.0))]
    Output(#[source] io::Error),
    /// A signal of this name asked this process to stop, and the command had not started or did not stop.
    #[error("stopped by {0}; the guest was ended")]
    Stopped(&'static str),
    /// The kernel panicked.
    #[error("the guest's kernel panicked ({what}){}", Excerpt(console))]
    Panic {
        /// The panic's first line.
        what: String,
        /// The relevant console lines.
        console: String,
    },
    /// The guest did not report that it is up.
    #[error("the guest did not come up within {} s{}", after.as_secs(), Excerpt(console))]
    NeverStarted {
        /// The time limit.
        after: Duration,
        /// The relevant console lines.
        console: String,
    },
    /// The command did not end in time.
    #[error(
        "the command was still running after {} s and the guest was ended (raise --timeout){}",
        after.as_secs(), Excerpt(console)
    )]
    Timeout {
        /// The time limit.
        after: Duration,
        /// The relevant console lines.
        console: String,
    },
    /// The guest's start-up failed: a module, the frame port, or starting the command.
    #[error("the guest could not run the command: {said}{}", Excerpt(console))]
    Guest {
        /// The guest's message.
        said: String,
        /// The relevant console lines.
        console: String,
    },
    /// The kernel runs but has no Binder driver.
    #[error(
        "kernel {release} has no Binder driver: {said}; it needs CONFIG_ANDROID_BINDER_IPC built in, or a binder_linux module \
         (--modules DIR)"
    )]
    NoBinder {
        /// What the guest looked for.
        said: String,
        /// The kernel's release.
        release: String,
    },
    /// The guest went down without a message. The relevant console lines.
    #[error("the guest went down before the command ended{}", Excerpt(.0))]
    Lost(String),
}

/// Words in the reason of a panic that a fault of QEMU caused.
pub(super) const STRAY_BREAKPOINT: &str = "a stray breakpoint";

impl VmError {
    /// Wraps an I/O error on the host.
    pub(super) fn host(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Host { doing, source }
    }

    /// Whether the reader of the command's standard output has closed it.
    #[must_use]
    pub fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether the guest went down, or had to be ended, while its command ran.
    #[must_use]
    pub fn is_guest_down(&self) -> bool {
        matches!(self, Self::Panic { .. } | Self::Timeout { .. } | Self::Lost(_))
    }

    /// Whether the emulator is to blame for a panic.
    #[must_use]
    pub fn is_emulators(&self) -> bool {
        matches!(self, Self::Panic { what, .. } if what.contains(STRAY_BREAKPOINT))
    }

    /// Exit status: 2 bad input, 3 missing prerequisite, 4 guest or host failure, 1 stopped by a signal, as without a
    /// guest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BadKernel { .. } | Self::BadProgram { .. } | Self::BadRoot { .. } => 2,
            Self::NoQemu { .. }
            | Self::NoProgram { .. }
            | Self::NoKernel { .. }
            | Self::NoBinder { .. }
            | Self::Tool { .. } => 3,
            Self::Qemu(_) | Self::Kvm(_) | Self::Host { .. } | Self::Guest { .. } => 3,
            Self::Intake(_) => 4,
            Self::Panic { .. } | Self::NeverStarted { .. } | Self::Timeout { .. } => 4,
            Self::Lost(_) | Self::Output(_) => 4,
            Self::Stopped(_) => 1,
        }
    }
}

/// Lines of a text, indented below a message.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.lines().try_for_each(|line| write!(f, "\n  | {line}"))
    }
}

/// The console's lines behind a message.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("; its console stayed empty"),
            text => write!(f, "; its console:{}", Quoted(text)),
        }
    }
}

/// Items below a message, a line each.
pub(super) struct Below<'a, T>(pub(super) &'a [T]);

impl<T: fmt::Display> fmt::Display for Below<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|one| write!(f, "\n  - {one}"))
    }
}
