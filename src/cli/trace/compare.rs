//! The command `trace compare`: shows what became slower between two traces.
//! Not here: the comparison (`trace_compare`), the selection of calls (`ask`).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use store::traces::each;
use trace::verdict::{By, Sampler};
use trace_compare::{Options, Side, compare};

use super::ask::FilterArgs;
use crate::cli::output::Sink;
use crate::cli::{CommandResult, Failure, OrExit, choice, exit};
use units::typed::Percent;

/// Compare two traces: which methods became slower, by which cause, with intervals
///
/// A and B are traces of any form that `trace analyze` reads, also of two different ones. Calls are compared by
/// interface and method, or by the names of both processes and the transaction code where the trace names no method.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompareArgs {
    /// The trace that B is compared with
    a: PathBuf,

    /// The trace to compare with A
    b: PathBuf,

    #[command(flatten, next_help_heading = "Which calls")]
    filter: FilterArgs,

    /// What the calls of a row have in common: calling and called process, interface, or method
    #[arg(long, value_name = "WHAT", default_value_t = By::Method, value_parser = choice::of(By::ALL))]
    by: By,

    /// Differences below this size are none, and "no difference" is said only if one of this size can be excluded
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    resolution: Percent,

    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Write to FILE instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text
    Text,
    /// JSON: every row and cause
    Json,
}

/// Compares them.
pub(super) fn run(args: &CompareArgs) -> CommandResult {
    if args.resolution.0 <= 0.0 {
        return Err(Failure::new(exit::USAGE, "--resolution must be above 0%"));
    }
    let (a, b) = (args.side(&args.a)?, args.side(&args.b)?);
    let options = Options { by: args.by, resolution: args.resolution.0 };
    let found = compare(&a, &b, options).or_exit(exit::USAGE)?;
    let json = || found.to_json().map_err(|error| format!("could not write the result as JSON: {error}"));
    let text = match args.format {
        Form::Text => found.to_string(),
        Form::Json => json().or_exit(exit::INTERNAL)?,
    };
    args.out.as_deref().map_or_else(Sink::stdout, Sink::file).deliver(&text)?;
    Ok(exit::FINE)
}

impl CompareArgs {
    fn side(&self, path: &Path) -> Result<Side, Failure> {
        let name = path.display().to_string();
        let mut sampler = Sampler::new(self.filter.filter(), self.by);
        let read = each(path, |event, names| sampler.take(event, names));
        let reader = read.map_err(|why| format!("{name}: {why}")).or_exit(exit::USAGE)?;
        Ok(Side { name, sampled: sampler.finish(reader.names(), reader.report()) })
    }
}
