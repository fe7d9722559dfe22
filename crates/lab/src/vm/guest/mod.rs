//! Room: the life of a guest's first process: set the machine up, run one command, hand back what
//! it said and left, power off.
//! Not here: the host's side (`session`); the words between the two (`frame`, `job`).

mod binder;
mod command;
mod counting;
mod files;
mod machine;
mod outbox;
pub mod probe;

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use super::frame::{Frame, Hello, Trouble};
use super::job::{CLASS_VARIABLE, GUEST_MARK, HostClass, JOB_PATH, Job};
use outbox::Outbox;

/// The command's working folder; what it leaves there goes back to the host.
const WORKSHOP: &str = "/out";

/// Whether this process is the first one of a guest that `binderperf vm` booted. In a container,
/// where process 1 is nothing special, the kernel's command line lacks the mark; process 1 of a
/// namespace inside a guest is another one than the guest's.
#[must_use]
pub fn is_guest_init() -> bool {
    std::process::id() == 1
        && (Path::new("/proc/self").exists() || machine::mount_proc().is_ok())
        && marked()
        && in_first_namespace()
}

/// Whether this process lives in the pid namespace that the kernel was booted with. Fact:
/// `include/linux/proc_ns.h` `PROC_PID_INIT_INO`.
fn in_first_namespace() -> bool {
    // A kernel without namespaces has no such link, and everybody lives in the one there is.
    std::fs::read_link("/proc/self/ns/pid").map_or(true, |link| link == Path::new("pid:[4026531836]"))
}

/// Whether the kernel was booted by `binderperf vm`.
fn marked() -> bool {
    std::fs::read_to_string("/proc/cmdline")
        .is_ok_and(|line| line.split_whitespace().any(|w| w == GUEST_MARK))
}

/// Runs the guest to its end. Never returns: process 1 must not.
pub fn main() -> ! {
    match serve() {
        Ok(never) => match never {},
        // Without a channel only the console is left to say it on; the host reads that too.
        Err(why) => eprintln!("binderperf guest: {why}"),
    }
    end()
}

/// The whole life as one list of calls. The error is for the console: all others went to the host.
fn serve() -> Result<Infallible, String> {
    machine::mount_all()?;
    machine::take_name();
    let text =
        std::fs::read(Path::new("/").join(JOB_PATH)).map_err(|error| format!("reading the job: {error}"))?;
    let mut job: Job = serde_json::from_slice(&text).map_err(|error| format!("reading the job: {error}"))?;
    let loaded = machine::load_modules(&job.modules);
    let outbox = Outbox::open().map_err(|why| match &loaded {
        Ok(()) => why,
        Err(module) => format!("{why} ({module})"),
    })?;
    let outcome = loaded.map_err(Trouble::Other).and_then(|()| work(&mut job, &outbox));
    let last = match outcome {
        Ok(status) => Frame::Done(status),
        Err(trouble) => Frame::Trouble(trouble),
    };
    outbox.send(&last).map_err(|error| format!("telling the host how it ended: {error}"))?;
    // The host ends the guest as soon as it has read the last frame, which is faster than going down.
    std::thread::sleep(Duration::from_secs(20));
    end()
}

/// Everything between a working channel and the last frame.
fn work(job: &mut Job, outbox: &Outbox) -> Result<super::frame::Status, Trouble> {
    let release = machine::release();
    binder::bring_up().map_err(|said| Trouble::NoBinder { said, release: release.clone() })?;
    let cmdline = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let class = HostClass::from_cmdline(&cmdline);
    if let Some(class) = class {
        job.env.insert(CLASS_VARIABLE.into(), class.name().into());
    }
    if class == Some(HostClass::Icount) {
        counting::take_one_way().map_err(Trouble::Other)?;
    }
    machine::settle(Duration::from_millis(job.settle_ms));
    let other = |error: std::io::Error| Trouble::Other(sys::errno::describe(&error));
    std::fs::create_dir_all(WORKSHOP).map_err(other)?;
    outbox.send(&Frame::Hello(Hello { release })).map_err(other)?;
    let status = command::run(job, Path::new(WORKSHOP), outbox).map_err(Trouble::Other)?;
    if job.files {
        files::send_all(Path::new(WORKSHOP), outbox)
            .map_err(|error| Trouble::Other(format!("sending the files back: {error}")))?;
    }
    Ok(status)
}

/// Powers off, or waits for the host to do it.
fn end() -> ! {
    if let Err(error) = sys::pid_one::power_off() {
        eprintln!("binderperf guest: powering off: {error}");
    }
    loop {
        std::thread::park();
    }
}
