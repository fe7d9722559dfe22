//! Room: records as they are named on a command line: a file, a folder of them, or several with commas between; and
//! the flags about comparing them.
//! Not here: reading one (`record::read`), comparing (`record::compare`).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use record::compare::{CannotCompare, Comparison, Group, Member, Metric, Options};
use record::render::compare::{json, markdown, text};
use record::{ReadError, Run};

use super::output::Sink;
use super::{complain, exit, note};

/// A share, typed in percent.
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

/// Every metric's name.
pub(super) fn metrics() -> impl TypedValueParser<Value = Metric> {
    PossibleValuesParser::new(Metric::ALL.map(Metric::name)).try_map(|name| name.parse::<Metric>())
}

/// How to compare, and how to show it.
#[derive(Clone, Debug, Args)]
pub(super) struct CompareFlags {
    /// What of each run is compared
    #[arg(help_heading = "Comparing", long, value_name = "METRIC", default_value = "median", value_parser = metrics())]
    metric: Metric,

    /// "No difference" is said only if one of this size can be excluded
    #[arg(help_heading = "Comparing", long, value_name = "PERCENT", default_value = "5%")]
    resolution: Percent,

    /// Compare what should not be: emulated with real CPUs, builds with debug assertions with others
    #[arg(help_heading = "Comparing", long)]
    force: bool,

    /// How to show it
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Text)]
    pub(super) format: Form,

    /// Write it to FILE instead of the standard output
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Forms of a comparison.
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
        let Self { metric, force, .. } = *self;
        Ok(Options { metric, force, resolution: self.resolution.0, ..Options::default() })
    }

    /// How to compare, and the two groups that these words name. The error is an exit status; why has been said.
    pub(super) fn read(&self, a: &str, b: &str) -> Result<(Options, Group, Group), u8> {
        let read = || Ok((self.options()?, group(a)?, group(b)?));
        read().map_err(|why: String| {
            complain(why);
            exit::USAGE
        })
    }

    /// Whether a file was named for the result.
    pub(super) fn has_file(&self) -> bool {
        self.out.is_some()
    }

    /// Opens the place for the result, before anything that takes long.
    pub(super) fn sink(&self) -> Sink {
        self.out.as_deref().map_or_else(Sink::stdout, Sink::file)
    }
}

impl Form {
    /// A comparison in this form.
    pub(super) fn of(self, found: &Comparison) -> String {
        match self {
            Self::Text => text(found),
            Self::Markdown => markdown(found),
            Self::Json => json(found),
        }
    }
}

/// Says why two groups cannot be compared; the exit status for that.
pub(super) fn cannot_compare(error: &CannotCompare) -> u8 {
    complain(error);
    exit::USAGE
}

/// Writes a result; `status` unless that fails.
pub(super) fn deliver(mut sink: Sink, text: &str, status: u8) -> u8 {
    sink.put(text);
    match sink.trouble() {
        Some(trouble) => {
            complain(trouble);
            exit::INTERNAL
        }
        None => status,
    }
}

/// The records that these words name.
///
/// # Errors
/// A word names nothing, or something that is no sound record.
pub(super) fn group(words: &str) -> Result<Group, String> {
    let paths: Vec<&str> = match Path::new(words).exists() {
        // A comma may be part of a name.
        true => vec![words],
        false => words.split(',').filter(|word| !word.is_empty()).collect(),
    };
    let mut members = Vec::new();
    for path in paths {
        match Path::new(path).is_dir() {
            true => members.extend(folder(Path::new(path))?),
            false => members.push(member(Path::new(path)).map_err(|error| error.in_words(path))?),
        }
    }
    if members.is_empty() {
        return Err(format!("{words:?} names no record"));
    }
    Ok(Group { name: words.to_owned(), members })
}

/// Why a file is not read.
enum Unread {
    Open(std::io::Error),
    Content(ReadError),
}

impl Unread {
    fn in_words(&self, path: &str) -> String {
        match self {
            Self::Open(error) => format!("cannot open {path}: {}", lab::describe_errno(error)),
            Self::Content(error) => format!("{path}: {error}"),
        }
    }
}

fn member(path: &Path) -> Result<Member, Unread> {
    let run =
        File::open(path).map_err(Unread::Open).and_then(|file| Run::read(file).map_err(Unread::Content))?;
    Ok(Member { file: path.display().to_string(), run })
}

/// Every record among the `.json` files of a folder; other JSON is passed over.
fn folder(path: &Path) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    for file in &files_of(path, "json")? {
        match member(file) {
            Ok(member) => members.push(member),
            // What `run` leaves beside its records.
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

/// The files of a folder whose names end so, in their order.
pub(super) fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot look into {}: {}", folder.display(), lab::describe_errno(&error)))?;
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
