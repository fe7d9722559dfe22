//! One boot as seen from the host: receives frames, enforces time limits, classifies the end.
//! Not here: what is booted (`lib`), QEMU's arguments (`qemu`).

use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use intake::{Arrivals, Limits, Placing};
use profile::Profile;
use record::HostClass;
use sys::patience::is_over;

use super::accel::blames_kvm;
use super::console::{Console, Log};
use super::error::{STRAY_BREAKPOINT, VmError};
use super::frame::{self, Frame, Status};
use super::profiler::{self, Profiler};
use super::qemu::{Machine, Qemu, pieces};
use super::time_limit::TimeLimit;

/// Longest time between QEMU's start and the guest's first frame. An emulated boot on a busy machine took 30 s.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
/// Same limit under KVM, which boots in seconds or, with `kvm_pvm`, hangs forever.
const KVM_BOOT_LIMIT: Duration = Duration::from_secs(30);

/// Time for a command that was asked to stop to end and return its files.
const GRACE: Duration = Duration::from_secs(20);
/// Poll interval for signals.
const GLANCE: Duration = Duration::from_millis(100);

/// Frames that may wait for this process, which may wait for the reader of its output.
const AHEAD: usize = 64;

/// Destinations of the guest's output.
pub struct Sinks<'a> {
    /// The command's standard output.
    pub stdout: &'a mut dyn Write,
    /// The command's standard error.
    pub stderr: &'a mut dyn Write,
    /// The place for each file that the command leaves; `None`: they are discarded.
    pub place: Option<Placing<'a>>,
    /// Progress messages ("booting ..."); an empty one when the command starts.
    pub progress: &'a mut dyn FnMut(&str),
}

/// Parameters of a boot besides the machine.
#[derive(Debug)]
pub(super) struct Boot<'a> {
    pub(super) program: &'a PathBuf,
    pub(super) initramfs: &'a std::fs::File,
    pub(super) klog: Option<&'a Path>,
    pub(super) limit: TimeLimit,
    /// Whether to log the instructions of announced cases.
    pub(super) profile: bool,
}

/// Result of a completed command.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) status: Status,
    pub(super) release: String,
    pub(super) boot: Duration,
    pub(super) files: Vec<PathBuf>,
    pub(super) refused: Vec<String>,
    /// The profile of each case, or why there is none.
    pub(super) profiles: Vec<Result<Profile, String>>,
}

/// The end of an attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    /// The command ran to its end.
    Ran(Report),
    /// KVM failed before the command started; emulation may work.
    KvmBroke(String),
    /// An emulator fault stopped the kernel before the command started; another boot will probably work.
    EmulatorSlipped(VmError),
}

/// Messages of the reader threads.
enum Event {
    Frame(Frame),
    QemuError(String),
    Garbled(io::Error),
    Closed,
}

/// Boots the machine and receives its output until the end.
///
/// # Errors
/// Every way in which a guest can fail to run a command; QEMU has been killed in each case.
pub(super) fn run(machine: &Machine, boot: &Boot<'_>, sinks: &mut Sinks<'_>) -> Result<Attempt, VmError> {
    let console = Console::create(boot.klog)?;
    let start = Instant::now();
    let files = boot.profile.then(profiler::Files::create).transpose();
    let files = files.map_err(VmError::host("making files for the profiler"))?;
    let more = files.as_ref().map(profiler::Files::arguments).unwrap_or_default();
    let mut qemu = Qemu::start(boot.program, machine, boot.initramfs, console.file(), &more)?;
    let profiler = files.map(Profiler::start).transpose().map_err(VmError::host("starting the profiler"))?;
    let events = listen(&mut qemu).map_err(VmError::host("starting a thread"))?;
    let mut session = Session {
        machine,
        console: &console,
        start,
        since: start,
        limit: boot.limit,
        started: None,
        orders: qemu.orders.take(),
        stopping: None,
        complaints: String::new(),
        returned: Arrivals::new(Limits::USUAL),
        printed: 0,
    };
    let result = session.attend(&events, sinks);
    // First of all: QEMU must not keep running.
    qemu.kill();
    let attempt = result.and_then(|end| session.conclude(end, &events));
    let kept = console.keep(boot.klog);
    let mut attempt = attempt?;
    kept?;
    if let (Attempt::Ran(report), Some(profiler)) = (&mut attempt, profiler) {
        report.profiles = profiler.finish();
    }
    Ok(attempt)
}

fn boot_limit(class: HostClass) -> Duration {
    if class == HostClass::Kvm { KVM_BOOT_LIMIT } else { BOOT_LIMIT }
}

/// Starts a reader thread per stream; each ends when QEMU closes its side.
fn listen(qemu: &mut Qemu) -> io::Result<Receiver<Event>> {
    let (sender, receiver) = sync_channel(AHEAD);
    if let Some(frames) = qemu.frames.take() {
        let sender = sender.clone();
        sys::title::thread("guest frames", move || read_frames(BufReader::new(frames), &sender))?;
    }
    if let Some(complaints) = qemu.complaints.take() {
        // Sending fails only if the receiver needs no more.
        let read = move || pieces(complaints, |text| drop(sender.send(Event::QemuError(text))));
        sys::title::thread("QEMU's errors", read)?;
    }
    Ok(receiver)
}

fn read_frames(mut source: impl io::Read, sender: &SyncSender<Event>) {
    loop {
        let event = match Frame::read(&mut source) {
            Ok(Some(frame)) => Event::Frame(frame),
            Ok(None) => Event::Closed,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Event::Closed,
            Err(error) => Event::Garbled(error),
        };
        let last = !matches!(event, Event::Frame(_));
        if sender.send(event).is_err() || last {
            return;
        }
    }
}

/// How receiving ended, other than with an error.
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
    /// The moment from which the limit counts: the start of QEMU, then that of the command.
    since: Instant,
    limit: TimeLimit,
    started: Option<(String, Duration)>,
    orders: Option<ChildStdin>,
    /// The signal that asked this process to stop, and when.
    stopping: Option<(&'static str, Instant)>,
    complaints: String,
    returned: Arrivals,
    /// Bytes of output so far.
    printed: u64,
}

impl Session<'_> {
    /// Receives messages until the end.
    fn attend(&mut self, events: &Receiver<Event>, sinks: &mut Sinks<'_>) -> Result<End, VmError> {
        loop {
            self.pass_on_a_stop()?;
            // However much the guest has to say.
            if self.is_out_of_time() {
                return Ok(End::OutOfTime);
            }
            match events.recv_timeout(GLANCE) {
                Ok(Event::Frame(frame)) => {
                    if let Some(end) = self.take(frame, sinks)? {
                        return Ok(end);
                    }
                }
                Ok(Event::QemuError(text)) => {
                    self.complaints.push_str(&text);
                    if self.machine.class == HostClass::Kvm && blames_kvm(&self.complaints) {
                        return Ok(End::KvmBroke);
                    }
                }
                Ok(Event::Garbled(error)) => {
                    let said = format!("its channel carried something else than frames ({error})");
                    return Err(VmError::Guest { said, console: self.console.log().excerpt() });
                }
                Ok(Event::Closed) | Err(RecvTimeoutError::Disconnected) => return Ok(End::Closed),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Whether the boot, the command or its orderly end takes too long.
    fn is_out_of_time(&self) -> bool {
        // Who asked for the end counts seconds of wall time, however busy the machine is.
        self.stopping.is_some_and(|(_, asked)| asked.elapsed() >= GRACE)
            || self.limit.is_over(self.since)
            || self.started.is_none() && is_over(self.since, boot_limit(self.machine.class))
    }

    /// Forwards a stop signal to the command, so that its results come back.
    fn pass_on_a_stop(&mut self) -> Result<(), VmError> {
        let (None, Some(signal)) = (self.stopping, sys::stop_signal::received()) else { return Ok(()) };
        self.stopping = Some((signal, Instant::now()));
        let told = match &mut self.orders {
            Some(orders) if self.started.is_some() => orders.write_all(b"stop").is_ok(),
            _ => false,
        };
        if told { Ok(()) } else { Err(VmError::Stopped(signal)) }
    }

    fn count(&mut self, output: &[u8]) -> Result<(), VmError> {
        self.printed += output.len() as u64;
        Ok(Limits::USUAL.check_output(self.printed)?)
    }

    /// Handles one frame.
    fn take(&mut self, frame: Frame, sinks: &mut Sinks<'_>) -> Result<Option<End>, VmError> {
        match frame {
            Frame::Stdout(bytes) => {
                self.count(&bytes)?;
                let written = sinks.stdout.write_all(&bytes).and_then(|()| sinks.stdout.flush());
                written.map_err(VmError::Output)?;
            }
            Frame::Stderr(bytes) => {
                self.count(&bytes)?;
                let written = sinks.stderr.write_all(&bytes).and_then(|()| sinks.stderr.flush());
                written.map_err(VmError::host("passing on the command's standard error"))?;
            }
            Frame::Content(bytes) => self.returned.append(&bytes)?,
            Frame::Event(event) => {
                // Any event is the end of the file before it.
                self.returned.end()?;
                return self.heed(event, sinks);
            }
        }
        Ok(None)
    }

    /// Handles what happens in the guest.
    fn heed(&mut self, event: frame::Event, sinks: &mut Sinks<'_>) -> Result<Option<End>, VmError> {
        match event {
            frame::Event::Hello { release } => {
                self.started = Some((release, self.start.elapsed()));
                self.since = Instant::now();
                (sinks.progress)("");
            }
            frame::Event::File { path, mode } => {
                if let Some(place) = &mut sinks.place {
                    self.returned.begin(&path, mode, None, *place)?;
                }
            }
            frame::Event::NoBinder { said, release } => return Err(VmError::NoBinder { said, release }),
            frame::Event::Failed(said) => {
                return Err(VmError::Guest { said, console: self.console.log().excerpt() });
            }
            frame::Event::Done(status) => return Ok(Some(End::Done(status))),
        }
        Ok(None)
    }

    /// Classifies the end. QEMU is gone, so its remaining output can be read.
    fn conclude(mut self, end: End, events: &Receiver<Event>) -> Result<Attempt, VmError> {
        if matches!(end, End::Closed | End::KvmBroke) {
            self.complaints.extend(events.iter().filter_map(|last| match last {
                Event::QemuError(text) => Some(text),
                _ => None,
            }));
        }
        let log = self.console.log();
        let console = log.excerpt();
        let complaints = self.complaints.trim().to_owned();
        let kvm = self.machine.class == HostClass::Kvm && blames_kvm(&complaints);
        let (files, refused) = self.returned.into_parts();
        match (end, self.started) {
            (End::Done(status), Some((release, boot))) => {
                Ok(Attempt::Ran(Report { status, release, boot, files, refused, profiles: Vec::new() }))
            }
            (End::Done(_), None) => Err(VmError::Guest { said: "it ended before it began".into(), console }),
            (End::KvmBroke | End::Closed, None) if kvm => Ok(Attempt::KvmBroke(complaints)),
            (End::KvmBroke | End::Closed, Some(_)) if kvm => Err(VmError::Kvm(complaints)),
            (End::OutOfTime, _) if let Some((signal, _)) = self.stopping => Err(VmError::Stopped(signal)),
            (End::OutOfTime, Some(_)) => Err(VmError::Timeout { after: self.since.elapsed(), console }),
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

/// The error for a guest that went down without a last frame.
fn down(started: bool, complaints: String, log: &Log) -> VmError {
    let console = log.excerpt();
    if let Some(mut what) = log.panic() {
        if log.stray_breakpoint() {
            what.push_str(&format!(
                "; {STRAY_BREAKPOINT}: a fault of QEMU's emulation of several CPUs, so run it again"
            ));
        }
        return VmError::Panic { what, console };
    }
    match log.guest_words() {
        Some(said) => VmError::Guest { said, console },
        None if !complaints.is_empty() && !started => VmError::Qemu(complaints),
        None => VmError::Lost(console),
    }
}
