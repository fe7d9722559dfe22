//! The command `convert`: writes stored records in the formats of other programs.
//! Not here: the formats (`record::render::convert`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use record::render::convert::{Target, convert};

use super::output::{Sink, is_same_file};
use super::records::read;
use super::{CommandResult, Failure, exit, say};

/// Convert a stored record for another program: Google Benchmark, JUnit, KTAP, LAVA, KCIDB, CSV
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The record; with --to csv one or more, a row each
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Write to FILE instead of the standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Formats of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Google Benchmark's JSON, for compare.py and other readers of it
    Gbench,
    /// JUnit's XML, for continuous integration
    Junit,
    /// The kernel's test protocol
    Ktap,
    /// Signals in the output of a LAVA job
    Lava,
    /// A submission to KCIDB, schema 5.3
    Kcidb,
    /// A row for each run and a column for each measure, for Apache Otava and spreadsheets
    Csv,
}

impl From<Format> for Target {
    fn from(format: Format) -> Self {
        match format {
            Format::Gbench => Self::Gbench,
            Format::Junit => Self::Junit,
            Format::Ktap => Self::Ktap,
            Format::Lava => Self::Lava,
            Format::Kcidb => Self::Kcidb,
            Format::Csv => Self::Csv,
        }
    }
}

/// Converts them.
pub(crate) fn run(arguments: &ConvertArgs) -> CommandResult {
    let runs = arguments.file.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let text = convert(&runs, arguments.to.into()).map_err(|why| {
        let names: Vec<String> = arguments.file.iter().map(|file| file.display().to_string()).collect();
        Failure::new(exit::USAGE, format_args!("{}: {why}", names.join(", ")))
    })?;
    let Some(output) = &arguments.output else { return say(&text) };
    if arguments.file.iter().any(|record| is_same_file(record, output)) {
        let why = format_args!("{}: this is the record that is read", output.display());
        return Err(Failure::new(exit::USAGE, why));
    }
    Sink::file(output).deliver(&text)?;
    Ok(exit::FINE)
}
