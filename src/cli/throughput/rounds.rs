//! Options of the tests that measure all their cases in rounds and print one short table, and their verdict.
//! Not here: their cases (`flavours`, `super::super::kpi`).

use std::path::PathBuf;

use bench::plan::{Device, Fault, MinTime, Plan, fresh_seed};
use bench::run::Observer;
use clap::Args;
use conduct::measure::measure;
use conduct::verdict::rounds_status;
use record::Run;

use super::super::constraints::ConstraintArgs;
use super::super::driver::DriverArgs;
use super::super::show::{Form, forms};
use super::super::{A_YEAR_S, CommandResult, command_line};
use super::crowd;

/// Duration of a round of each case, in seconds.
const DURATION_S: f64 = 0.05;

#[derive(Debug, Args)]
pub(in crate::cli) struct RoundsArgs {
    #[command(flatten)]
    driver: DriverArgs,

    #[command(flatten)]
    constraints: ConstraintArgs,

    /// Duration of a round of each case in seconds [default: 0.05]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: Option<f64>,

    /// Round trips of each case in a round instead of a duration (of each thread, where there are several)
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "duration", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// Seed of the order [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Output format
    #[arg(help_heading = "Output", long, value_parser = forms(), default_value = "summary")]
    format: Form,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Inject a fault: KIND=CASE with kill-server, hang-server or corrupt-reply
    #[arg(long, hide = true, value_name = "KIND=CASE")]
    fault: Vec<Fault>,

    /// Seconds (more on a busy machine) without a round trip after which a case counts as hanging
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

impl RoundsArgs {
    /// A plan of a test with these settings, in a random order; `counted` round trips where nothing says how many or how long.
    pub(in crate::cli) fn plan(&self, test: &str, counted: Option<u64>) -> Result<Plan, String> {
        if !matches!(self.driver.device(), Device::Auto | Device::Private) {
            return Err(format!("--device does not go with {test}: each flavour needs a context of its own"));
        }
        Ok(Plan {
            test: test.to_owned(),
            min_time: match (self.iterations, self.duration, counted) {
                (Some(iterations), ..) | (None, None, Some(iterations)) => MinTime::Iterations(iterations),
                (None, duration, _) => MinTime::Seconds(duration.unwrap_or(DURATION_S)),
            },
            interleaving_seed: Some(self.seed.unwrap_or_else(fresh_seed)),
            wanted: self.driver.wanted()?,
            faults: self.fault.clone(),
            patience_s: self.patience,
            command_line: command_line(),
            ..Plan::default()
        })
    }

    /// Measures and prints the table; `is_missed` is what makes a whole record a failure.
    pub(in crate::cli) fn measure(
        &self,
        plan: Result<Plan, String>,
        is_missed: impl FnOnce(&Run) -> bool,
    ) -> CommandResult {
        let print = |run: &Run| self.format.of(run);
        let held = self.constraints.wanted();
        let execute =
            |plan: &Plan, observer: &mut dyn Observer| held.held(|| bench::run::execute(plan, observer));
        measure(plan, self.record.as_deref(), execute, print, |run| rounds_status(run, is_missed(run)))
    }
}
