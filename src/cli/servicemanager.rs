//! The command `servicemanager`: its options.
//! Not here: the manager (`serve::manager`).

use binder::Release;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serve::manager;

use super::CommandResult;
use super::manager_place::PlaceArgs;

/// Run a service manager in the foreground until Ctrl-C: names for the objects of a context, as Android's servicemanager has them
#[derive(Clone, Debug, Args)]
pub(crate) struct ServiceManagerArgs {
    /// Serve hwbinder, as hwservicemanager does
    #[arg(long, conflicts_with = "release")]
    hw: bool,

    /// Android release whose dialect to speak; auto: each caller's, where its header shows it (8 or 9, 10), else 16's
    #[arg(long, value_name = "RELEASE", default_value_t = Release::default().to_string(), value_parser = releases())]
    release: String,

    #[command(flatten)]
    place: PlaceArgs,
}

/// Releases whose dialects are known, and the word for that of each caller.
fn releases() -> PossibleValuesParser {
    let all = Release::ALL.into_iter().map(|release| release.to_string());
    PossibleValuesParser::new(all.chain(["auto".to_owned()]))
}

/// Runs it.
pub(crate) fn run(args: &ServiceManagerArgs) -> CommandResult {
    manager::run(&args.place.context(args.hw)?, args.hw, args.release.parse().ok())
}
