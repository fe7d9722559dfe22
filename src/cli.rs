//! The commands, one file for each.
//! Not here: exit statuses and messages (crate `console`).

use console::{
    CommandResult, Failure, OrExit, command_line, complain, exit, note, output, progress, say, tell, terminal,
};

pub(crate) use console::status_of;
use manual::help_text::add_to;
use units::typed::A_YEAR_S;

mod ab;
pub(crate) mod applet;
mod atrace;
mod background;
mod bisect;
mod broker;
mod chaos;
mod choice;
mod compare;
mod completions;
mod conformance;
mod constraints;
mod convert;
mod doctor;
mod driver;
mod exact;
mod experiment;
mod explain;
mod fleet;
mod fuzz;
mod gate;
mod grouping;
mod help;
mod history;
mod inheritance;
mod inversion;
mod kernels;
mod kpi;
mod latency;
mod man;
mod manager_place;
mod matrix;
mod on_words;
mod overload;
mod place;
mod program;
mod records;
mod report;
mod run;
mod scenario;
mod servicemanager;
mod services;
mod shim;
mod show;
mod state;
mod throughput;
mod top;
mod trace;
pub(crate) mod tree;
mod vm;
mod watch;
mod workload;

/// Parses the arguments of an Android tool called by this name. An answer such as `--help` ends the command, too.
fn parse<P: clap::Parser>(name: &str, words: Vec<String>) -> Result<P, Failure> {
    let command =
        add_to(P::command().bin_name(name.to_owned()), &format!("applet {name}"), on_words::with_flags);
    let matches = command.try_get_matches_from(std::iter::once(name.to_owned()).chain(words));
    matches.and_then(|matches| P::from_arg_matches(&matches)).map_err(|error| {
        if error.use_stderr() {
            note(error);
            return Failure { status: exit::USAGE, message: None };
        }
        Failure { status: status_of(say(&error.to_string())), message: None }
    })
}
