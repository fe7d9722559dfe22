//! Room: `binderperf state`: the driver's own account of itself.
//! Not here: where it is read (`lab::state`).

use std::path::PathBuf;

use clap::Args;
use lab::conformance::Device;
use lab::plan::Driver;
use lab::state::{self, StateFile};

use super::choice;
use super::driver::{DRIVERS, asked_for};
use super::{complain, exit, say};

const FILES: [StateFile; 5] = [
    StateFile::State,
    StateFile::Stats,
    StateFile::Transactions,
    StateFile::TransactionLog,
    StateFile::FailedTransactionLog,
];

/// Show the driver's own state: processes, threads, nodes, references, buffers, calls under way, counters
#[derive(Clone, Debug, Args)]
pub(crate) struct StateArgs {
    /// Device whose driver to ask: auto, a name (binder, hwbinder, ...) or a path
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Device,

    /// The kernel's driver, or the embedded one: also where the kernel has none, or with --context-dir [default: $BINDERPERF_DRIVER, else auto]
    #[arg(long, value_name = "DRIVER", value_parser = choice::of(DRIVERS))]
    driver: Option<Driver>,

    /// Embedded driver: the directory that its processes share [default: the user's]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    context_dir: Option<PathBuf>,

    /// What to show: everything, counters, calls under way, the last calls, the last that failed
    #[arg(default_value_t, value_name = "WHICH", value_parser = choice::of(FILES))]
    which: StateFile,
}

/// Shows it; the result is the exit status.
pub(crate) fn run(args: &StateArgs) -> u8 {
    let embedded = || state::of_embedded(args.context_dir.as_deref(), args.which);
    let kernel = || state::of_device(&args.device, args.which);
    let alone = |trouble| vec![trouble];
    let account = match asked_for(args.driver) {
        Err(why) => {
            complain(why);
            return exit::USAGE;
        }
        Ok(Driver::Kernel) if args.context_dir.is_some() => {
            complain("--context-dir is a setting of the embedded driver, and --driver is kernel");
            return exit::USAGE;
        }
        Ok(Driver::Embedded) => embedded().map_err(alone),
        Ok(Driver::Kernel) => kernel().map_err(alone),
        Ok(Driver::Auto) if args.context_dir.is_some() => embedded().map_err(alone),
        Ok(Driver::Auto) => kernel().or_else(|none| embedded().map_err(|other| vec![none, other])),
    };
    match account {
        Ok(text) => say(&text),
        Err(troubles) => {
            troubles.iter().for_each(complain);
            exit::UNABLE
        }
    }
}
