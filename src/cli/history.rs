//! The command `history`: keeps figures of runs in one file over time and shows their changes.
//! Not here: what a line is, series and changes (`record::history`), the file (`store::history`).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use record::compare::Metric;
use record::history::{Entry, Series, entries, series};
use record::render::history::{csv, text};
use store::history::{append, read, usual_file};
use store::records::group;

use super::output::Sink;
use super::records::metrics;
use super::{CommandResult, Failure, OrExit, exit, note, tell};

/// Keep the figures of runs over time, and show where they changed
///
/// The file is $XDG_STATE_HOME/binderperf/history.jsonl, or below ~/.local/state: append-only, a line of JSON for each
/// figure.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Add the figures of these records (a file, a folder, or several with commas); each run is added once
    #[arg(long, value_name = "RECORDS")]
    add: Vec<String>,

    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    case: String,

    /// Only this metric: median, p99 or mean
    #[arg(long, value_name = "METRIC", value_parser = metrics())]
    metric: Option<Metric>,

    /// Only environments (machine, driver, settings) that contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    environment: String,

    /// Print a table that Apache Otava reads: a row for each run, of one environment
    #[arg(long, conflicts_with = "format")]
    csv: bool,

    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Use this file instead
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Write to FILE instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Output formats of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A table and the changes
    Text,
    /// Every figure and change
    Json,
}

/// Adds runs or shows the history.
pub(crate) fn run(args: &HistoryArgs) -> CommandResult {
    const NOWHERE: &str = "where is the history? neither XDG_STATE_HOME nor HOME is set: give --file FILE";
    let path = args.file.clone().or_else(usual_file).ok_or(NOWHERE).or_exit(exit::USAGE)?;
    match args.add.as_slice() {
        [] => args.show(&path),
        words => add(words, &path),
    }
}

fn add(words: &[String], path: &Path) -> CommandResult {
    let mut found = Vec::new();
    for word in words {
        let group = group(word, tell)?;
        found.extend(group.members.iter().flat_map(|member| entries(&member.run)));
    }
    let all = found.len();
    let added = append(path, found)?;
    let known = if added < all { format!(" ({} were there)", all - added) } else { String::new() };
    note(format_args!("{added} numbers added to {}{known}\n", path.display()));
    Ok(exit::FINE)
}

impl HistoryArgs {
    fn show(&self, path: &Path) -> CommandResult {
        let (entries, strange) = read(path)?;
        if let Some(first) = strange.first() {
            let more =
                if strange.len() > 1 { format!(" and {} more", strange.len() - 1) } else { String::new() };
            note(format_args!("{}: line {first}{more}: no number of a run, passed over\n", path.display()));
        }
        let wanted = |entry: &Entry| {
            entry.case.contains(&self.case)
                && entry.environment.contains(&self.environment)
                && self.metric.is_none_or(|metric| metric == entry.metric)
        };
        let entries: Vec<Entry> = entries.into_iter().filter(wanted).collect();
        if entries.is_empty() {
            return Err(Failure::new(exit::USAGE, format_args!("{} has no such number", path.display())));
        }
        let text = self.rendered(&series(&entries)).or_exit(exit::USAGE)?;
        self.out.as_deref().map_or_else(Sink::stdout, Sink::file).deliver(&text)?;
        Ok(exit::FINE)
    }

    fn rendered(&self, all: &[Series]) -> Result<String, String> {
        if !self.csv {
            return Ok(match self.format {
                Form::Text => text(all),
                Form::Json => record::render::history::json(all),
            });
        }
        let mut environments: Vec<&str> = all.iter().map(|series| series.environment.as_str()).collect();
        environments.sort_unstable();
        environments.dedup();
        match environments.as_slice() {
            [_] => Ok(csv(all)),
            several => Err(format!(
                "a table is of one environment; choose one with --environment TEXT of\n  {}",
                several.join("\n  ")
            )),
        }
    }
}
