//! Recording by Perfetto's own recorder while a command runs: for users without rights on tracefs, such as `shell` on a phone.
//! Not here: its configuration (`crate::perfetto`), recording from tracefs (`super::record`).
//! Facts: `perfetto --help`: it ends a recording at SIGTERM; `--notify-fd` writes one byte, zero if all sources of data were started.
//! `trigger_perfetto NAME` sends a trigger. On Android it may write to [`PHONE_FOLDER`] only.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sys::draft::Draft;
use sys::private_folder::PrivateFolder;

use super::Observer;
use super::work::{Ended, Work};
use crate::perfetto::{PerfettoConfig, TRIGGER};
use crate::tracefs::{PLACES, TraceError};

/// The recorder.
const PROGRAM: &str = "perfetto";
/// Folder of a phone that `perfetto` may write to.
const PHONE_FOLDER: &str = "/data/misc/perfetto-traces";
/// How long it may take to start the sources of data, and to end: their own limits, and some more.
const START: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(60);
/// How long one that cannot tell when it has started is waited for.
const BLIND_START: Duration = Duration::from_secs(2);
/// Poll interval.
const STEP: Duration = Duration::from_millis(20);
/// Most of its messages that are kept, in bytes.
const LONGEST: u64 = 64 << 10;

/// Options of a recording by Perfetto.
#[derive(Debug)]
pub struct PerfettoPlan<'p> {
    /// The events. [`PerfettoConfig::until_miss`] keeps the recording only if the command missed a deadline: a latency test said so, or
    /// the command ended with 1.
    pub config: PerfettoConfig<'p>,
    /// The output file.
    pub output: &'p Path,
    /// The command or time to record.
    pub work: &'p Work,
}

/// Result of a recording.
#[derive(Clone, Copy, Debug)]
pub struct PerfettoSummary {
    /// How the command or time ended.
    pub ended: Ended,
    /// Whether a test stopped the recording at a miss.
    pub missed: bool,
    /// Size of the file in bytes; `None` if there is none, because nothing was missed.
    pub bytes: Option<u64>,
}

/// Records. SIGINT and SIGTERM end the recording and keep its events.
///
/// # Errors
/// [`TraceError::Recorder`]: there is no `perfetto`, its service does not run, or it refuses. [`TraceError::Usage`]: no such command.
/// [`TraceError::Output`]: the file could not be written.
pub fn record(plan: &PerfettoPlan<'_>, observer: &mut dyn Observer) -> Result<PerfettoSummary, TraceError> {
    sys::stop_signal::catch().map_err(TraceError::refused("catching signals"))?;
    let draft = Draft::new(plan.output).map_err(TraceError::output(plan.output))?;
    let scratch = Scratch::new(plan.output)?;
    let written = scratch.recording(Path::new(PHONE_FOLDER));
    // Without the program that sends it a trigger would never come.
    let by_trigger = plan.config.until_miss && in_path("trigger_perfetto");
    let config = PerfettoConfig { until_miss: by_trigger, ..plan.config.clone() };
    let mut recorder = Recorder::start(&config.text(), &written)?;
    observer.begins(&recorder.wait_until_on()?);
    let log = std::path::absolute(plan.output).map_err(TraceError::output(plan.output))?;
    let start = Instant::now();
    let mut running = plan.work.start(&scratch.folder, None, &log)?;
    let mut missed = false;
    let ended = loop {
        // A terminal's Ctrl-C ends it, too.
        let stop = sys::stop_signal::received().is_some();
        if recorder.has_ended()? && !missed && !stop {
            return Err(recorder.failed("it ended before the command did"));
        }
        if !missed && scratch.is_off() {
            missed = true;
            recorder.stop(by_trigger)?;
        }
        match running.step(stop).map_err(TraceError::refused("waiting for the command"))? {
            Some(ended) => break ended,
            None => observer.advanced(start.elapsed(), fs::metadata(&written).map_or(0, |file| file.len())),
        }
    };
    let failed = matches!(ended, Ended::Command(status) if status.code() == Some(1));
    // The test may have missed in the last moment.
    missed |= scratch.is_off() || plan.config.until_miss && failed;
    let keeps = missed || !plan.config.until_miss;
    recorder.stop(by_trigger && missed)?;
    recorder.wait_for_end(keeps)?;
    let bytes =
        if keeps { Some(keep(&written, draft).map_err(TraceError::output(plan.output))?) } else { None };
    Ok(PerfettoSummary { ended, missed, bytes })
}

/// Asks the recorder what it can record, which says whether it can be used at all.
///
/// # Errors
/// There is no `perfetto`, or its service does not answer: a message.
pub fn usable() -> Result<(), String> {
    let asked = Command::new(PROGRAM).arg("--query").stdin(Stdio::null()).stdout(Stdio::null()).output();
    let asked = asked.map_err(|error| absent(error).to_string())?;
    if asked.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&asked.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!("perfetto --query failed ({}): {}", asked.status, last.trim()))
}

/// Whether a program of this name is in `PATH`.
fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// A folder that the command takes for tracefs: with a switch that it turns off at a miss, and the machine's marker.
struct Scratch {
    /// Goes with this value.
    _own: PrivateFolder,
    folder: PathBuf,
    name: OsString,
}

impl Scratch {
    /// Makes it beside the output.
    fn new(output: &Path) -> Result<Self, TraceError> {
        let beside = std::path::absolute(output).map_err(TraceError::output(output))?;
        let beside = beside.parent().unwrap_or(Path::new("/"));
        let own = PrivateFolder::below(beside, "switch").map_err(TraceError::output(output))?;
        let folder = own.path().to_owned();
        // Nobody can foresee this one either, which counts in a folder that others write.
        let name =
            own.named().with_extension("pftrace").file_name().map_or_else(OsString::new, OsStr::to_owned);
        let made = || {
            fs::write(folder.join("tracing_on"), "1\n")?;
            let marker = PLACES.map(|place| Path::new(place).join("trace_marker"));
            if let Some(marker) = marker.iter().find(|marker| marker.exists()) {
                std::os::unix::fs::symlink(marker, folder.join("trace_marker"))?;
            }
            Ok(())
        };
        made().map_err(TraceError::output(output))?;
        Ok(Self { _own: own, folder, name })
    }

    /// Where the recorder writes: in its own folder of a phone, otherwise in this one.
    fn recording(&self, phone: &Path) -> PathBuf {
        let folder = if phone.is_dir() { phone } else { &self.folder };
        folder.join(&self.name)
    }

    /// Whether the switch was turned off.
    fn is_off(&self) -> bool {
        fs::read(self.folder.join("tracing_on")).is_ok_and(|state| state.first() == Some(&b'0'))
    }
}

/// Copies the recording to the output; returns its size.
fn keep(written: &Path, mut draft: Draft) -> io::Result<u64> {
    let bytes = io::copy(&mut fs::File::open(written)?, &mut draft)?;
    draft.commit().map(|()| bytes)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may have been moved to the output.
        let _ = fs::remove_file(self.recording(Path::new(PHONE_FOLDER)));
    }
}

/// A running `perfetto`.
struct Recorder {
    child: Child,
    /// Its byte about the start.
    started: Receiver<u8>,
    /// Whether it sends one.
    tells: bool,
    said: Option<JoinHandle<String>>,
    stopped: bool,
}

impl Recorder {
    fn start(config: &str, written: &Path) -> Result<Self, TraceError> {
        let help = Command::new(PROGRAM).arg("--help").stdin(Stdio::null()).output().map_err(absent)?;
        let help = [help.stdout, help.stderr].concat();
        let tells = String::from_utf8_lossy(&help).contains("--notify-fd");
        let mut command = Command::new(PROGRAM);
        command.args(["-c", "-", "--txt", "-o"]).arg(written);
        if tells {
            command.args(["--notify-fd", "1"]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::child::die_with_parent(&mut command);
        let mut child = command.spawn().map_err(absent)?;
        if let Some(mut input) = child.stdin.take() {
            // One that ended says why.
            let _ = input.write_all(config.as_bytes());
        }
        let (sender, started) = channel();
        let (mut output, messages) = (child.stdout.take(), child.stderr.take());
        let listen = move || {
            let mut byte = [0];
            if output.as_mut().is_some_and(|output| output.read_exact(&mut byte).is_ok()) {
                let _ = sender.send(byte[0]);
            }
            // It must not meet a closed pipe.
            let _ = output.map(|mut output| io::copy(&mut output, &mut io::sink()));
        };
        let collect = move || {
            let mut said = Vec::new();
            if let Some(mut messages) = messages {
                let _ = (&mut messages).take(LONGEST).read_to_end(&mut said);
                let _ = io::copy(&mut messages, &mut io::sink());
            }
            String::from_utf8_lossy(&said).into_owned()
        };
        let listening = TraceError::refused("listening to perfetto");
        sys::title::thread("perfetto started", listen).map_err(&listening)?;
        let said = Some(sys::title::thread("perfetto said", collect).map_err(listening)?);
        Ok(Self { child, started, tells, said, stopped: false })
    }

    /// Waits until the sources of data are on; returns notes.
    fn wait_until_on(&mut self) -> Result<Vec<String>, TraceError> {
        let since = Instant::now();
        let patience = if self.tells { START } else { BLIND_START };
        while since.elapsed() < patience && sys::stop_signal::received().is_none() {
            match self.started.recv_timeout(STEP) {
                Ok(0) if self.tells => return Ok(Vec::new()),
                Ok(_) if self.tells => return Err(self.failed("its sources of data did not start")),
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(STEP),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
            if self.has_ended()? {
                return Err(self.failed("it ended at once"));
            }
        }
        Ok(vec![format!(
            "perfetto did not tell when its recording is on; waited for {} s",
            since.elapsed().as_secs()
        )])
    }

    fn has_ended(&mut self) -> Result<bool, TraceError> {
        self.child
            .try_wait()
            .map(|status| status.is_some())
            .map_err(TraceError::refused("waiting for perfetto"))
    }

    /// Ends the recording, once.
    fn stop(&mut self, by_trigger: bool) -> Result<(), TraceError> {
        if std::mem::replace(&mut self.stopped, true) {
            return Ok(());
        }
        if !by_trigger {
            return sys::child::ask_to_end(&mut self.child).map_err(TraceError::refused("ending perfetto"));
        }
        let sent = Command::new("trigger_perfetto").arg(TRIGGER).stdin(Stdio::null()).output();
        let sent = sent.map_err(TraceError::refused("running trigger_perfetto"))?;
        if sent.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&sent.stderr).trim().to_owned();
        Err(TraceError::Recorder(format!("trigger_perfetto {TRIGGER} failed ({}): {why}", sent.status)))
    }

    /// Waits until it has written its file.
    fn wait_for_end(&mut self, keeps: bool) -> Result<(), TraceError> {
        let since = Instant::now();
        while !self.has_ended()? {
            if since.elapsed() > END {
                return Err(self.failed("it did not end"));
            }
            std::thread::sleep(STEP);
        }
        let status = self.child.wait().map_err(TraceError::refused("waiting for perfetto"))?;
        if status.success() || !keeps {
            Ok(())
        } else {
            Err(self.failed("it could not finish the recording"))
        }
    }

    /// The error with its last messages; ends it.
    fn failed(&mut self, what: &str) -> TraceError {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        TraceError::Recorder(failure(what, &said))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why there is no recorder.
fn absent(error: io::Error) -> TraceError {
    let why = match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no program perfetto; it is part of Android since 10, and of Debian and Ubuntu as the package perfetto. \
             Without it, as root: --via tracefs"
                .to_owned()
        }
        _ => format!("starting perfetto: {}", sys::errno::describe(&error)),
    };
    TraceError::Recorder(why)
}

/// The error, from the recorder's messages.
fn failure(what: &str, said: &str) -> String {
    let lower = said.to_lowercase();
    if lower.contains("connect to") && lower.contains("traced") {
        return "perfetto does not reach its service: start traced and traced_probes first, as root (Debian: systemctl start \
                traced traced-probes)"
            .to_owned();
    }
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    if last.is_empty() {
        format!("perfetto failed: {what}")
    } else {
        format!("perfetto failed: {what}: {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Folder;

    #[test]
    fn a_command_finds_a_switch_and_the_recording_goes_where_it_may() {
        let folder = Folder::new("via-perfetto", &[]);
        let output = folder.join("out.pftrace");
        let scratch = Scratch::new(&output).expect("a folder");
        let place = scratch.folder.clone();
        assert!(place.starts_with(&*folder) && !scratch.is_off());
        let switch = crate::switch::Switch::open(&place).expect("a switch");
        assert!(switch.is_on().expect("readable") && switch.off() && scratch.is_off());
        assert!(scratch.recording(Path::new("/no/such/folder")).starts_with(&place));
        assert!(
            scratch.recording(&folder).starts_with(&*folder)
                && !scratch.recording(&folder).starts_with(&place)
        );
        let written = scratch.recording(&folder);
        std::fs::write(&written, "events").expect("written");
        std::fs::write(&output, "older").expect("written");
        let draft = Draft::new(&output).expect("begun");
        assert_eq!(std::fs::read(&output).expect("there"), b"older");
        assert_eq!(keep(&written, draft).expect("copied"), 6);
        assert_eq!(std::fs::read(&output).expect("there"), b"events");
        drop(scratch);
        assert!(!place.exists());
        assert!(matches!(Scratch::new(Path::new("/no/such/folder/x")), Err(TraceError::Output { .. })));
    }

    #[test]
    fn messages_of_the_recorder_become_advice() {
        for said in [
            "[1.2] perfetto_cmd.cc:1184 Could not connect to the traced socket /tmp/perfetto-consumer. Ensure traced is running",
            "Failed to connect to the traced service",
        ] {
            assert!(failure("it ended at once", said).contains("start traced and traced_probes"), "{said}");
        }
        let said = "one\n\ntwo\nthree\nfour\n";
        assert_eq!(failure("it ended at once", said), "perfetto failed: it ended at once: two; three; four");
        assert_eq!(failure("it did not end", ""), "perfetto failed: it did not end");
    }
}
