//! Options that the experiments on one machine have in common, and the outputs that they name.
//! Not here: what an experiment is (`bench`), its own options (`inversion`, `overload`, `background`).

use std::path::PathBuf;

use bench::plan::Release;
use bench::run::{Observer, RunError};
use clap::Args;
use conduct::measure::measure;
use record::Run;

use super::show::{Form, forms};
use super::{A_YEAR_S, CommandResult};

#[derive(Clone, Debug, Args)]
pub(super) struct ExperimentArgs {
    /// Android release of the service manager's protocol: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    pub(super) android: Release,

    /// Write the whole record to FILE; `binderperf show FILE` reads it, `binderperf report FILE` draws it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Output format
    #[arg(help_heading = "Output", long, value_parser = forms(), default_value = "summary")]
    format: Form,

    /// Time limit of the whole test in seconds
    #[arg(help_heading = "Verdict", long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    pub(super) time_limit: u64,
}

impl ExperimentArgs {
    /// Runs an experiment; the verdict is the exit status.
    pub(super) fn measure<O>(
        &self,
        options: Result<O, String>,
        execute: impl FnOnce(&O, &mut dyn Observer) -> Result<Run, RunError>,
        verdict: impl FnOnce(&Run) -> u8,
    ) -> CommandResult {
        measure(options, self.record.as_deref(), execute, |run| self.format.of(run), verdict)
    }
}
