//! The command `convert`: writes stored records in the formats of other programs, and takes records out of a LAVA job's log.
//! Not here: the formats (`record::formats::convert`), the log (`record::lava`).

mod lava_log;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use record::formats::convert::{Target, convert};
use store::input::is_same_file;
use store::job_log::signals;
use store::records::read;

use super::choice::{self, Table};
use super::output::Sink;
use super::{CommandResult, Failure, exit, say, tell};

/// Convert a stored record for another program: Google Benchmark, JUnit, KTAP, LAVA, KCIDB, CSV
///
/// With --from lava-log FILE is the log of a LAVA job: its records are written to files, and its failed test cases
/// are printed.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The record; with --to csv or lava one or more
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// The format
    #[arg(long, value_parser = choice::table(&FORMATS), value_name = "FORMAT", required_unless_present = "from")]
    to: Option<Target>,
    /// Read the log of a LAVA job, or the text that its device printed, instead of a record
    #[arg(long, value_enum, value_name = "KIND", conflicts_with_all = ["to", "attach"])]
    from: Option<Source>,
    /// With --to lava: write the records, too, as lines that --from lava-log finds in the log
    #[arg(long, conflicts_with = "from")]
    attach: bool,
    /// Write to FILE instead of the standard output; with --from the records go to this folder [default: the log's name
    /// without its end]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// The input in place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// The log of a LAVA job
    LavaLog,
}

/// Formats of other programs.
const FORMATS: Table<Target, 6> = [
    (Target::Gbench, "gbench", "Google Benchmark's JSON, for compare.py and other readers of it"),
    (Target::Junit, "junit", "JUnit's XML, for continuous integration"),
    (Target::Ktap, "ktap", "The kernel's test protocol"),
    (Target::Lava, "lava", "Signals in the output of a LAVA job"),
    (Target::Kcidb, "kcidb", "A submission to KCIDB, schema 5.3"),
    (
        Target::Csv,
        "csv",
        "A row for each run and a column for each measure, for Apache Otava and spreadsheets",
    ),
];

/// Converts them.
pub(crate) fn run(arguments: &ConvertArgs) -> CommandResult {
    let Some(format) = arguments.to else {
        return lava_log::run(&arguments.file, arguments.output.as_deref());
    };
    if arguments.attach && format != Target::Lava {
        return Err(Failure::new(exit::USAGE, "--attach goes with --to lava"));
    }
    let runs = arguments.file.iter().map(|path| read(path, tell)).collect::<Result<Vec<_>, _>>()?;
    let text = match arguments.attach {
        true => signals(&arguments.file, &runs, tell).map_err(Failure::from),
        false => convert(&runs, format).map_err(|why| {
            let names: Vec<String> = arguments.file.iter().map(|file| file.display().to_string()).collect();
            Failure::new(exit::USAGE, format_args!("{}: {why}", names.join(", ")))
        }),
    }?;
    let Some(output) = &arguments.output else { return say(&text) };
    if arguments.file.iter().any(|record| is_same_file(record, output)) {
        let why = format_args!("{}: this is the record that is read", output.display());
        return Err(Failure::new(exit::USAGE, why));
    }
    Sink::file(output).deliver(&text)?;
    Ok(exit::FINE)
}
