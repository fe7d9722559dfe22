//! Converts records to formats of other programs.
//! Not here: Google Benchmark's format (`super::gbench`), which is only offered here.
//!
//! All other formats are views of one list of checks and their measures (`checks`).

mod checks;
mod csv;
mod junit;
mod kcidb;
mod ktap;
mod lava;

use std::fmt;

use super::gbench;
use crate::schema::Run;

/// The format of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Google Benchmark's JSON.
    Gbench,
    /// JUnit XML, as read by continuous integration systems.
    Junit,
    /// KTAP, the kernel's test protocol.
    Ktap,
    /// Signals in a job's output, as read by LAVA.
    Lava,
    /// JSON for KCIDB, the kernel's results database.
    Kcidb,
    /// CSV with a row for each run and a column for each measure, as read by Apache Otava.
    Csv,
}

/// Reason why a record cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConvertError {
    /// No record was given.
    Nothing,
    /// Several records were given, and the format holds one.
    TooMany {
        /// Number of records.
        records: usize,
    },
    /// The record lacks something that the format requires.
    Lacks {
        /// The missing item.
        what: &'static str,
        /// The format.
        format: &'static str,
    },
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("there is no record to convert"),
            Self::TooMany { records } => {
                write!(
                    f,
                    "{records} records are too many: only csv and lava hold several, give one for any other format"
                )
            }
            Self::Lacks { what, format } => write!(f, "the record has no {what}, which {format} needs"),
        }
    }
}

impl std::error::Error for ConvertError {}

/// Converts records; the text ends in a newline.
///
/// # Errors
/// If there are no records, too many, or one lacks something that the format requires.
pub fn convert(runs: &[Run], target: Target) -> Result<String, ConvertError> {
    let run = runs.first().ok_or(ConvertError::Nothing)?;
    if runs.len() > 1 && !matches!(target, Target::Csv | Target::Lava) {
        return Err(ConvertError::TooMany { records: runs.len() });
    }
    if runs.iter().any(|run| run.cases.is_empty()) {
        return Err(ConvertError::Lacks { what: "case that was planned", format: "every format" });
    }
    match target {
        Target::Gbench => {
            let options = gbench::Options { format: gbench::Format::Json, ..Default::default() };
            Ok(gbench::replay(run, &options))
        }
        Target::Junit => Ok(junit::document(run)),
        Target::Ktap => Ok(ktap::lines(run)),
        Target::Lava => Ok(runs.iter().map(lava::signals).collect()),
        Target::Kcidb => kcidb::document(run),
        Target::Csv => csv::table(runs),
    }
}

#[cfg(test)]
mod tests;
