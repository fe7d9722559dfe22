//! Records in the log of a LAVA job: printed into it, and taken out as files.
//! Not here: the lines of the log (`record::lava`), the signals (`record::formats::convert`).

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use intake::{Arrivals, Limits, Name, Place};
use record::Run;
use record::formats::convert::{Target, convert};
use record::lava::{JobLog, attachment};
use record::read::MAX_BYTES;
use sys::folder::Folder;

use crate::input;
use crate::{StoreError, Tell};

/// Reads the log of a job.
///
/// # Errors
/// It cannot be read, or is no log of a job.
pub fn read(file: &Path, tell: Tell) -> Result<JobLog, StoreError> {
    let open = input::stream(file, tell).map_err(|error| StoreError::unread("open", file, error))?;
    JobLog::read(open).map_err(|error| StoreError::Unusable(format!("{}: {error}", file.display())))
}

/// Records as signals for LAVA, each with the lines that attach it.
///
/// # Errors
/// A record has no such form, or its file cannot be read again.
pub fn signals(files: &[PathBuf], runs: &[Run], tell: Tell) -> Result<String, StoreError> {
    let mut text = String::new();
    for (file, run) in files.iter().zip(runs) {
        let signals = convert(std::slice::from_ref(run), Target::Lava);
        text += &signals.map_err(|why| StoreError::Unusable(format!("{}: {why}", file.display())))?;
        let content =
            input::bytes(file, MAX_BYTES, tell).map_err(|error| StoreError::unread("read", file, error))?;
        let name = file.file_name().unwrap_or(Path::new("record.json").as_os_str());
        text += &attachment(&name.to_string_lossy(), &content);
    }
    Ok(text)
}

/// The folder of a log's records: the log's name without its end.
pub fn beside(log: &Path) -> PathBuf {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    log.with_file_name(match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => format!("{name}-records"),
    })
}

/// Writes the attached records into a folder, each under a name of its own; nothing else that is there is replaced.
///
/// # Errors
/// An attached file is no record or has a name that cannot be taken, or the folder cannot be written.
pub fn write(log: &JobLog, folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut arrivals = Arrivals::new(Limits::USUAL);
    for attached in &log.attached {
        let name = &attached.name;
        // A record that its own readers would refuse is an error, and is not written; so is a name that denotes no file.
        let refused = |why: &dyn Display| StoreError::Unusable(format!("the attached {name}: {why}"));
        Name::parse(name).map_err(|why| refused(&format_args!("the name cannot be taken: {why}")))?;
        Run::from_json(&attached.content).map_err(|why| refused(&why))?;
        fs::create_dir_all(folder).map_err(|error| StoreError::unwritten("make", folder, error))?;
        let name = free(folder, name, &attached.content)
            .map_err(|error| StoreError::unwritten("look into", folder, error))?;
        let mut place = |name: &Name| Ok(Place::below(folder, name));
        let size = attached.content.len() as u64;
        arrivals.begin(&name, 0o666, Some(size), &mut place).map_err(StoreError::Intake)?;
        arrivals.append(&attached.content).map_err(StoreError::Intake)?;
    }
    Ok(arrivals.into_parts().0)
}

/// A name that is free in a folder, or whose file has this content already.
fn free(folder: &Path, name: &str, content: &[u8]) -> io::Result<String> {
    let folder = Folder::open(folder)?;
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, "json"));
    let mut number = 1;
    let mut candidate = name.to_owned();
    loop {
        let there = folder.read_file(OsStr::new(&candidate));
        match there {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(candidate),
            Ok(file) => {
                let mut there = Vec::new();
                file.take(content.len() as u64 + 1).read_to_end(&mut there)?;
                if there == content {
                    return Ok(candidate);
                }
            }
            // A link or a folder has it.
            Err(_) => {}
        }
        number += 1;
        candidate = format!("{stem}.{number}.{end}");
    }
}
