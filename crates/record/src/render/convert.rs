//! Room: a `Run` in the formats of other programs: which there are, and what a record must have for each.
//! Not here: Google Benchmark's (`super::gbench`), which is only offered here.
//!
//! All of them but that one are views of the same list of checks with their measures (`checks`).

mod checks;
mod csv;
mod junit;
mod kcidb;
mod ktap;
mod lava;

use std::fmt;

use crate::render::gbench;
use crate::schema::Run;

/// A format of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Google Benchmark's JSON.
    Gbench,
    /// JUnit's XML, as continuous integration reads it.
    Junit,
    /// The kernel's test protocol.
    Ktap,
    /// Signals that LAVA finds in a job's output.
    Lava,
    /// JSON of the kernel's results database.
    Kcidb,
    /// A row for each run, a column for each measure: what Apache Otava looks for changes in.
    Csv,
}

/// Why a record cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConvertError {
    /// There is no record.
    Nothing,
    /// Only CSV has a place for several records.
    TooMany {
        /// How many there are.
        records: usize,
    },
    /// The record lacks what the format cannot do without.
    Lacks {
        /// What.
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
                    "{records} records are too many: only csv has a row for each, give one for any other format"
                )
            }
            Self::Lacks { what, format } => write!(f, "the record has no {what}, which {format} needs"),
        }
    }
}

impl std::error::Error for ConvertError {}

/// Records in this format, ending in a newline.
///
/// # Errors
/// If there are none or too many, or one lacks what the format needs.
pub fn convert(runs: &[Run], target: Target) -> Result<String, ConvertError> {
    let run = runs.first().ok_or(ConvertError::Nothing)?;
    if runs.len() > 1 && target != Target::Csv {
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
        Target::Lava => Ok(lava::signals(run)),
        Target::Kcidb => kcidb::document(run),
        Target::Csv => csv::table(runs),
    }
}

#[cfg(test)]
mod tests;
