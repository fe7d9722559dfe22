//! Listens to a counted guest's test and has QEMU log every instruction of its first calls.
//! Not here: what becomes of them (crate `profile`), QEMU's other arguments (`qemu`).
//! Facts: QEMU's monitor commands `log exec,nochain`, and `one-insn-per-tb`, which was `singlestep` before QEMU 8.1; the log
//! is written to the file of `-D`, here a FIFO. QEMU 7.2 opens it when it starts.
//!
//! The FIFO is read all the time, because a QEMU that waits for a reader obeys no monitor.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sys::private_folder::PrivateFolder;

use super::qemu::escaped;
use profile::{Announcement, Capture, Profile, Reader, profile, program_counter};

/// Calls that are logged of each case.
const CALLS: usize = 100;
/// Most instructions that are logged of each case, and kept in memory in 8 B each.
const MOST_INSTRUCTIONS: usize = 60_000_000;
/// Begins the log.
const SPEECH: &str = "singlestep on\none-insn-per-tb on\nlog exec,nochain\n";
/// Ends the log.
const SILENCE: &str = "log none\nsinglestep off\none-insn-per-tb off\n";
/// A line in the FIFO that ends its reader.
const LAST_LINE: &[u8] = b"end of the profile\n";
/// Longest wait for QEMU to make its sockets.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Longest line of an announcement, in bytes.
const LONGEST_LINE: u64 = 1 << 16;
/// Name of the guest's port.
pub(super) const PORT: &str = "binderperf.profile";

/// The files of a profiler, in a folder of their own that goes with it.
#[derive(Debug)]
pub(super) struct Files {
    folder: PrivateFolder,
    /// Open in both directions, so that neither side waits for the other to open it.
    log: File,
}

impl Files {
    pub(super) fn create() -> io::Result<Self> {
        // QEMU's monitor is in it, which starts programs.
        let folder = PrivateFolder::new("profile")?;
        let path = folder.path().join("log");
        sys::kernel::make_fifo(&path)?;
        let log = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(Self { folder, log })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// QEMU's arguments for these files.
    pub(super) fn arguments(&self) -> Vec<String> {
        let socket = |name: &str| {
            let path = escaped(&self.path(name).display().to_string());
            format!("socket,id={name},path={path},server=on,wait=off")
        };
        let words = [
            "-chardev".to_owned(),
            socket("profile"),
            "-device".to_owned(),
            format!("virtserialport,chardev=profile,name={PORT}"),
            "-chardev".to_owned(),
            socket("monitor"),
            "-mon".to_owned(),
            "chardev=monitor,mode=readline".to_owned(),
            "-D".to_owned(),
            self.path("log").display().to_string(),
        ];
        words.to_vec()
    }
}

/// A case whose instructions are logged, and the kernel's symbols.
type Running = (Capture, String);

/// A running profiler.
#[derive(Debug)]
pub(super) struct Profiler {
    listener: JoinHandle<io::Result<()>>,
    reader: JoinHandle<()>,
    tally: JoinHandle<Vec<Result<Profile, String>>>,
    files: Files,
}

impl Profiler {
    /// Starts listening. QEMU has been started with [`Files::arguments`].
    pub(super) fn start(files: Files) -> io::Result<Self> {
        let (sender, done) = channel();
        let running = Arc::new(Mutex::new(None));
        let (port, monitor) = (files.path("profile"), files.path("monitor"));
        let (log, shared, deliver) = (files.log.try_clone()?, running.clone(), sender.clone());
        let (tell, silence) = channel();
        let reader = sys::title::thread("instructions", move || read(log, &shared, &deliver, &tell))?;
        let listener =
            sys::title::thread("profiler", move || listen(&port, &monitor, &running, &sender, silence))?;
        // As each case ends: what was logged of one is large.
        let add_up =
            move || done.iter().map(|(capture, symbols): Running| profile(&capture, &symbols)).collect();
        let tally = sys::title::thread("profile", add_up)?;
        Ok(Self { listener, reader, tally, files })
    }

    /// The profiles, once QEMU has ended.
    pub(super) fn finish(mut self) -> Vec<Result<Profile, String>> {
        let listened = self.listener.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        // A FIFO that this process holds open takes a line.
        let _ = self.files.log.write_all(LAST_LINE);
        let _ = self.reader.join();
        let profiles = self.tally.join().unwrap_or_else(|_| vec![Err("adding up panicked".to_owned())]);
        let trouble = listened.err().map(|error| Err(format!("profiling: {}", sys::errno::describe(&error))));
        profiles.into_iter().chain(trouble).collect()
    }
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(error) if sys::patience::is_over(start, START_LIMIT) => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn locked(running: &Mutex<Option<Running>>) -> MutexGuard<'_, Option<Running>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves announcements until QEMU has ended.
fn listen(
    port: &Path,
    monitor: &Path,
    running: &Mutex<Option<Running>>,
    done: &Sender<Running>,
    silence: Receiver<()>,
) -> io::Result<()> {
    let mut answers = connect(port)?;
    let mut monitor = connect(monitor)?;
    let (mut said, mut silent) = (monitor.try_clone()?, monitor.try_clone()?);
    // Its words are not needed, but a monitor that is not read blocks.
    sys::title::thread("QEMU's monitor", move || drop(io::copy(&mut said, &mut io::sink())))?;
    // Each fails only if QEMU has ended.
    let obey = move || silence.iter().for_each(|()| drop(silent.write_all(SILENCE.as_bytes())));
    sys::title::thread("end of the log", obey)?;
    let mut reader = Reader::default();
    let mut words = BufReader::new(answers.try_clone()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if !matches!(words.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let Some(Announcement { case, mark, symbols }) = reader.take(text.trim_end_matches('\n')) else {
            continue;
        };
        // The case before had fewer calls.
        let before = locked(running).replace((Capture::new(case, mark), symbols));
        before.into_iter().for_each(|before| drop(done.send(before)));
        monitor.write_all(SPEECH.as_bytes())?;
        answers.write_all(b"!")?;
    }
    locked(running).take().into_iter().for_each(|last| drop(done.send(last)));
    Ok(())
}

/// Reads the log to its last line. A case that has enough calls is done.
fn read(log: File, running: &Mutex<Option<Running>>, done: &Sender<Running>, silence: &Sender<()>) {
    let mut log = BufReader::with_capacity(1 << 16, log);
    let mut line = Vec::with_capacity(256);
    loop {
        line.clear();
        if !matches!(log.by_ref().take(4096).read_until(b'\n', &mut line), Ok(1..))
            || line.ends_with(LAST_LINE)
        {
            return;
        }
        let Some(address) = program_counter(&line) else { continue };
        let mut running = locked(running);
        let Some((capture, _)) = &mut *running else { continue };
        capture.add(address);
        if capture.calls() >= CALLS || capture.instructions() >= MOST_INSTRUCTIONS {
            // Both receivers live as long as the profiler.
            let _ = silence.send(());
            running.take().into_iter().for_each(|whole| drop(done.send(whole)));
        }
    }
}
