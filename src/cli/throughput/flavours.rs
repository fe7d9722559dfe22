//! The command `throughput compare-flavours`: binder, hwbinder, the same interface without IPC, and every control, in one
//! run.
//! Not here: measuring (`bench::run`), the tables (`record::render::flavours`).

use bench::plan::request::ascending;
use bench::plan::{Controls, Family, Placement, Plan, Release, largest_payload};
use clap::Parser;
use record::render::flavours::{self, Limit};

use super::super::CommandResult;
use super::super::choice;
use super::rounds::RoundsArgs;

/// Compare binder, hwbinder, the same interface without IPC, and every control
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct FlavoursArgs {
    /// Payloads in bytes
    #[arg(short = 's', long, value_name = "BYTES", value_delimiter = ',', allow_negative_numbers = true,
        default_values_t = [4, 64, 1024, 4096, 16384, 65536])]
    payload: Vec<u64>,

    /// Rounds of every case, in random order
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// CPUs of both sides of every case: the scheduler's choice, the same, or two; spinning always has two
    #[arg(long, value_name = "WHERE", default_value_t = Placement::Same,
        value_parser = choice::of([Placement::Default, Placement::Same, Placement::Cross]))]
    placement: Placement,

    /// Android release of binder's wire format: 8 to 16, 15-qpr
    #[arg(long, value_name = "N", default_value_t)]
    android: Release,

    /// Exit with 1 when a limit is missed
    #[arg(help_heading = "Verdict", long)]
    strict: bool,

    #[command(flatten)]
    each: RoundsArgs,
}

impl FlavoursArgs {
    fn plan(&self) -> Result<Plan, String> {
        if let Some(payload) = self.payload.iter().find(|payload| **payload > largest_payload()) {
            return Err(format!(
                "a payload of {payload} B does not fit into a receiver's buffer, in which a client's last call may lie \
                 beside its next one: the limit is {} B",
                largest_payload()
            ));
        }
        Ok(Plan {
            tests: Family::TESTS.to_vec(),
            payloads: ascending(&self.payload),
            controls: Controls::with_parts(),
            repetitions: self.rounds,
            placement: self.placement,
            spin_apart: true,
            android: self.android,
            ..self.each.plan(flavours::TEST, None)?
        })
    }
}

/// Measures and prints the tables.
pub(super) fn run(args: &FlavoursArgs) -> CommandResult {
    // A shared machine may miss any limit, so only `--strict` makes that a failure.
    args.each.measure(args.plan(), |run| args.strict && !flavours::limits(run).iter().all(Limit::is_met))
}
