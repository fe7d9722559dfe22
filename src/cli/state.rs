//! Room: `binderperf state`: the driver's own account of itself.
//! Not here: where it is read (`lab::state`).

use clap::Args;
use lab::conformance::Device;
use lab::state::{self, StateFile};

use super::{complain, exit, say};

/// Show the driver's own state: processes, threads, nodes, references, buffers, calls under way, counters
#[derive(Clone, Debug, Args)]
pub(crate) struct StateArgs {
    /// Device whose driver to ask: auto, a name (binder, hwbinder, ...) or a path
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Device,

    /// What to show: state, stats, transactions, log (the last calls) or failed (the last that failed)
    #[arg(default_value_t)]
    which: StateFile,
}

/// Shows it; the result is the exit status.
pub(crate) fn run(args: &StateArgs) -> u8 {
    match state::of_device(&args.device, args.which) {
        Ok(text) => say(&text),
        Err(trouble) => {
            complain(trouble);
            exit::UNABLE
        }
    }
}
