//! Room: `broker`: the embedded driver's broker in the foreground.
//! Not here: the broker itself, and when one is started without being asked for (`lab::broker`).

use std::path::PathBuf;

use clap::Args;

use super::{complain, exit, note};

/// Keep the embedded driver's contexts alive between commands: its broker, in the foreground until Ctrl-C
#[derive(Clone, Debug, Args)]
pub(crate) struct BrokerArgs {
    /// The directory that the processes share [default: the user's]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    context_dir: Option<PathBuf>,
}

/// Runs it; the result is the exit status.
pub(crate) fn run(args: &BrokerArgs) -> u8 {
    let mut first = true;
    let tell = |what: &str| {
        let how = if std::mem::take(&mut first) { "; Ctrl-C ends it" } else { "" };
        note(format_args!("The embedded driver's broker: {what}{how}.\n"));
    };
    match lab::broker::serve(args.context_dir.as_deref(), tell) {
        Ok(()) => exit::FINE,
        Err(why) => {
            complain(why);
            exit::UNABLE
        }
    }
}
