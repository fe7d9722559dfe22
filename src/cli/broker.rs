//! Room: `broker`: the embedded driver's broker in the foreground.
//! Not here: the broker itself, and when one is started without being asked for (`lab::broker`).

use std::path::PathBuf;

use clap::Args;

use super::{complain, exit, note};

/// Keep the embedded driver's contexts alive between commands: its broker, in the foreground until Ctrl-C
#[derive(Clone, Debug, Args)]
pub(crate) struct BrokerArgs {
    /// The directory that the processes share [default: the user's]
    #[arg(long, value_name = "DIR")]
    context_dir: Option<PathBuf>,
}

/// Runs it; the result is the exit status.
pub(crate) fn run(args: &BrokerArgs) -> u8 {
    let ready = |directory: &std::path::Path| {
        note(format_args!("The embedded driver in {} is ready; Ctrl-C ends it.\n", directory.display()));
    };
    match lab::broker::serve(args.context_dir.as_deref(), ready) {
        Ok(()) => exit::FINE,
        Err(why) => {
            complain(why);
            exit::UNABLE
        }
    }
}
