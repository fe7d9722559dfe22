//! The command `state`: shows the driver's own state.
//! Not here: where it is read (`backend::state`).

use std::path::PathBuf;

use backend::state::{StateFile, StateSource};
use bench::plan::Driver;
use clap::Args;
use conformance::Device;

use super::choice;
use super::driver::{DRIVERS, asked_for};
use super::{CommandResult, Failure, OrExit, complain, exit, say};

const FILES: [StateFile; 5] = [
    StateFile::State,
    StateFile::Stats,
    StateFile::Transactions,
    StateFile::TransactionLog,
    StateFile::FailedTransactionLog,
];

/// Show the driver's own state: processes, threads, nodes, references, buffers, calls in progress, counters
#[derive(Clone, Debug, Args)]
pub(crate) struct StateArgs {
    #[command(flatten)]
    whose: Whose,

    /// What to show: everything, counters, calls in progress, the last calls, the last failed calls
    #[arg(default_value_t, value_name = "WHICH", value_parser = choice::of(FILES))]
    which: StateFile,
}

/// The driver whose state it is.
#[derive(Clone, Debug, Args)]
pub(super) struct Whose {
    /// Device of the driver: auto, a name (binder, hwbinder, ...) or a path
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Device,

    /// The kernel's driver or the embedded one; auto is the embedded one without a kernel's or with --context-dir
    /// [default: $BINDERPERF_DRIVER, else auto]
    #[arg(long, value_name = "DRIVER", value_parser = choice::of(DRIVERS))]
    driver: Option<Driver>,

    /// Embedded driver: the directory that its processes share [default: the user's]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    context_dir: Option<PathBuf>,
}

impl Whose {
    /// The driver whose files are read.
    pub(super) fn source(&self) -> Result<StateSource, Failure> {
        Ok(match asked_for(self.driver).or_exit(exit::USAGE)? {
            Driver::Kernel if self.context_dir.is_some() => {
                let why = "--context-dir is a setting of the embedded driver, and --driver is kernel";
                return Err(Failure::new(exit::USAGE, why));
            }
            Driver::Embedded => StateSource::Embedded(self.context_dir.clone()),
            Driver::Kernel => StateSource::Kernel(self.device.clone()),
            Driver::Auto if self.context_dir.is_some() => StateSource::Embedded(self.context_dir.clone()),
            Driver::Auto => StateSource::Either(self.device.clone()),
        })
    }
}

/// Shows the state.
pub(crate) fn run(args: &StateArgs) -> CommandResult {
    match args.whose.source()?.read(args.which) {
        Ok(text) => say(&text),
        Err(troubles) => {
            troubles.iter().for_each(complain);
            Ok(exit::UNABLE)
        }
    }
}
