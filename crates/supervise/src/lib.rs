//! Programs on the embedded driver, unmodified: statically linked ones and those that make system calls themselves,
//! too. A program is started under a seccomp filter; what it asks of `/dev/binder` and its like is answered here, and
//! so for all its descendants. Everything else goes on in the kernel.
//!
//! - [`rules`]: the system calls that ask. [`receiver`]: the thread that receives them. [`worker`]: threads that
//!   answer. [`answer`]: the answers; [`paths`]: those to
//!   calls with a path; [`ioctl`]: to ioctls. [`device`]: an open device; [`registry`]: all of them; [`path_only`]: those
//!   that may only be looked at. [`calls`]: what the driver needs of a program.
//!   [`procfs`]: facts about processes. [`program`]: which programs could have a library preloaded.
//!
//! Signals: the filter does not ask for `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`. With it, no handler would run while a
//! thread reads, and a read may last for ever. Without it the kernel takes the thread out of its call, as the driver
//! does (contract WR-06), and tells nobody: so each call is checked before work is taken for it, and calls left behind
//! are swept.
//!
//! Not here: preloading a library (another way to the same end, for dynamic programs), the driver (`embedded`).
#![forbid(unsafe_code)]

mod answer;
mod calls;
mod device;
mod ioctl;
mod path_only;
mod paths;
mod procfs;
pub mod program;
mod receiver;
mod registry;
mod rules;
mod worker;

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use embedded::device_path::Paths;
use embedded::{EmbeddedContext, Settings};
use sys::interrupt::Interrupter;
use sys::other_process::OtherProcess;

use answer::Supervisor;
use calls::{Calls, IsDevice};
use path_only::PathOnly;
use receiver::Receiver;
use registry::Registry;
use worker::Workers;

/// Receiver of what a supervisor has to say, one line at a time.
pub type Report = fn(&str);

/// The driver that programs get.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the broker.
    pub directory: PathBuf,
    /// The driver's options.
    pub settings: Settings,
    /// Paths that are devices, too: `PATH=NAME`, with a colon between two.
    pub rules: String,
    /// Receives reports.
    pub report: Report,
}

impl Options {
    /// The usual options in a directory; `None`: the user's own.
    #[must_use]
    pub fn new(directory: Option<PathBuf>, report: Report) -> Self {
        let settings = Settings::default();
        let directory =
            directory.unwrap_or_else(|| EmbeddedContext::named("binder", settings).directory().to_owned());
        Self { directory, settings, rules: String::new(), report }
    }
}

/// Error: a program could not be supervised.
#[derive(Debug)]
#[non_exhaustive]
pub enum SuperviseError {
    /// The kernel, or the place this process runs in, cannot do it.
    Unable(String),
    /// The program cannot be run.
    Program {
        /// The program.
        program: PathBuf,
        /// Error of the start.
        source: io::Error,
    },
    /// A system call failed.
    Os(io::Error),
}

impl fmt::Display for SuperviseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unable(why) => f.write_str(why),
            Self::Program { program, source } => {
                write!(f, "cannot run {}: {}", program.display(), sys::errno::describe(source))
            }
            Self::Os(source) => write!(f, "supervising failed: {}", sys::errno::describe(source)),
        }
    }
}

impl std::error::Error for SuperviseError {}

impl From<io::Error> for SuperviseError {
    fn from(error: io::Error) -> Self {
        Self::Os(error)
    }
}

/// Number of the listener in the epoll set, of the program, and of the receiver's news.
const LISTENER: u64 = 0;
const PROGRAM: u64 = 1;
const NEWS: u64 = 2;
/// Pause between attempts to end calls of programs that are gone.
const PAUSE: Duration = Duration::from_millis(1);
/// Pause between looks for calls that signals took their threads out of, and for a receiver that is held up.
const TICK: Duration = Duration::from_millis(20);
/// Time for the last calls to end that do not wait for the driver. A file system may hold them up for ever.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// Runs a program and serves it and its descendants until the last of them has ended. Returns the program's status.
/// Call it on a thread that lives as long: the program is killed when that thread ends.
///
/// # Errors
/// See [`SuperviseError`].
pub fn run(mut command: Command, options: Options) -> Result<ExitStatus, SuperviseError> {
    if let Some(why) = sys::seccomp::obstacle() {
        return Err(SuperviseError::Unable(format!("cannot supervise system calls: {why}")));
    }
    let program = PathBuf::from(command.get_program());
    if let Some(why) = found(&program).and_then(|path| raises_rights(&path)) {
        return Err(SuperviseError::Unable(why));
    }
    let interrupter = Interrupter::install_without_restart()?;
    // Each open device needs a few; a failure to raise the limit is not fatal.
    let _ = sys::limits::raise_open_files(u64::MAX);
    sys::child::die_with_parent(&mut command);
    let (child, listener) = sys::seccomp::spawn(command, &rules::rules()).map_err(|source| {
        match source.raw_os_error() {
            Some(sys::errno::EBUSY) => SuperviseError::Unable(
                "cannot supervise system calls: this process is supervised by seccomp notification itself, and the \
                 kernel allows one supervisor"
                    .to_owned(),
            ),
            _ => SuperviseError::Program { program, source },
        }
    })?;
    if let Err(error) = OtherProcess::open(child.id()).and_then(|program| program.descriptor(0))
        && error.raw_os_error() == Some(sys::errno::EPERM)
    {
        end_of(child);
        return Err(SuperviseError::Unable(
            "cannot supervise system calls: this process may not look into its child (pidfd_getfd: EPERM), because of a \
             sandbox, ptrace_scope, or a program that nobody may read; CAP_SYS_PTRACE gives the right"
                .to_owned(),
        ));
    }
    // Another process's paths are looked up from there.
    let directory = std::path::absolute(&options.directory)?;
    let paths = Paths::new(&directory, &options.rules).map_err(SuperviseError::Unable)?;
    let registry = Arc::new(Registry::new()?);
    // The devices in the registry know their calls.
    let devices = Arc::downgrade(&registry);
    let is_device = IsDevice(Box::new(move |fd| devices.upgrade().is_some_and(|all| all.find(fd).is_some())));
    let supervisor = Arc::new(Supervisor {
        calls: Arc::new(Calls::new(listener, is_device)),
        registry,
        path_only: PathOnly::default(),
        paths,
        directory,
        settings: options.settings,
        report: options.report,
    });
    serve(child, &supervisor, interrupter)
}

/// Ends a program that cannot be served.
fn end_of(mut child: Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

fn serve(
    mut child: Child,
    supervisor: &Arc<Supervisor>,
    interrupter: Interrupter,
) -> Result<ExitStatus, SuperviseError> {
    let workers = Arc::new(Workers::new(supervisor.clone(), interrupter));
    let mut receiver = Receiver::start(supervisor, &workers)?;
    let (epoll, listener) = (supervisor.registry.epoll(), &supervisor.calls.listener);
    epoll.add_for_end(listener.as_fd(), LISTENER)?;
    epoll.add_for_news(receiver.news(), NEWS)?;
    let process = OtherProcess::open(child.id())?;
    epoll.add(process.as_fd(), PROGRAM)?;
    let (mut ready, mut status, mut told, mut ticked) = (Vec::new(), None, false, Instant::now());
    loop {
        let rests = receiver.lets_rest() && !supervisor.registry.any_unsettled();
        match epoll.wait(&mut ready, if rests { -1 } else { TICK.as_millis() as i32 }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => other?,
        }
        if sys::stop_signal::received() == Some("SIGTERM") && !told && status.is_none() {
            told = true;
            sys::child::ask_to_end(&mut child)?;
        }
        for number in &ready {
            match *number {
                // No program is left that could make a call.
                LISTENER => {
                    receiver.end(interrupter);
                    end(supervisor, &workers);
                    return Ok(match status {
                        Some(status) => status,
                        None => child.wait()?,
                    });
                }
                NEWS => {}
                PROGRAM => {
                    // Kernels before 6.11 let the listener hang up only after this.
                    status = child.try_wait()?;
                    epoll.remove(process.as_fd())?;
                }
                other => supervisor.registry.changed(other),
            }
        }
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            receiver = receiver.tick()?;
            workers.sweep();
            supervisor.registry.settle(device::Device::forget_mapping_of_dead);
        }
    }
}

/// Ends what is under way for programs that are gone.
fn end(supervisor: &Supervisor, workers: &Workers) {
    supervisor.registry.clear();
    let (begun, calls) = (Instant::now(), &supervisor.calls);
    while calls.any_waits_here() || calls.any() && begun.elapsed() < LAST_CALLS {
        workers.sweep();
        std::thread::sleep(PAUSE);
    }
}

/// The file that a program's name stands for, as `execvp` finds it.
fn found(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Why a program cannot run as it is meant to: it changes its rights when it starts, which the filter's
/// `no_new_privs` forbids.
fn raises_rights(path: &Path) -> Option<String> {
    // What cannot be looked at fails when it is started.
    let raised = sys::file_rights::are_raised(path).unwrap_or(false);
    raised.then(|| {
        format!(
            "{} gets rights from its file (set-user-ID, set-group-ID or capabilities): a supervised program cannot get \
             other rights than its caller's; run it as a user who has them instead",
            path.display()
        )
    })
}
