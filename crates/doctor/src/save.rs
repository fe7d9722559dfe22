//! Copies the files that the probes read into a folder, so that the machine can be examined elsewhere.
//! Not here: reading such a folder (`snapshot`).
//! The copies are made in a folder inside it, whose name says until the end that they are a part only.
//! Data that identifies the owner and is not needed is omitted: host name, other mounts, unrelated modules.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use driver::Root;
use sys::private_folder::PrivateFolder;

use super::facts::{self, Facts};
use super::snapshot::{PART, Snapshot};

/// Why nothing was saved.
#[derive(Debug)]
pub enum SaveError {
    /// The folder is not empty.
    NotEmpty(PathBuf),
    /// A folder or file cannot be created.
    Io(PathBuf, io::Error),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEmpty(path) => {
                write!(f, "{} is not empty: name a folder that is, or that is not there yet", path.display())
            }
            Self::Io(path, error) => {
                write!(f, "writing the snapshot {}: {}", path.display(), sys::errno::describe(error))
            }
        }
    }
}

impl std::error::Error for SaveError {}

/// Copies the files and facts of a machine into an empty or new folder; unreadable files are noted with the reason.
/// Returns the number of files.
///
/// # Errors
/// [`SaveError`].
pub fn save(snapshot: &Snapshot, folder: &Path) -> Result<usize, SaveError> {
    let failed = |error| SaveError::Io(folder.to_owned(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    // Removes the part that a killed command left.
    let part = PrivateFolder::below(folder, PART).map_err(failed)?;
    if fs::read_dir(folder).map_err(failed)?.count() > 1 {
        return Err(SaveError::NotEmpty(folder.to_owned()));
    }
    let count = copy(snapshot, part.path())?;
    for entry in fs::read_dir(part.path()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        fs::rename(entry.path(), folder.join(entry.file_name())).map_err(failed)?;
    }
    part.remove().map_err(failed)?;
    Ok(count)
}

/// Copies the files and facts into a folder; returns their number.
fn copy(snapshot: &Snapshot, folder: &Path) -> Result<usize, SaveError> {
    // Whatever a probe asked for, it will ask for again.
    let _ = super::examine(snapshot);
    let mut facts = Facts { ..snapshot.facts().clone() };
    let mut count = 1;
    // A list of mounts may name any path.
    let is_inside = |path: &&PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
    let asked = snapshot.root().asked();
    for path in asked.iter().filter(is_inside).filter(|path| *path != Path::new(facts::FILE)) {
        match content(snapshot.root(), path) {
            Ok(Content::File(bytes)) => {
                put(folder, path, &bytes)?;
                count += 1;
            }
            Ok(Content::Folder) => {
                let copy = folder.join(path);
                fs::create_dir_all(&copy).map_err(|error| SaveError::Io(copy, error))?;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => {
                facts.unreadable.insert(path.display().to_string(), sys::errno::describe(&error));
            }
        }
    }
    put(folder, Path::new(facts::FILE), facts.to_json().as_bytes())?;
    Ok(count)
}

fn put(folder: &Path, path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    let path = folder.join(path);
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|error| SaveError::Io(path.clone(), error))
}

/// Content to save under a path.
enum Content {
    File(Vec<u8>),
    /// A folder, of which only the existence matters.
    Folder,
}

fn content(root: &Root, path: &Path) -> io::Result<Content> {
    let place = root.path(path);
    if path.starts_with("proc/self/ns")
        && let Ok(target) = fs::read_link(&place)
    {
        return Ok(Content::File(target.display().to_string().into_bytes()));
    }
    if fs::metadata(&place)?.is_dir() {
        return Ok(Content::Folder);
    }
    if path.to_string_lossy().contains(".ko") {
        // Only the existence of a module matters.
        return Ok(Content::File(Vec::new()));
    }
    let (bytes, _) = root.bytes(path)?;
    let kept = |is_kept: fn(&str) -> bool| {
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter(|line| is_kept(line));
        lines.fold(String::new(), |text, line| text + line + "\n").into_bytes()
    };
    Ok(Content::File(match path.file_name().and_then(|name| name.to_str()) {
        Some("mounts") => kept(|line| {
            line.split(' ').nth(2).is_some_and(|kind| matches!(kind, "binder" | "debugfs" | "tracefs"))
        }),
        Some("modules.dep") => kept(|line| line.contains("binder")),
        _ => bytes,
    }))
}
