//! The command `throughput compare-flavours`: binder, hwbinder, the same interface without IPC, and every control, in one
//! run.
//! Not here: measuring (`bench::run`), the tables (`record::render::flavours`).

use std::path::PathBuf;

use bench::plan::{
    Controls, Device, Family, Fault, MinTime, Placement, Plan, Release, fresh_seed, largest_payload,
};
use clap::Parser;
use record::Run;
use record::render::flavours::{self, Limit};

use super::super::choice;
use super::super::driver::DriverArgs;
use super::super::measure::{completeness, measure};
use super::super::show::Form;
use super::super::{A_YEAR_S, CommandResult, command_line, exit};
use super::crowd;

/// Compare binder, hwbinder, the same interface without IPC, and every control
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct FlavoursArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// Payloads in bytes
    #[arg(short = 's', long, value_name = "BYTES", value_delimiter = ',', allow_negative_numbers = true,
        default_values_t = [4, 64, 1024, 4096, 16384, 65536])]
    payload: Vec<u64>,

    /// Rounds of every case, in random order
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Duration of a round of each case in seconds
    #[arg(long, value_name = "S", default_value = "0.05", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: f64,

    /// Round trips of each case in a round, instead of a duration
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "duration", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// CPUs of both sides of every case: the scheduler's choice, the same, or two; spinning always has two
    #[arg(long, value_name = "WHERE", default_value_t = Placement::Same,
        value_parser = choice::of([Placement::Default, Placement::Same, Placement::Cross]))]
    placement: Placement,

    /// Android release of binder's wire format: 8 to 16, 15-qpr
    #[arg(long, value_name = "N", default_value_t)]
    android: Release,

    /// Seed of the order [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Exit with 1 when a limit is missed
    #[arg(help_heading = "Verdict", long)]
    strict: bool,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Summary)]
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

impl FlavoursArgs {
    fn plan(&self) -> Result<Plan, String> {
        if !matches!(self.driver.device(), Device::Auto | Device::Private) {
            return Err(
                "--device does not go with compare-flavours: each flavour needs a context of its own"
                    .to_owned(),
            );
        }
        if let Some(payload) = self.payload.iter().find(|payload| **payload > largest_payload()) {
            return Err(format!(
                "a payload of {payload} B does not fit into a receiver's buffer, in which a client's last call may lie \
                 beside its next one: the limit is {} B",
                largest_payload()
            ));
        }
        let mut payloads = self.payload.clone();
        payloads.sort_unstable();
        payloads.dedup();
        Ok(Plan {
            test: flavours::TEST.to_owned(),
            tests: Family::TESTS.to_vec(),
            payloads,
            controls: Controls::with_parts(),
            min_time: self.iterations.map_or(MinTime::Seconds(self.duration), MinTime::Iterations),
            repetitions: self.rounds,
            interleaving_seed: Some(self.seed.unwrap_or_else(fresh_seed)),
            wanted: self.driver.wanted()?,
            placement: self.placement,
            spin_apart: true,
            android: self.android,
            faults: self.fault.clone(),
            patience_s: self.patience,
            command_line: command_line(),
            ..Plan::default()
        })
    }
}

/// Measures and prints the tables.
pub(super) fn run(args: &FlavoursArgs) -> CommandResult {
    let print = |run: &Run| args.format.of(run);
    measure(args.plan(), args.record.as_deref(), bench::run::execute, print, |run| verdict(run, args.strict))
}

fn verdict(run: &Run, strict: bool) -> u8 {
    // A shared machine may miss any limit, so only `--strict` makes that a failure.
    let missed = strict && !flavours::limits(run).iter().all(Limit::is_met);
    if completeness(run) != exit::FINE || run.any_failed() || !run.complete || missed {
        exit::FAILED
    } else {
        exit::FINE
    }
}
