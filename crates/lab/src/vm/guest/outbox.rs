//! Room: the guest's end of the channel to its host, shared by everyone who has something to say.
//! Not here: the form of what is said (`frame`).

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::vm::frame::Frame;
use crate::vm::job::PORT;

/// How often, and how many times, the port is looked for: virtio devices appear a while after
/// their drivers.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const LOOKS: u32 = 5000;

/// The channel. Each frame is written whole.
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

    /// The other direction: whatever the host writes means that the command shall stop.
    pub(super) fn orders(&self) -> io::Result<File> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }

    /// Sends one frame; blocks while the host is slow.
    pub(super) fn send(&self, frame: &Frame) -> io::Result<()> {
        // A writer that panicked cannot have left half a frame: a frame is one write.
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
