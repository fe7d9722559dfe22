//! Records named on the command line, by file, folder or several separated by commas; and options about comparing them.
//! Not here: reading one (`record::read`), comparing (`record::compare`).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use record::across::Across;
use record::compare::{Comparison, Group, Member, Metric, Options};
use record::import::any;
use record::read::MAX_BYTES;
use record::render::across;
use record::render::compare::{json, markdown, text};
use record::{ReadError, Run};

use super::input;
use super::output::Sink;
use super::{Failure, OrExit, exit, note};

/// The end of the file name of a result that was disturbed and measured again: it stays out of reports and comparisons.
pub(super) const FIRST: &str = ".first.json";

/// Whether a file is such a result.
pub(super) fn is_first(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(FIRST))
}

/// A share, given in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Percent(pub(super) f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>();
        let percent = number.ok().filter(|percent| (0.0..=10_000.0).contains(percent));
        percent.map(|percent| Self(percent / 100.0)).ok_or_else(|| format!("{text:?} is no share such as 5%"))
    }
}

/// The name of every metric.
pub(super) fn metrics() -> impl TypedValueParser<Value = Metric> {
    PossibleValuesParser::new(Metric::ALL.map(Metric::name)).try_map(|name| name.parse::<Metric>())
}

/// Options of a comparison and its output.
#[derive(Clone, Debug, Args)]
pub(super) struct CompareFlags {
    /// The metric to compare [default: median; mean of other programs' results]
    #[arg(help_heading = "Comparing", long, value_name = "METRIC", value_parser = metrics())]
    metric: Option<Metric>,

    /// "No difference" is said only if one of this size can be excluded
    #[arg(help_heading = "Comparing", long, value_name = "PERCENT", default_value = "5%")]
    resolution: Percent,

    /// Compare unlike records: emulated with real CPUs, builds with and without debug assertions
    #[arg(help_heading = "Comparing", long)]
    force: bool,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Text)]
    pub(super) format: Form,

    /// Write to FILE instead of the standard output
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Output formats of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A table
    Text,
    /// A table for a pull request
    Markdown,
    /// Every figure
    Json,
}

impl CompareFlags {
    pub(super) fn options(&self) -> Result<Options, String> {
        if self.resolution.0 <= 0.0 {
            return Err("--resolution must be above 0%".to_owned());
        }
        let (metric, force) = (self.metric(), self.force);
        Ok(Options { metric, force, resolution: self.resolution.0, ..Options::default() })
    }

    /// The options and the two groups of records.
    pub(super) fn read(&self, a: &str, b: &str) -> Result<(Options, Group, Group), Failure> {
        let read = || Ok::<_, String>((self.options()?, group(a)?, group(b)?));
        let (options, a, b) = read().or_exit(exit::USAGE)?;
        let usual = Metric::usual(a.members.iter().chain(&b.members).map(|member| &member.run));
        Ok((Options { metric: self.metric.unwrap_or(usual), ..options }, a, b))
    }

    /// The metric to compare.
    pub(super) fn metric(&self) -> Metric {
        self.metric.unwrap_or(Metric::Median)
    }

    /// Whether the result goes to a file.
    pub(super) fn has_file(&self) -> bool {
        self.out.is_some()
    }

    /// Opens the output, before anything that takes long.
    pub(super) fn sink(&self) -> Sink {
        self.out.as_deref().map_or_else(Sink::stdout, Sink::file)
    }
}

impl Form {
    /// A comparison in this format.
    pub(super) fn of(self, found: &Comparison) -> String {
        match self {
            Self::Text => text(found),
            Self::Markdown => markdown(found),
            Self::Json => json(found),
        }
    }

    /// Records beside one another in this format.
    pub(super) fn of_across(self, found: &Across) -> String {
        match self {
            Self::Text => across::text(found),
            Self::Markdown => format!("```\n{}```\n", across::text(found)),
            Self::Json => across::json(found),
        }
    }
}

/// Reads the named records.
///
/// # Errors
/// A name matches nothing, or something that is no valid record.
pub(super) fn group(words: &str) -> Result<Group, String> {
    let paths: Vec<&str> = match Path::new(words).exists() {
        // A comma may be part of a file name.
        true => vec![words],
        false => words.split(',').filter(|word| !word.is_empty()).collect(),
    };
    let mut members = Vec::new();
    for path in paths {
        match Path::new(path).is_dir() {
            true => members.extend(folder(Path::new(path))?),
            false => members.extend(in_file(Path::new(path)).map_err(|error| error.in_words(path))?),
        }
    }
    if members.is_empty() {
        return Err(format!("{words:?} names no record"));
    }
    Ok(Group { name: words.to_owned(), members })
}

/// The message about a file that cannot be read.
enum Unread {
    Open(std::io::Error),
    Content(ReadError),
}

impl Unread {
    fn in_words(&self, path: &str) -> String {
        match self {
            Self::Open(error) => format!("cannot open {path}: {}", sys::errno::describe(error)),
            Self::Content(error) => format!("{path}: {error}"),
        }
    }
}

/// Reads a record, or the only run of another program's output.
pub(super) fn read(path: &Path) -> Result<Run, Failure> {
    match read_all(path)?.as_mut_slice() {
        [run] => Ok(run.clone()),
        several => {
            let why = format_args!("{} has {} runs: give a file with one", path.display(), several.len());
            Err(Failure::new(exit::USAGE, why))
        }
    }
}

/// Reads a record, or each run of another program's output.
pub(super) fn read_all(path: &Path) -> Result<Vec<Run>, Failure> {
    let name = path.display().to_string();
    let members = in_file(path).map_err(|error| error.in_words(&name)).or_exit(exit::USAGE)?;
    Ok(members.into_iter().map(|member| member.run).collect())
}

/// The runs of a file: a record, or each run of another program's output, whose date may be that of the file.
pub(super) fn runs(path: &Path) -> Result<Vec<Run>, ReadError> {
    runs_of(path, input::stream(path).map_err(ReadError::Io)?)
}

/// The runs of an open file.
fn runs_of(path: &Path, file: impl Read) -> Result<Vec<Run>, ReadError> {
    let changed = fs::metadata(path).and_then(|about| about.modified()).unwrap_or_else(|_| SystemTime::now());
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    any(&bytes, &host::date(changed))
}

/// The runs of a file with its name, numbered where there are several.
fn in_file(path: &Path) -> Result<Vec<Member>, Unread> {
    // What cannot be opened is told apart from what cannot be read.
    let file = input::stream(path).map_err(Unread::Open)?;
    let runs = runs_of(path, file).map_err(Unread::Content)?;
    let several = runs.len() > 1;
    let named = (1..).zip(runs).map(|(number, run): (usize, Run)| {
        let of = if several { format!(" (run {number})") } else { String::new() };
        Member { file: format!("{}{of}", path.display()), run }
    });
    Ok(named.collect())
}

/// Every record, and every output of another program, among the `.json` and `.txt` files of a folder; others are skipped.
fn folder(path: &Path) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    for file in files_of(path, "txt")? {
        // Other text is no output of a test.
        match in_file(&file) {
            Ok(found) => members.extend(found),
            Err(Unread::Content(error @ ReadError::Import(_))) => {
                return Err(Unread::Content(error).in_words(&file.display().to_string()));
            }
            Err(_) => {}
        }
    }
    for file in files_of(path, "json")?.iter().filter(|file| !is_first(file)) {
        match in_file(file) {
            Ok(found) => members.extend(found),
            // Other output of `run` in the same folder.
            Err(Unread::Content(ReadError::Foreign { found })) if found.starts_with("\"binderperf.") => {}
            Err(Unread::Content(ReadError::Foreign { .. })) => {
                note(format_args!("{}: no record, passed over\n", file.display()));
            }
            Err(error) => return Err(error.in_words(&file.display().to_string())),
        }
    }
    if members.is_empty() {
        let shown = path.display();
        return Err(format!("the folder {shown} has no record (a .json file that --record wrote)"));
    }
    Ok(members)
}

/// The files of a folder with this extension, sorted by name.
pub(super) fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        format!("cannot look into {}: {}", folder.display(), sys::errno::describe(&error))
    })?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == extension) && file.is_file());
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_typed_in_percent() {
        for (text, share) in [("5%", 0.05), ("5", 0.05), ("0.5 %", 0.005), ("150%", 1.5), ("0%", 0.0)] {
            assert_eq!(text.parse(), Ok(Percent(share)), "{text}");
        }
        for bad in ["", "%", "five", "-1%", "nan", "inf%", "5%%"] {
            assert!(bad.parse::<Percent>().is_err(), "{bad}");
        }
    }
}
