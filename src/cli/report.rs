//! The command `report`: renders records as one page, as Markdown, or as the summary of `run`.
//! Not here: what a report says (`record::render::report`), reading the records (`store::bundle`).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use record::across::By;
use record::compare::Metric;
use record::render::across as beside;
use record::render::report::{html, json, markdown, summary};
use store::across;
use store::bundle::read;

use super::choice;
use super::grouping::GROUPINGS;
use super::output::Sink;
use super::records;
use super::{CommandResult, Failure, OrExit, exit, say, tell};

/// Make one page of records: verdicts, curves, findings and their evidence
///
/// PATH is a record, or a folder of `run --out`: every record in it, and the doctor's findings. The page is
/// self-contained: no scripts, no network.
///
/// With --across the page puts the records of many devices beside one another, those of folders in folders, too: who
/// stands out first, then each case with a dot for each device, kernel or build.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Records, or folders of records
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Put all records beside one another, by device, kernel or build: a page, a summary or JSON
    #[arg(long, value_parser = choice::table(&GROUPINGS), value_name = "GROUPS", num_args = 0..=1, require_equals = true, default_missing_value = "device")]
    across: Option<By>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Html)]
    format: Form,

    /// Output file; `-` for stdout [default: binderperf-report.html for a page, stdout for the others]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One self-contained page
    Html,
    /// For a pull request
    Markdown,
    /// The summary that `run` prints at its end
    Summary,
    /// The verdicts: expected, measured, why, next
    Json,
}

/// The default file of a page.
const PAGE: &str = "binderperf-report.html";

/// Renders the report.
pub(crate) fn run(args: &ReportArgs) -> CommandResult {
    let text = match args.across {
        Some(grouping) => beside(args, grouping)?,
        None => alone(args)?,
    };
    let usual = if args.format == Form::Html { PAGE } else { "-" };
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(usual));
    if path == Path::new("-") {
        return say(&text);
    }
    Sink::file(&path).deliver(&text)?;
    say(&format!("{}\n", path.display()))
}

/// The report of the records themselves.
fn alone(args: &ReportArgs) -> Result<String, Failure> {
    let bundle = read(&args.paths, tell)?;
    Ok(match args.format {
        Form::Html => html(&bundle).or_exit(exit::INTERNAL)?,
        Form::Markdown => markdown(&bundle),
        Form::Summary => summary(&bundle, ""),
        Form::Json => json(&bundle),
    })
}

/// The report of many records beside one another.
fn beside(args: &ReportArgs, grouping: By) -> Result<String, Failure> {
    let found = across::read(&args.paths, grouping, Metric::Median, tell)?;
    Ok(match args.format {
        Form::Html => beside::html(&found).or_exit(exit::INTERNAL)?,
        Form::Markdown => records::Form::Markdown.of_across(&found),
        Form::Summary => beside::text(&found),
        Form::Json => beside::json(&found),
    })
}
