//! Room: one boot seen from the host: frames taken in, time watched, an end told from another.
//! Not here: what is booted (`mod`), QEMU's arguments (`qemu`).

use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::accel::blames_kvm;
use super::console::{Console, Log};
use super::error::VmError;
use super::frame::{Frame, Status, Trouble};
use super::job::HostClass;
use super::qemu::{Machine, Qemu, pieces};
use super::returned::Returned;

/// Longest time between QEMU's start and the guest's first frame. An emulated boot on a busy machine
/// was seen to take 30 s.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
/// The same under KVM, which either boots in seconds or, as was seen on `kvm_pvm`, hangs for ever.
const KVM_BOOT_LIMIT: Duration = Duration::from_secs(30);

/// How long a command that was asked to stop may take to end and to hand its files over.
const GRACE: Duration = Duration::from_secs(20);
/// How often to look whether a signal came.
const GLANCE: Duration = Duration::from_millis(100);

/// Where a guest's output goes while it runs.
pub struct Sinks<'a> {
    /// The command's standard output.
    pub stdout: &'a mut dyn Write,
    /// The command's standard error.
    pub stderr: &'a mut dyn Write,
    /// Short words on what is being done ("booting ..."); an empty one when the command starts and
    /// its output is about to come.
    pub progress: &'a mut dyn FnMut(&str),
}

impl std::fmt::Debug for Sinks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sinks")
    }
}

/// What one boot needs besides the machine.
#[derive(Debug)]
pub(super) struct Boot<'a> {
    pub(super) program: &'a PathBuf,
    pub(super) initramfs: &'a std::fs::File,
    pub(super) klog: Option<&'a Path>,
    pub(super) timeout: Duration,
    pub(super) out: Option<&'a Path>,
}

/// What a boot came to.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) status: Status,
    pub(super) release: String,
    pub(super) boot: Duration,
    pub(super) files: Vec<PathBuf>,
}

/// The end of an attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    /// The command ran to its end.
    Ran(Report),
    /// KVM broke before the command started; emulation may do better.
    KvmBroke(String),
    /// The emulator misled the kernel before the command started; the next boot is likely to do.
    EmulatorSlipped(VmError),
}

/// What the reader threads hear.
enum Heard {
    Frame(Frame),
    Complaint(String),
    Garbled(io::Error),
    Closed,
}

/// Boots the machine and listens until it has said its last word.
///
/// # Errors
/// Every way in which a guest can fail to run a command; QEMU is gone in each of them.
pub(super) fn run(machine: &Machine, boot: &Boot<'_>, sinks: &mut Sinks<'_>) -> Result<Attempt, VmError> {
    let console = Console::create(boot.klog)?;
    let start = Instant::now();
    let mut qemu = Qemu::start(boot.program, machine, boot.initramfs, &console.file)?;
    let heard = listen(&mut qemu);
    let mut session = Session {
        machine,
        console: &console,
        start,
        deadline: start + boot_limit(machine.class).min(boot.timeout),
        limit: boot.timeout,
        started: None,
        orders: qemu.orders.take(),
        stopping: None,
        complaints: String::new(),
        returned: Returned::into_folder(boot.out),
    };
    let result = session.attend(&heard, sinks);
    // Before anything else happens to the result: nothing may leave QEMU running.
    qemu.kill();
    match result {
        Ok(end) => session.conclude(end, &heard),
        Err(error) => Err(error),
    }
}

fn boot_limit(class: HostClass) -> Duration {
    if class == HostClass::Kvm { KVM_BOOT_LIMIT } else { BOOT_LIMIT }
}

/// Starts a thread per stream; each ends when QEMU closes its side.
fn listen(qemu: &mut Qemu) -> Receiver<Heard> {
    let (sender, receiver) = channel();
    if let Some(frames) = qemu.frames.take() {
        let sender = sender.clone();
        std::thread::spawn(move || read_frames(BufReader::new(frames), &sender));
    }
    if let Some(complaints) = qemu.complaints.take() {
        // A receiver that is gone has heard enough.
        std::thread::spawn(move || pieces(complaints, |text| drop(sender.send(Heard::Complaint(text)))));
    }
    receiver
}

fn read_frames(mut source: impl io::Read, sender: &Sender<Heard>) {
    loop {
        let heard = match Frame::read(&mut source) {
            Ok(Some(frame)) => Heard::Frame(frame),
            Ok(None) => Heard::Closed,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Heard::Closed,
            Err(error) => Heard::Garbled(error),
        };
        let last = !matches!(heard, Heard::Frame(_));
        if sender.send(heard).is_err() || last {
            return;
        }
    }
}

/// How listening ended, when not with an error.
enum End {
    Done(Status),
    Closed,
    KvmBroke,
    OutOfTime,
}

struct Session<'a> {
    machine: &'a Machine,
    console: &'a Console,
    start: Instant,
    deadline: Instant,
    limit: Duration,
    started: Option<(String, Duration)>,
    orders: Option<ChildStdin>,
    /// The signal that asked this process to stop.
    stopping: Option<&'static str>,
    complaints: String,
    returned: Returned,
}

impl Session<'_> {
    /// Takes in what is heard until there is an end.
    fn attend(&mut self, heard: &Receiver<Heard>, sinks: &mut Sinks<'_>) -> Result<End, VmError> {
        loop {
            self.pass_on_a_stop()?;
            let left = self.deadline.saturating_duration_since(Instant::now());
            match heard.recv_timeout(left.min(GLANCE)) {
                Ok(Heard::Frame(frame)) => {
                    if let Some(end) = self.take(frame, sinks)? {
                        return Ok(end);
                    }
                }
                Ok(Heard::Complaint(text)) => {
                    self.complaints.push_str(&text);
                    if self.machine.class == HostClass::Kvm && blames_kvm(&self.complaints) {
                        return Ok(End::KvmBroke);
                    }
                }
                Ok(Heard::Garbled(error)) => {
                    let said = format!("its channel carried something else than frames ({error})");
                    return Err(VmError::Guest { said, console: self.console.log().excerpt() });
                }
                Ok(Heard::Closed) | Err(RecvTimeoutError::Disconnected) => return Ok(End::Closed),
                Err(RecvTimeoutError::Timeout) if left > GLANCE => {}
                Err(RecvTimeoutError::Timeout) => return Ok(End::OutOfTime),
            }
        }
    }

    /// Has the command stop if this process was asked to, so that what it measured comes back.
    fn pass_on_a_stop(&mut self) -> Result<(), VmError> {
        let (None, Some(signal)) = (self.stopping, sys::stop_signal::received()) else { return Ok(()) };
        self.stopping = Some(signal);
        self.deadline = self.deadline.min(Instant::now() + GRACE);
        let told = match &mut self.orders {
            Some(orders) if self.started.is_some() => orders.write_all(b"stop").is_ok(),
            _ => false,
        };
        if told { Ok(()) } else { Err(VmError::Stopped { signal }) }
    }

    /// Takes one frame.
    fn take(&mut self, frame: Frame, sinks: &mut Sinks<'_>) -> Result<Option<End>, VmError> {
        match frame {
            Frame::Hello(hello) => {
                self.started = Some((hello.release, self.start.elapsed()));
                self.deadline = Instant::now() + self.limit;
                (sinks.progress)("");
            }
            Frame::Stdout(bytes) => {
                let written = sinks.stdout.write_all(&bytes).and_then(|()| sinks.stdout.flush());
                written.map_err(|source| VmError::Output { source })?;
            }
            Frame::Stderr(bytes) => {
                let written = sinks.stderr.write_all(&bytes).and_then(|()| sinks.stderr.flush());
                written.map_err(VmError::host("passing on the command's standard error"))?;
            }
            Frame::File(head) => self.returned.begin(&head)?,
            Frame::Content(bytes) => self.returned.append(&bytes)?,
            Frame::Trouble(Trouble::NoBinder { said, release }) => {
                return Err(VmError::NoBinder { said, release });
            }
            Frame::Trouble(Trouble::Other(said)) => {
                return Err(VmError::Guest { said, console: self.console.log().excerpt() });
            }
            Frame::Done(status) => return Ok(Some(End::Done(status))),
        }
        Ok(None)
    }

    /// Tells what an end means. QEMU is gone, so what it still had to say is there to be read.
    fn conclude(mut self, end: End, heard: &Receiver<Heard>) -> Result<Attempt, VmError> {
        if matches!(end, End::Closed | End::KvmBroke) {
            self.complaints.extend(heard.iter().filter_map(|last| match last {
                Heard::Complaint(text) => Some(text),
                _ => None,
            }));
        }
        let log = self.console.log();
        let console = log.excerpt();
        let complaints = self.complaints.trim().to_owned();
        let kvm = self.machine.class == HostClass::Kvm && blames_kvm(&complaints);
        match (end, self.started) {
            (End::Done(status), Some((release, boot))) => {
                Ok(Attempt::Ran(Report { status, release, boot, files: self.returned.into_paths() }))
            }
            (End::Done(_), None) => Err(VmError::Guest { said: "it ended before it began".into(), console }),
            (End::KvmBroke | End::Closed, None) if kvm => Ok(Attempt::KvmBroke(complaints)),
            (End::KvmBroke | End::Closed, Some(_)) if kvm => Err(VmError::Kvm { said: complaints }),
            (End::OutOfTime, _) if let Some(signal) = self.stopping => Err(VmError::Stopped { signal }),
            (End::OutOfTime, Some(_)) => Err(VmError::Timeout { after: self.limit, console }),
            (End::OutOfTime, None) if self.machine.class == HostClass::Kvm && console.is_empty() => {
                Ok(Attempt::KvmBroke("the guest never said a word".into()))
            }
            (End::OutOfTime, None) => Err(match log.panic() {
                Some(what) => VmError::Panic { what, console },
                None => VmError::NeverStarted { after: self.start.elapsed(), console },
            }),
            (End::Closed, None) if self.machine.class == HostClass::Tcg && log.stray_breakpoint() => {
                Ok(Attempt::EmulatorSlipped(down(false, complaints, &log)))
            }
            (End::KvmBroke | End::Closed, started) => Err(down(started.is_some(), complaints, &log)),
        }
    }
}

/// Why a machine went down without a last frame.
fn down(started: bool, complaints: String, log: &Log) -> VmError {
    let console = log.excerpt();
    if let Some(mut what) = log.panic() {
        if log.stray_breakpoint() {
            what.push_str(
                "; a stray breakpoint: a fault of QEMU's emulation of several CPUs, so run it again",
            );
        }
        return VmError::Panic { what, console };
    }
    match log.guest_words() {
        Some(said) => VmError::Guest { said, console },
        None if !complaints.is_empty() && !started => VmError::Qemu { said: complaints },
        None => VmError::Lost { console },
    }
}
