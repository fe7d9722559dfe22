//! Errors of running a guest.
//! Not here: a command that ran and failed; that is an outcome (`Outcome::status`).

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use intake::IntakeError;

use super::arch::Arch;

/// Everything that can prevent a command from running in a guest. `Display` says what was tried, what failed and what
/// to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum VmError {
    /// QEMU is not installed and could not be installed.
    NoQemu {
        /// The program looked for.
        program: &'static str,
        /// How to install it.
        remedy: String,
    },
    /// QEMU itself failed, with this output.
    Qemu(String),
    /// KVM failed, with this output of QEMU, and emulation was no option: KVM was requested, or the command had
    /// started.
    Kvm(String),
    /// The given kernel is not usable.
    BadKernel {
        /// The file or name as given.
        given: String,
        /// The reason.
        why: String,
    },
    /// No kernel was found.
    NoKernel {
        /// The requested kernel.
        wanted: String,
        /// Each source tried and its error.
        tried: Vec<String>,
    },
    /// There is no build of this program for the guest's architecture.
    NoProgram {
        /// The guest's architecture.
        arch: Arch,
        /// The target to build it for.
        target: &'static str,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// A program cannot run in the guest.
    BadProgram {
        /// The program's file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file tree cannot be the guest's root.
    BadRoot {
        /// The folder or archive.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A host tool failed or is missing.
    Tool {
        /// The command line.
        command: String,
        /// The error and what to do.
        why: String,
    },
    /// A host file could not be read or written.
    Host {
        /// The operation.
        doing: String,
        /// The error.
        source: io::Error,
    },
    /// It sends more than is taken, or it cannot be written here.
    Intake(IntakeError),
    /// The command's standard output could not be written.
    Output(io::Error),
    /// A signal of this name asked this process to stop, and the command had not started or did not stop.
    Stopped(&'static str),
    /// The kernel panicked.
    Panic {
        /// The panic's first line.
        what: String,
        /// The relevant console lines.
        console: String,
    },
    /// The guest did not report that it is up.
    NeverStarted {
        /// The time limit.
        after: Duration,
        /// The relevant console lines.
        console: String,
    },
    /// The command did not end in time.
    Timeout {
        /// The time limit.
        after: Duration,
        /// The relevant console lines.
        console: String,
    },
    /// The guest's start-up failed: a module, the frame port, or starting the command.
    Guest {
        /// The guest's message.
        said: String,
        /// The relevant console lines.
        console: String,
    },
    /// The kernel runs but has no Binder driver.
    NoBinder {
        /// What the guest looked for.
        said: String,
        /// The kernel's release.
        release: String,
    },
    /// The guest went down without a message. The relevant console lines.
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

/// Console lines, indented below the message.
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

impl From<IntakeError> for VmError {
    fn from(error: IntakeError) -> Self {
        Self::Intake(error)
    }
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoQemu { program, remedy } => write!(f, "no {program} in PATH; {remedy}"),
            Self::Qemu(said) => write!(f, "QEMU ended before the guest did: {said}"),
            Self::Kvm(said) => {
                write!(f, "KVM gave up: {said}; run it again with --accel tcg")
            }
            Self::BadKernel { given, why } => write!(f, "'{given}' is not a bootable kernel: {why}"),
            Self::NoKernel { wanted, tried } => {
                write!(f, "no kernel for {wanted}; tried:")?;
                tried.iter().try_for_each(|attempt| write!(f, "\n  - {attempt}"))?;
                f.write_str("\ngive one with vm --kernel FILE or run --vm=FILE (a bzImage or Debian's .deb)")
            }
            Self::NoProgram { arch, target, looked } => {
                write!(f, "no binderperf for {arch}; looked for:")?;
                looked.iter().try_for_each(|path| write!(f, "\n  - {}", path.display()))?;
                write!(
                    f,
                    "\n`make release` builds it, as does `rustup target add {target}; cargo build --release --target \
                     {target}`; or put it there, or name it with --binary FILE"
                )
            }
            Self::BadProgram { path, why } => write!(f, "{} cannot run in a guest: {why}", path.display()),
            Self::BadRoot { path, why } => write!(f, "{} cannot be a guest's root: {why}", path.display()),
            Self::Tool { command, why } => write!(f, "{command}: {why}"),
            Self::Host { doing, source } => write!(f, "{doing}: {}", sys::errno::describe(source)),
            Self::Intake(error) => error.fmt(f),
            Self::Output(source) => {
                write!(f, "passing on the command's standard output: {}", sys::errno::describe(source))
            }
            Self::Stopped(signal) => write!(f, "stopped by {signal}; the guest was ended"),
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
            Self::Lost(console) => {
                write!(f, "the guest went down before the command ended{}", Excerpt(console))
            }
        }
    }
}

impl std::error::Error for VmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Host { source, .. } | Self::Output(source) => Some(source),
            _ => None,
        }
    }
}
