//! Faults of the files, each with its place and what to do.

use std::fmt;
use std::path::PathBuf;

use crate::tree::At;

/// A file's path and contents.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    /// The same however a file's path is written.
    pub(crate) identity: PathBuf,
    pub(crate) text: String,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    pub(crate) at: At,
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Fault {
    pub(crate) fn new(at: At, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { at, what: what.into(), remedy: remedy.into() }
    }
}

/// Why there is no Rust for the files: a line for each fault, `file:line:column: what; what to do`.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    lines: Vec<String>,
}

impl Error {
    /// The error of these faults, in the order of their places.
    pub(crate) fn of(mut faults: Vec<Fault>, sources: &[Source]) -> Self {
        faults.sort();
        faults.dedup();
        let (mut at, mut line, mut column) = (At { file: 0, offset: 0 }, 1, 1);
        let mut place = |fault: &Fault| {
            let source = &sources[fault.at.file];
            if at.file != fault.at.file {
                (at, line, column) = (At { file: fault.at.file, offset: 0 }, 1, 1);
            }
            // Each text is walked through once.
            for letter in source.text.get(at.offset..fault.at.offset).unwrap_or_default().chars() {
                (line, column) = if letter == '\n' { (line + 1, 1) } else { (line, column + 1) };
            }
            at = fault.at;
            format!("{}:{line}:{column}: {}; {}", source.path, fault.what, fault.remedy)
        };
        Self { lines: faults.iter().map(&mut place).collect() }
    }

    /// An error without a place in a file.
    pub(crate) fn plain(line: String) -> Self {
        Self { lines: vec![line] }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// The same text as `Display`: it is what cargo shows of a build script that returns an error or unwraps one.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Error {}
