//! The guest's first process: set up the machine, run the commands, return their output and files, power off.
//! Not here: the host's side (`session`), the protocol (`frame`, `job`).

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

use super::frame::{Event, Frame, Status};
use host::CLASS_VARIABLE;
use record::HostClass;

use super::job::{GUEST_MARK, JOB_PATH, Job, class_of_guest};
use super::profiler::PORT as PROFILE_PORT;
use outbox::Outbox;

/// The command's working folder; its files are returned to the host.
pub const WORKSHOP: &str = "/out";

/// Whether this process is init of a guest that `binderperf vm` booted. Process 1 of a container lacks the mark and the
/// job, and changes nothing there; process 1 of a nested pid namespace in a guest is not init.
#[must_use]
pub fn is_guest_init() -> bool {
    std::process::id() == 1
        && marked_by_environment()
        && Path::new("/").join(JOB_PATH).exists()
        && (Path::new("/proc/self").exists() || machine::mount_proc().is_ok())
        && marked()
        && in_first_namespace()
}

/// Whether this process is in the initial pid namespace. Fact: `include/linux/proc_ns.h` `PROC_PID_INIT_INO`.
fn in_first_namespace() -> bool {
    // A kernel without namespaces has no such link.
    std::fs::read_link("/proc/self/ns/pid").map_or(true, |link| link == Path::new("pid:[4026531836]"))
}

/// Whether the kernel gave process 1 the mark, which can be told before `/proc` is mounted.
fn marked_by_environment() -> bool {
    GUEST_MARK.split_once('=').is_some_and(|(name, value)| std::env::var(name).as_deref() == Ok(value))
}

/// Whether `binderperf vm` booted the kernel.
fn marked() -> bool {
    std::fs::read_to_string("/proc/cmdline")
        .is_ok_and(|line| line.split_whitespace().any(|w| w == GUEST_MARK))
}

/// Runs the guest. Never returns: process 1 must not exit.
pub fn main() -> ! {
    sys::title::name_thread("guest");
    match serve() {
        Ok(never) => match never {},
        // Without the port only the console is left, which the host reads too.
        Err(why) => eprintln!("binderperf guest: {why}"),
    }
    end()
}

/// The whole life of the guest. The error goes to the console; all others went to the host.
fn serve() -> Result<Infallible, String> {
    machine::mount_all()?;
    machine::take_name();
    let text =
        std::fs::read(Path::new("/").join(JOB_PATH)).map_err(|error| format!("reading the job: {error}"))?;
    let mut job: Job = serde_json::from_slice(&text).map_err(|error| format!("reading the job: {error}"))?;
    let loaded = machine::load_modules(&job.modules);
    let outbox = Outbox::of(&job).map_err(|why| match &loaded {
        Ok(()) => why,
        Err(module) => format!("{why} ({module})"),
    })?;
    let outcome = loaded.map_err(Event::Failed).and_then(|()| work(&mut job, &outbox));
    let last = outcome.map_or_else(|failure| failure, Event::Done);
    outbox.send(&Frame::Event(last)).map_err(|error| format!("telling the host how it ended: {error}"))?;
    if job.console {
        end();
    }
    // The host kills QEMU once it has read the last frame, which is faster than powering off.
    std::thread::sleep(Duration::from_secs(20));
    end()
}

/// Everything between opening the port and the last frame. The error is that frame.
fn work(job: &mut Job, outbox: &Outbox) -> Result<Status, Event> {
    let release = machine::release();
    binder::bring_up().map_err(|said| Event::NoBinder { said, release: release.clone() })?;
    if job.network {
        machine::bring_up_network().map_err(Event::Failed)?;
    }
    let cmdline = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let class = class_of_guest(&cmdline);
    if let Some(class) = class {
        job.env.insert(CLASS_VARIABLE.into(), class.name().into());
    }
    if class == Some(HostClass::Icount) {
        counting::take_one_way().map_err(Event::Failed)?;
    }
    if let Some(port) = outbox::find_port(PROFILE_PORT) {
        job.env.insert(profile::PORT_VARIABLE.into(), port.display().to_string());
    }
    machine::settle(Duration::from_millis(job.settle_ms));
    let other = |error: std::io::Error| Event::Failed(sys::errno::describe(&error));
    std::fs::create_dir_all(WORKSHOP).map_err(other)?;
    outbox.send(&Frame::Event(Event::Hello { release })).map_err(other)?;
    let status = command::run(job, Path::new(WORKSHOP), outbox).map_err(Event::Failed)?;
    if job.files {
        files::send_all(Path::new(WORKSHOP), outbox)
            .map_err(|error| Event::Failed(format!("sending the files back: {error}")))?;
    }
    Ok(status)
}

/// Powers off, or waits for the host to kill QEMU.
fn end() -> ! {
    if let Err(error) = sys::pid_one::power_off() {
        eprintln!("binderperf guest: powering off: {error}");
    }
    loop {
        std::thread::park();
    }
}
