//! The command `services`: its options.
//! Not here: asking a service manager (`serve::services`).

use std::time::Duration;

use binder::Release;
use clap::Args;
use serve::services::{Question, What, ask};

use super::choice::{self, Table};
use super::manager_place::PlaceArgs;
use super::{CommandResult, OrExit, exit};

/// Ask a service manager: which names there are, whether one is served, what its object says
#[derive(Clone, Debug, Args)]
pub(crate) struct ServicesArgs {
    /// list the names, check whether a name is served, wait until it is, dump what its object says of itself, ping it
    #[arg(value_name = "WHAT", default_value = "list", value_parser = choice::table(&QUESTIONS))]
    what: What,

    /// The name, of HIDL interface/instance
    #[arg(value_name = "NAME", required_if_eq_any([("what", "check"), ("what", "wait"), ("what", "dump"), ("what", "ping")]))]
    name: Option<String>,

    /// Words for the object, with dump
    #[arg(value_name = "WORD", last = true)]
    words: Vec<String>,

    /// Ask hwservicemanager
    #[arg(long, conflicts_with = "release")]
    hw: bool,

    /// Android release whose dialect the manager speaks
    #[arg(long, value_name = "RELEASE", default_value_t, value_parser = choice::of(Release::ALL))]
    release: Release,

    /// Seconds to wait for the name, with wait, or for the end of a dump
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=super::A_YEAR_S))]
    timeout: u64,

    #[command(flatten)]
    place: PlaceArgs,
}

/// Questions to a service manager.
const QUESTIONS: Table<What, 5> = [
    (What::List, "list", ""),
    (What::Check, "check", ""),
    (What::Wait, "wait", ""),
    (What::Dump, "dump", ""),
    (What::Ping, "ping", ""),
];

/// Asks.
pub(crate) fn run(args: &ServicesArgs) -> CommandResult {
    let question = Question {
        what: args.what,
        name: args.name.clone(),
        words: args.words.clone(),
        hw: args.hw,
        release: args.release,
        timeout: Duration::from_secs(args.timeout),
    };
    question.check().or_exit(exit::USAGE)?;
    ask(&args.place.context(args.hw)?, &question)
}
