//! The common part of all tests with many workers: their shared options.
//! Not here: their own flags (`workers`, `scaling`), running them (`conduct::crowd`).

use std::path::PathBuf;

use bench::plan::Flavour;
use bench::plan::{Fault, Release, fresh_seed};
use bench::workers::{Group, WorkersOptions};
use clap::Args;
use record::Run;

use super::super::driver::DriverArgs;
use super::super::exact::ExactArgs;
use super::super::show::Form;
use super::super::{A_YEAR_S, CommandResult, Failure, OrExit, command_line, exit};
use bench::plan::MinTime;

/// Flags of every test with many workers.
#[derive(Clone, Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    driver: DriverArgs,

    /// Android release of the service manager's protocol: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    android: Release,

    /// Rounds of every case
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seed of the choice of callees [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Inject a fault: KIND=WORKER with kill-server or hang-server, and worker3 or service0
    #[arg(long, hide = true, value_name = "KIND=WORKER")]
    fault: Vec<Fault>,

    /// Seconds (more on a busy machine) without a call after which a worker counts as hanging
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

impl Common {
    /// A plan with these settings.
    pub(super) fn options(
        &self,
        test: &str,
        flavour: Flavour,
        groups: Vec<Group>,
        length: MinTime,
    ) -> Result<WorkersOptions, String> {
        Ok(WorkersOptions {
            test: test.to_owned(),
            flavour,
            groups,
            length,
            rounds: self.rounds,
            training: false,
            as_android: false,
            expected_max_ns: None,
            seed: self.seed.unwrap_or_else(fresh_seed),
            wanted: self.driver.wanted()?,
            android: self.android,
            faults: self.fault.clone(),
            patience_s: self.patience,
            command_line: command_line(),
        })
    }
}

/// Longest time of a round in seconds.
const LONGEST_S: f64 = 3600.0;

/// Parses a time in seconds: `2`, `0.5`, `0.5s`.
pub(in crate::cli) fn seconds(text: &str) -> Result<f64, String> {
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= LONGEST_S => Ok(seconds),
        _ => Err(format!("it is no time in seconds above 0 and up to {LONGEST_S}")),
    }
}

/// Whether the output is to be that of Android's tool.
pub(super) fn as_android(flag: ExactArgs, applet: bool, format: Option<Form>) -> Result<bool, Failure> {
    flag.is_wanted(applet, format.map(|_| "--format")).or_exit(exit::USAGE)
}

/// Runs a test and prints it in this format.
pub(super) fn run(options: Result<WorkersOptions, String>, common: &Common, form: Form) -> CommandResult {
    let whole = |run: &Run| form.of(run);
    let whole: Option<&dyn Fn(&Run) -> String> = if form == Form::Lines { None } else { Some(&whole) };
    conduct::crowd::run(options, common.record.as_deref(), whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, want) in [("2", 2.0), ("0.5", 0.5), ("1.5s", 1.5), ("3600", 3600.0)] {
            assert_eq!(seconds(text), Ok(want));
        }
        for bad in ["", "0", "-1", "x", "inf", "nan", "3601", "5ms"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
