//! Files that the command line names to be read: whatever they are, reading them ends, or says what it waits for.
//! Not here: the formats, and the limits that their readers have (`record::read`, `record::lava`, `history`).

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::{StoreError, Tell};

/// Silence after which a reader says that it waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a path leads to, if that may have no end or no beginning.
fn strange(path: &Path) -> Option<&'static str> {
    let kind = fs::metadata(path).ok()?.file_type();
    match (kind.is_fifo(), kind.is_socket(), kind.is_char_device()) {
        (true, ..) => Some("a FIFO"),
        (_, true, _) => Some("a socket"),
        (.., true) => Some("a device"),
        _ => None,
    }
}

/// Says that this program waits for an input, if it does for some time: until it is dropped.
#[derive(Debug)]
pub struct Notice(#[expect(dead_code, reason = "held, not used")] Option<Sender<()>>);

impl Notice {
    /// Watches the reading of this input.
    pub fn of(path: &Path, tell: Tell) -> Self {
        let Some(what) = strange(path) else { return Self(None) };
        let (sender, receiver) = channel::<()>();
        let shown = path.display().to_string();
        let wait = move || {
            if receiver.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                tell(&format!("waiting for {shown}, which is {what} (Ctrl-C ends it)"));
            }
        };
        // Without a thread it waits in silence.
        Self(sys::title::thread("input notice", wait).is_ok().then_some(sender))
    }
}

/// An input that is read once, from its begin to its end.
#[derive(Debug)]
pub struct Input {
    file: File,
    notice: Option<Notice>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(buffer);
        self.notice = None;
        got
    }
}

/// Opens an input that is read once: a FIFO will do, as shells make it for `<(COMMAND)`.
///
/// # Errors
/// It cannot be opened.
pub fn stream(path: &Path, tell: Tell) -> io::Result<Input> {
    let notice = Some(Notice::of(path, tell));
    Ok(Input { file: File::open(path)?, notice })
}

/// Reads an input of this size at most.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn bytes(path: &Path, most: u64, tell: Tell) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream(path, tell)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// Reads an input of text of this size at most.
///
/// # Errors
/// It cannot be read, is larger, or is no UTF-8.
pub fn text(path: &Path, most: u64, tell: Tell) -> io::Result<String> {
    String::from_utf8(bytes(path, most, tell)?).map_err(io::Error::other)
}

/// Opens an input in which its reader goes back.
///
/// # Errors
/// It cannot be opened, or nobody can go back in it.
pub fn seekable(path: &Path) -> io::Result<File> {
    if let Some(what) = strange(path) {
        return Err(io::Error::other(format!(
            "it is {what}, and is read more than once: copy it into a file"
        )));
    }
    File::open(path)
}

/// Refuses a file that is read as a whole by a reader without limits.
///
/// # Errors
/// It is none.
pub fn whole(path: &Path) -> Result<(), StoreError> {
    match strange(path) {
        Some(what) => Err(StoreError::Unusable(format!("{} is {what}: copy it into a file", path.display()))),
        None => Ok(()),
    }
}

/// Whether two paths lead to one file; false if one of them does not exist.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}
