//! The file in which the figures of runs are kept over time.
//! Not here: what a line is, series and changes (`record::history`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use record::history::{Entry, fresh, parse};
use record::read::MAX_BYTES;

use crate::StoreError;
use crate::input;

/// The user's own file; none where neither `XDG_STATE_HOME` nor `HOME` is set.
#[must_use]
pub fn usual_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("binderperf/history.jsonl"))
}

/// Reads all entries, with the numbers of the lines that are none.
///
/// # Errors
/// There is no such file, or it cannot be read.
pub fn read(path: &Path) -> Result<(Vec<Entry>, Vec<usize>), StoreError> {
    let bytes = input::seekable(path).and_then(|file| whole(&file)).map_err(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            return StoreError::unread("read", path, error);
        }
        let begins = "`binderperf history --add RECORD` begins one";
        StoreError::Unusable(format!("there is no history {}: {begins}", path.display()))
    })?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

/// Appends the runs that are missing, with one write; returns their number.
///
/// # Errors
/// The file cannot be made or written; then it is as before.
pub fn append(path: &Path, found: Vec<Entry>) -> Result<usize, StoreError> {
    appended(path, found).map_err(|error| StoreError::unwritten("write", path, error))
}

fn appended(path: &Path, found: Vec<Entry>) -> io::Result<usize> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    // Two processes must not both find a run missing.
    file.lock()?;
    file.seek(SeekFrom::Start(0))?;
    let bytes = whole(&file)?;
    let (known, _) = parse(&String::from_utf8_lossy(&bytes));
    let added = fresh(&known, found);
    // Ends a line that was cut short.
    let start = if bytes.last().is_some_and(|byte| *byte != b'\n') { "\n" } else { "" };
    let lines: String = added.iter().map(Entry::line).collect();
    if !lines.is_empty() {
        let written = file.write_all(format!("{start}{lines}").as_bytes()).and_then(|()| file.sync_all());
        // A disk that is full: a part of a run would pass for all of it.
        written.inspect_err(|_| drop(file.set_len(bytes.len() as u64)))?;
    }
    Ok(added.len())
}

/// Reads the file, up to a limit: a device or a pipe might never end.
fn whole(file: &File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    if file.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it is larger than {} MiB, so it is no history",
            MAX_BYTES >> 20
        )));
    }
    Ok(bytes)
}
