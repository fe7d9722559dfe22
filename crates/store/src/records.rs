//! Records named on the command line, by file, folder or several separated by commas.
//! Not here: reading one (`record::read`), comparing (`record::compare`).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use record::compare::{Group, Member};
use record::import::any;
use record::read::MAX_BYTES;
use record::{ReadError, Run};

use crate::input;
use crate::{StoreError, Tell};

/// The end of the file name of a result that was disturbed and measured again: it stays out of reports and comparisons.
pub const FIRST: &str = ".first.json";

/// Whether a file is such a result.
pub fn is_first(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(FIRST))
}

/// Reads the named records.
///
/// # Errors
/// A name matches nothing, or something that is no valid record.
pub fn group(words: &str, tell: Tell) -> Result<Group, StoreError> {
    let paths: Vec<&str> = match Path::new(words).exists() {
        // A comma may be part of a file name.
        true => vec![words],
        false => words.split(',').filter(|word| !word.is_empty()).collect(),
    };
    let mut members = Vec::new();
    for path in paths {
        match Path::new(path).is_dir() {
            true => members.extend(folder(Path::new(path), tell)?),
            false => members.extend(in_file(Path::new(path), tell).map_err(|error| error.of(path))?),
        }
    }
    if members.is_empty() {
        return Err(StoreError::Unusable(format!("{words:?} names no record")));
    }
    Ok(Group { name: words.to_owned(), members })
}

/// The message about a file that cannot be read.
enum Unread {
    Open(std::io::Error),
    Content(ReadError),
}

impl Unread {
    fn of(self, path: &str) -> StoreError {
        match self {
            Self::Open(error) => StoreError::unread("open", Path::new(path), error),
            Self::Content(error) => StoreError::Unusable(format!("{path}: {error}")),
        }
    }
}

/// Every file of a folder, or the file itself.
pub fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => {
            let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            below.sort();
            below.iter().for_each(|path| collect(path, files));
        }
        Err(_) if path.is_file() => files.push(path.to_owned()),
        Err(_) => {}
    }
}

/// The records among these files, each with the name of its file; disturbed results that were measured again are none.
#[must_use]
pub fn in_files(files: &[PathBuf]) -> Vec<(String, Run)> {
    let is_json = |path: &&PathBuf| path.extension().is_some_and(|end| end == "json") && !is_first(path);
    let read = |path: &PathBuf| {
        let run = fs::File::open(path).ok().and_then(|file| Run::read(file).ok())?;
        Some((path.file_stem()?.to_string_lossy().into_owned(), run))
    };
    files.iter().filter(is_json).filter_map(read).collect()
}

/// Reads a record, or the only run of another program's output.
///
/// # Errors
/// It cannot be read, or has several runs.
pub fn read(path: &Path, tell: Tell) -> Result<Run, StoreError> {
    match read_all(path, tell)?.as_mut_slice() {
        [run] => Ok(run.clone()),
        several => {
            let why = format!("{} has {} runs: give a file with one", path.display(), several.len());
            Err(StoreError::Unusable(why))
        }
    }
}

/// Reads a record, or each run of another program's output.
///
/// # Errors
/// It cannot be read.
pub fn read_all(path: &Path, tell: Tell) -> Result<Vec<Run>, StoreError> {
    let name = path.display().to_string();
    let members = in_file(path, tell).map_err(|error| error.of(&name))?;
    Ok(members.into_iter().map(|member| member.run).collect())
}

/// The runs of a file: a record, or each run of another program's output, whose date may be that of the file.
///
/// # Errors
/// [`ReadError`].
pub fn runs(path: &Path, tell: Tell) -> Result<Vec<Run>, ReadError> {
    runs_of(path, input::stream(path, tell).map_err(ReadError::Io)?)
}

/// The runs of an open file.
fn runs_of(path: &Path, file: impl Read) -> Result<Vec<Run>, ReadError> {
    let changed = fs::metadata(path).and_then(|about| about.modified()).unwrap_or_else(|_| SystemTime::now());
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    any(&bytes, &host::date(changed))
}

/// The runs of a file with its name, numbered where there are several.
fn in_file(path: &Path, tell: Tell) -> Result<Vec<Member>, Unread> {
    // A file that cannot be opened is another error than one that cannot be read.
    let file = input::stream(path, tell).map_err(Unread::Open)?;
    let runs = runs_of(path, file).map_err(Unread::Content)?;
    let several = runs.len() > 1;
    let named = (1..).zip(runs).map(|(number, run): (usize, Run)| {
        let of = if several { format!(" (run {number})") } else { String::new() };
        Member { file: format!("{}{of}", path.display()), run }
    });
    Ok(named.collect())
}

/// Every record, and every output of another program, among the `.json` and `.txt` files of a folder; others are skipped.
fn folder(path: &Path, tell: Tell) -> Result<Vec<Member>, StoreError> {
    let mut members = Vec::new();
    for file in files_of(path, "txt")? {
        // Other text is no output of a test.
        match in_file(&file, tell) {
            Ok(found) => members.extend(found),
            Err(Unread::Content(error @ ReadError::Import(_))) => {
                return Err(Unread::Content(error).of(&file.display().to_string()));
            }
            Err(_) => {}
        }
    }
    for file in files_of(path, "json")?.iter().filter(|file| !is_first(file)) {
        match in_file(file, tell) {
            Ok(found) => members.extend(found),
            // Other output of `run` in the same folder.
            Err(Unread::Content(ReadError::Foreign { found })) if found.starts_with("\"binderperf.") => {}
            Err(Unread::Content(ReadError::Foreign { .. })) => {
                tell(&format!("{}: no record, passed over", file.display()));
            }
            Err(error) => return Err(error.of(&file.display().to_string())),
        }
    }
    if members.is_empty() {
        let shown = path.display();
        let why = format!("the folder {shown} has no record (a .json file that --record wrote)");
        return Err(StoreError::Unusable(why));
    }
    Ok(members)
}

/// The files of a folder with this extension, sorted by name.
///
/// # Errors
/// The folder cannot be read.
pub fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(folder).map_err(|error| StoreError::unread("look into", folder, error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == extension) && file.is_file());
    files.sort();
    Ok(files)
}
