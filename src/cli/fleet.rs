//! The command `fleet`: writes the files by which test harnesses run this program on many devices.
//! Not here: running on devices, which is the harness's work; results of many devices (`store::across`).

mod lava;
mod lava_case;
mod tradefed;

use clap::{Args, Subcommand};

use super::CommandResult;
use super::program::Program;

/// Write what a test harness needs to run the tests on many devices
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    harness: Harness,
}

#[derive(Debug, Subcommand)]
enum Harness {
    Lava(lava::LavaArgs),
    LavaCase(lava_case::CaseArgs),
    Tradefed(tradefed::TradefedArgs),
}

/// Writes the files.
pub(crate) fn run(args: &FleetArgs, program: &Program) -> CommandResult {
    match &args.harness {
        Harness::Lava(args) => lava::run(args, program),
        Harness::LavaCase(args) => lava_case::run(args, program),
        Harness::Tradefed(args) => tradefed::run(args),
    }
}
