//! Records of many devices, for `compare --across` and `report --across`: finds and reads them, one in memory at a time.
//! Not here: putting them beside one another (`record::across`).

use std::path::{Path, PathBuf};

use record::ReadError;
use record::across::{Across, By, Sample, across};
use record::compare::Metric;

use crate::records::{files_of, is_first, runs};
use crate::{StoreError, Tell};

/// Folders within folders that are looked into.
const DEPTH: u32 = 8;

/// Reads all records of these files and folders, and puts them beside one another.
///
/// # Errors
/// A named file cannot be read, or there is no record.
pub fn read(paths: &[PathBuf], by: By, metric: Metric, tell: Tell) -> Result<Across, StoreError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { find(path, DEPTH, &mut files, tell)? } else { files.push(path.clone()) }
    }
    let mut samples = Vec::new();
    for file in &files {
        match runs(file, tell) {
            Ok(found) => {
                samples.extend(found.iter().map(|run| Sample::of(&file.display().to_string(), run, metric)));
            }
            // Other output of `run` in the same folder.
            Err(ReadError::Foreign { .. }) if !paths.contains(file) => {}
            Err(error) if paths.contains(file) => {
                return Err(StoreError::Unusable(format!("{}: {error}", file.display())));
            }
            // One bad file does not spoil the others.
            Err(error) => tell(&format!("{}: {error}; passed over", file.display())),
        }
    }
    if samples.is_empty() {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let message = format!("no record in {}; `binderperf run --out DIR` leaves some", paths.join(", "));
        return Err(StoreError::Unusable(message));
    }
    Ok(across(&samples, by, metric))
}

/// Adds the JSON files of a folder and of the folders in it, sorted by name. Links to folders are not followed.
fn find(folder: &Path, depth: u32, files: &mut Vec<PathBuf>, tell: Tell) -> Result<(), StoreError> {
    files.extend(files_of(folder, "json")?.into_iter().filter(|file| !is_first(file)));
    if depth == 0 {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    for folder in &folders {
        // Nor does a folder that may not be read.
        find(folder, depth - 1, files, tell).unwrap_or_else(|why| tell(&format!("{why}; passed over")));
    }
    Ok(())
}
