//! The command `fleet tradefed`: its options.
//! Not here: the modules (`fleet::tradefed`).

use std::path::PathBuf;

use clap::Args;
use fleet::tradefed::write_modules;

use crate::cli::{CommandResult, OrExit, exit, say};

/// Write modules for Android's Trade Federation (tradefed)
///
/// DIR gets `binderperf-benchmark`, for its Google Benchmark runner, and `binderperf-tests`, for its runner of
/// executables: put both into the folder of test cases. The records come back with the invocation's logs.
#[derive(Debug, Args)]
pub(super) struct TradefedArgs {
    /// Folder for the modules, which is created if missing
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,

    /// This program for the devices' architecture; may be repeated [default: this program]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    binary: Vec<PathBuf>,

    /// Run without root: for production builds, where only other programs' services can be called; binderperf-tests only
    #[arg(long)]
    no_root: bool,
}

/// Writes both modules.
pub(super) fn run(args: &TradefedArgs) -> CommandResult {
    let own = || std::env::current_exe().map(|program| vec![program]).or_exit(exit::INTERNAL);
    let programs = if args.binary.is_empty() { own()? } else { args.binary.clone() };
    write_modules(&args.out, &programs, !args.no_root)?;
    say(&format!("{}\n", args.out.display()))
}
