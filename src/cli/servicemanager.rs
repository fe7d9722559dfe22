//! The command `servicemanager`: its options.
//! Not here: the manager (`serve::manager`).

use clap::Args;
use serve::manager::{self, Spoken};

use super::manager_place::PlaceArgs;
use super::{CommandResult, choice};

/// Run a service manager in the foreground until Ctrl-C: names for the objects of a context, as Android's servicemanager has them
#[derive(Clone, Debug, Args)]
pub(crate) struct ServiceManagerArgs {
    /// Serve hwbinder, as hwservicemanager does
    #[arg(long, conflicts_with = "release")]
    hw: bool,

    /// Android release whose dialect to speak; auto: each caller's, where its header shows it (8 or 9, 10), else 16's
    #[arg(long, value_name = "RELEASE", default_value_t, value_parser = choice::of(Spoken::all()))]
    release: Spoken,

    #[command(flatten)]
    place: PlaceArgs,
}

/// Runs it.
pub(crate) fn run(args: &ServiceManagerArgs) -> CommandResult {
    manager::run(&args.place.context(args.hw)?, args.hw, args.release)
}
