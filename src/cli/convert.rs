//! Room: `convert`: stored records in the formats of other programs.
//! Not here: the formats (`record::render::convert`).

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use record::Run;
use record::render::convert::{Target, convert};

use super::output::Sink;
use super::{complain, exit, say};

/// Convert a stored record for another program: Google Benchmark, JUnit, KTAP, LAVA, KCIDB, CSV
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The record; with --to csv one or more, a row each
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Where to write it, instead of the standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Formats of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Google Benchmark's JSON, for compare.py and whatever reads that
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

/// Converts; the result is the exit status.
pub(crate) fn run(arguments: &ConvertArgs) -> u8 {
    let mut runs = Vec::new();
    for path in &arguments.file {
        match read(path) {
            Ok(run) => runs.push(run),
            Err(why) => {
                complain(why);
                return exit::USAGE;
            }
        }
    }
    let text = match convert(&runs, arguments.to.into()) {
        Ok(text) => text,
        Err(why) => {
            complain(format_args!("{}: {why}", names(&arguments.file)));
            return exit::USAGE;
        }
    };
    let Some(output) = &arguments.output else { return say(&text) };
    if arguments.file.iter().any(|record| same_file(record, output)) {
        complain(format_args!("{}: this is the record that is read", output.display()));
        return exit::USAGE;
    }
    let mut sink = Sink::file(output);
    sink.put(&text);
    match sink.trouble() {
        Some(trouble) => {
            complain(trouble);
            exit::INTERNAL
        }
        None => exit::FINE,
    }
}

fn read(path: &Path) -> Result<Run, String> {
    let name = path.display();
    let file =
        File::open(path).map_err(|error| format!("cannot open {name}: {}", lab::describe_errno(&error)))?;
    Run::read(file).map_err(|error| format!("{name}: {error}"))
}

fn names(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
}
