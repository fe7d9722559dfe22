//! The command `broker`: runs the embedded driver's broker in the foreground.
//! Not here: the broker itself, and when one is started automatically (`backend::broker`).

use std::path::PathBuf;

use clap::Args;

use super::{CommandResult, OrExit, exit, note};

/// Run the embedded driver's broker in the foreground until Ctrl-C: keeps its contexts alive between commands
#[derive(Clone, Debug, Args)]
pub(crate) struct BrokerArgs {
    /// The directory that the processes share [default: the user's]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    context_dir: Option<PathBuf>,
}

/// Runs it.
pub(crate) fn run(args: &BrokerArgs) -> CommandResult {
    let mut first = true;
    let tell = |what: &str| {
        let how = if std::mem::take(&mut first) { "; Ctrl-C ends it" } else { "" };
        note(format_args!("The embedded driver's broker: {what}{how}.\n"));
    };
    backend::broker::serve(args.context_dir.as_deref(), tell).or_exit(exit::UNABLE)?;
    Ok(exit::FINE)
}
