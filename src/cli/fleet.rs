//! The command `fleet`: writes the files by which test harnesses run this program on many devices.
//! Not here: running on devices, which is the harness's work; results of many devices (`store::across`).

mod lava;
mod lava_case;
mod tradefed;

use std::fs;
use std::path::Path;

use clap::{Args, Subcommand};
use store::input;

use super::program::Program;
use super::{CommandResult, Failure, OrExit, exit};

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

/// Writes a file of a folder, which is created if missing.
fn write(folder: &Path, file: &Path, act: impl Fn(&Path) -> std::io::Result<()>) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::of_file(exit::INTERNAL, "make", folder, &error))?;
    act(file).map_err(|error| Failure::of_file(exit::INTERNAL, "write", file, &error))
}

/// The architecture of a program by Android's name. Facts: `elf(5)`, `e_machine` at byte 18.
fn architecture(program: &Path) -> Result<&'static str, Failure> {
    input::whole(program)?;
    let bytes = fs::read(program).map_err(|error| Failure::of_file(exit::USAGE, "read", program, &error))?;
    let machine = bytes.get(18..20).filter(|_| bytes.starts_with(b"\x7fELF"));
    let known = match machine {
        Some([183, 0]) => Some("arm64"),
        Some([40, 0]) => Some("arm"),
        Some([62, 0]) => Some("x86_64"),
        Some([3, 0]) => Some("x86"),
        _ => None,
    };
    let message = || {
        format!("{} is no program for a device's architecture (arm64, arm, x86_64, x86)", program.display())
    };
    known.ok_or_else(message).or_exit(exit::USAGE)
}
