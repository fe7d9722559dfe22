//! The command `fleet`: writes the files by which test harnesses run this program on many devices.
//! Not here: running on devices, which is the harness's work; results of many devices (`store::across`).

mod lava;
mod lava_case;
mod tradefed;

use ::fleet::FleetError;
use clap::{Args, Subcommand};

use super::program::Program;
use super::{CommandResult, Failure, exit};

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

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let status = match error {
            FleetError::Unusable(_) => exit::USAGE,
            FleetError::File(error) => return error.into(),
            FleetError::Guest(error) => return Self::new(error.exit_code(), error),
            FleetError::NoTar(_) => exit::UNABLE,
            _ => exit::INTERNAL,
        };
        Self::new(status, error)
    }
}
