//! The guest's end of the frame port, shared by its threads.
//! Not here: the frame format (`frame`).

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::frame::Frame;
use crate::job::PORT;

/// Interval and number of attempts to find the port: virtio devices appear some time after their drivers.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const LOOKS: u32 = 5000;

/// The port. Frames are written whole.
#[derive(Debug)]
pub(super) struct Outbox {
    port: Mutex<File>,
}

impl Outbox {
    /// Waits for the virtio port and opens it.
    pub(super) fn open() -> Result<Self, String> {
        for _ in 0..LOOKS {
            if let Some(node) = find_port() {
                let port = OpenOptions::new().read(true).write(true).open(&node).map_err(|error| {
                    format!("opening {}: {}", node.display(), sys::errno::describe(&error))
                })?;
                return Ok(Self { port: Mutex::new(port) });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err("no virtio console port appeared; the kernel needs CONFIG_VIRTIO_PCI and CONFIG_VIRTIO_CONSOLE, \
             built in or as modules (--modules DIR)"
            .into())
    }

    /// Waits for the host to write, which asks the command to stop.
    pub(super) fn orders(&self) -> io::Result<File> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }

    /// Sends one frame; blocks while the host does not read.
    pub(super) fn send(&self, frame: &Frame) -> io::Result<()> {
        // A frame is one write, so a writer that panicked left no partial frame.
        frame.write(&*self.port.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn find_port() -> Option<PathBuf> {
    let ports = std::fs::read_dir("/sys/class/virtio-ports").ok()?;
    let ours = ports.flatten().find(|port| {
        std::fs::read_to_string(port.path().join("name")).is_ok_and(|name| name.trim_end() == PORT)
    })?;
    let node = Path::new("/dev").join(ours.file_name());
    node.exists().then_some(node)
}
