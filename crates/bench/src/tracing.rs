//! Cost of this tool's own tracing and accuracy of its analysis.
//!
//! - [`accuracy`]: whether the analysis names known causes.
//! - [`overhead`]: the cost of recording per call.
//!
//! Not here: recording (`ftrace`), the meaning of a trace (`trace`).

pub mod accuracy;
pub mod overhead;

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ftrace::categories::{self, Category};
use ftrace::record::work::Work;
use ftrace::record::{Observer, Plan, Summary, record};
use ftrace::tracefs::TraceError;
use record::Run;
use sys::private_folder::PrivateFolder;

/// Error that prevents a check.
#[derive(Debug)]
pub enum CheckError {
    /// Tracing failed.
    Tracing(TraceError),
    /// The driver, the CPUs or a test failed.
    Unready(String),
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tracing(error) => error.fmt(f),
            Self::Unready(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CheckError {}

fn unready(what: &str, error: &io::Error) -> CheckError {
    CheckError::Unready(format!("{what}: {}", sys::errno::describe(error)))
}

/// Folder of the recordings of a check: the user's, or one that goes with the value.
struct RecordingFolder {
    path: PathBuf,
    _own: Option<PrivateFolder>,
}

impl RecordingFolder {
    fn create(check: &str, keep: Option<&Path>) -> Result<Self, CheckError> {
        let Some(path) = keep else {
            let own = PrivateFolder::new(check).map_err(|error| CheckError::Unready(error.to_string()))?;
            return Ok(Self { path: own.path().to_owned(), _own: Some(own) });
        };
        fs::create_dir_all(path).map_err(|error| unready(&format!("making {}", path.display()), &error))?;
        Ok(Self { path: path.to_owned(), _own: None })
    }
}

/// Returns the categories that `trace record` records by default.
pub(crate) fn usual_categories() -> Vec<&'static Category> {
    categories::USUAL.iter().filter_map(|name| categories::named(name)).collect()
}

/// Records a copy of this program with these arguments; its own output is discarded.
pub(crate) fn record_own(
    words: Vec<String>,
    categories: Vec<&'static Category>,
    buffer_kb: u64,
    output: PathBuf,
    shared_marks: bool,
) -> Result<Summary, CheckError> {
    struct Silent;

    impl Observer for Silent {
        fn begins(&mut self, _notes: &[String]) {}
        fn advanced(&mut self, _elapsed: Duration, _bytes: u64) {}
    }

    let program = std::env::current_exe().map_err(|error| unready("finding this program's file", &error))?;
    let work = Work::Command { program, name: "binderperf".to_owned(), words, silent: true };
    let plan = Plan { categories, buffer_kb, circular: false, output, work, shared_marks };
    record(&plan, &mut Silent).map_err(CheckError::Tracing)
}

/// Reads the record that a copy of this program left.
fn read_record(file: &Path) -> Result<Run, String> {
    let file = File::open(file).map_err(|error| sys::errno::describe(&error))?;
    Run::read(file).map_err(|error| error.to_string())
}
