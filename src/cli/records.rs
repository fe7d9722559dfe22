//! Options about comparing records.
//! Not here: reading those that are named (`store::records`), comparing (`record::compare`).

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use record::across::Across;
use record::compare::{Comparison, Group, Metric, Options};
use record::render::across;
use record::render::compare::{json, markdown, text};
use store::records::group;
use units::typed::Percent;

use super::output::Sink;
use super::{Failure, OrExit, exit, tell};

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
        let options = self.options().or_exit(exit::USAGE)?;
        let (a, b) = (group(a, tell)?, group(b, tell)?);
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
