//! Files in which the reasons of failed calls are looked for: logs, state files, bug reports, traces, folders with copies.
//! Not here: what they say (crate `explain`), the files of this machine as it is now (`live::here`).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use driver::kernel_state::StateFile;
use driver::{Root, kernel_state};
use explain::Explainer;

use crate::input;
use crate::traces::scratch;
use crate::{StoreError, Tell};

/// Reads files and folders. Of several, those that say nothing are noted; all of them are an error.
///
/// # Errors
/// None of them says anything.
pub fn from_files(paths: &[PathBuf], tell: Tell) -> Result<Explainer, StoreError> {
    let mut explainer = Explainer::new();
    let (mut read, mut refused) = (0, Vec::new());
    for path in paths {
        let name = path.display();
        match one(&mut explainer, path, tell) {
            Ok(()) => read += 1,
            Err(why) => refused.push(format!("{name}: {why}")),
        }
    }
    if read == 0 {
        return Err(StoreError::Unusable(refused.join("\n")));
    }
    refused.into_iter().for_each(|why| explainer.note(format!("not used: {why}")));
    Ok(explainer)
}

fn one(explainer: &mut Explainer, path: &Path, tell: Tell) -> Result<(), String> {
    let name = path.display().to_string();
    if path.is_dir() {
        return of_folder(explainer, path, &name);
    }
    let is_stdin = path.as_os_str() == "-";
    let described = |error: io::Error| sys::errno::describe(&error);
    let name = if is_stdin { "standard input".to_owned() } else { name };
    let file = match is_stdin {
        true => spilled(io::stdin().lock()).map_err(described)?,
        false => match input::seekable(path) {
            Ok(file) => file,
            // A pipe is read once.
            Err(_) => spilled(input::stream(path, tell).map_err(described)?).map_err(described)?,
        },
    };
    explainer.read(&name, file, &mut scratch).map_err(|error| error.to_string())
}

/// Copies what can be read only once.
fn spilled(mut input: impl Read) -> io::Result<File> {
    let mut file = scratch()?;
    io::copy(&mut input, &mut file)?;
    Ok(file)
}

const FILES: [StateFile; 4] =
    [StateFile::State, StateFile::Transactions, StateFile::Stats, StateFile::FailedTransactionLog];

/// Reads the driver's files among copies of a machine's files.
fn of_folder(explainer: &mut Explainer, folder: &Path, name: &str) -> Result<(), String> {
    let root = Root::at(folder);
    let (mut read, mut why) = (0, String::new());
    for which in FILES {
        match kernel_state::read(&root, None, which) {
            Ok(Some(text)) => read += lines(explainer, &format!("{name}/{}", which.file_name()), &text),
            Ok(None) => {}
            Err(error) => why = error.to_string(),
        }
    }
    name_processes(explainer, &root);
    if read == 0 { Err(format!("no file of the driver says anything there; {why}")) } else { Ok(()) }
}

/// Reads a text that is in memory; returns the number of its lines that say something.
pub fn lines(explainer: &mut Explainer, name: &str, text: &str) -> u64 {
    // Memory can be read.
    explainer.read_lines(name, text.as_bytes()).unwrap_or(0)
}

/// Names processes by their command lines, or as the kernel does.
pub fn name_processes(explainer: &mut Explainer, root: &Root) {
    for pid in root.names("proc") {
        let Ok(number) = pid.parse::<i32>() else { continue };
        let command_line = root.text(format!("proc/{pid}/cmdline")).unwrap_or_default();
        let name = explain::process_name(&command_line);
        match name.is_empty() {
            false => explainer.name_process(number, name),
            true => {
                explainer.name_process(number, &root.text(format!("proc/{pid}/comm")).unwrap_or_default())
            }
        }
    }
}
