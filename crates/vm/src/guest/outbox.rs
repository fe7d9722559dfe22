//! The guest's way to the outside, shared by its threads: the host's frame port, or the console.
//! Not here: the frame format (`frame`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::machine;
use crate::frame::{Event, Frame};
use crate::job::{Job, PORT};

/// Interval and number of attempts to find the port: virtio devices appear some time after their drivers.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const LOOKS: u32 = 5000;

/// The way out.
#[derive(Debug)]
pub(super) enum Outbox {
    /// The host's port. Frames are written whole.
    Port(Mutex<File>),
    /// The console, which gets the output of the commands only.
    Console,
}

impl Outbox {
    /// The way out that the job asks for.
    pub(super) fn of(job: &Job) -> Result<Self, String> {
        if job.console {
            machine::silence_the_kernel();
            return Ok(Self::Console);
        }
        Self::open_port()
    }

    /// Waits for the virtio port and opens it.
    fn open_port() -> Result<Self, String> {
        for _ in 0..LOOKS {
            if let Some(node) = find_port(PORT) {
                let port = OpenOptions::new().read(true).write(true).open(&node).map_err(|error| {
                    format!("opening {}: {}", node.display(), sys::errno::describe(&error))
                })?;
                return Ok(Self::Port(Mutex::new(port)));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err("no virtio console port appeared; the kernel needs CONFIG_VIRTIO_PCI and CONFIG_VIRTIO_CONSOLE, \
             built in or as modules (--modules DIR)"
            .into())
    }

    /// Waits for the host to write, which asks the command to stop. Nobody writes to a console.
    pub(super) fn orders(&self) -> Option<File> {
        match self {
            Self::Port(port) => port.lock().unwrap_or_else(PoisonError::into_inner).try_clone().ok(),
            Self::Console => None,
        }
    }

    /// Sends one frame; blocks while the host does not read.
    pub(super) fn send(&self, frame: &Frame) -> io::Result<()> {
        match (self, frame) {
            // A frame is one write, so a writer that panicked left no partial frame.
            (Self::Port(port), _) => frame.write(&*port.lock().unwrap_or_else(PoisonError::into_inner)),
            (Self::Console, Frame::Stdout(bytes) | Frame::Stderr(bytes)) => write_to_console(bytes),
            (Self::Console, Frame::Event(Event::NoBinder { said, release })) => {
                write_to_console(format!("binderperf guest: Linux {release}: {said}\n").as_bytes())
            }
            (Self::Console, Frame::Event(Event::Failed(said))) => {
                write_to_console(format!("binderperf guest: {said}\n").as_bytes())
            }
            (Self::Console, Frame::Event(_) | Frame::Content(_)) => Ok(()),
        }
    }
}

/// Process 1 has the console as its standard output.
fn write_to_console(bytes: &[u8]) -> io::Result<()> {
    let mut console = io::stdout().lock();
    console.write_all(bytes).and_then(|()| console.flush())
}

/// The device of the virtio port with this name, if it is there.
pub(super) fn find_port(name: &str) -> Option<PathBuf> {
    let ports = std::fs::read_dir("/sys/class/virtio-ports").ok()?;
    let ours = ports.flatten().find(|port| {
        std::fs::read_to_string(port.path().join("name")).is_ok_and(|told| told.trim_end() == name)
    })?;
    let node = Path::new("/dev").join(ours.file_name());
    node.exists().then_some(node)
}
