//! Entry point: a command line, a worker process, or a guest's first process.
//! Not here: the commands (`cli`).

#![forbid(unsafe_code)]
// Those macros panic if their stream is full or closed; `cli::say` and `cli::note` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;

use std::process::ExitCode;
use std::time::Duration;

use ftrace::instances;
use ftrace::tracefs::Tracefs;

fn main() -> ExitCode {
    if vm::guest::is_guest_init() {
        vm::guest::main();
    }
    if let Some(code) = bench::start_worker(&[&chaos::ROLES[..], &fuzzer::ROLES].concat()) {
        return code;
    }
    if std::env::var_os(host::ON_VARIABLE).is_some() {
        // A shell starts what is to outlive it with SIGINT ignored.
        sys::stop_signal::heed();
    }
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    // `trace restore` does it itself, and waits where it must.
    if !matches!(words.as_slice(), [_, trace, restore] if trace == "trace" && restore == "restore") {
        remove_leftovers();
    }
    ExitCode::from(dispatch(&words))
}

/// How long to retry removing a trace instance: another command may be looking into it, or removing it, too.
const PATIENCE: Duration = Duration::from_millis(300);

/// Removes the trace instances that killed recorders of this program left, where this user may, and says so. Mounts nothing.
fn remove_leftovers() {
    let Ok(tracefs) = Tracefs::mounted() else { return };
    instances::remove_leftovers(&tracefs, PATIENCE).iter().for_each(console::complain);
}

/// Runs an Android tool selected by name or flags, or a command.
fn dispatch(words: &[String]) -> u8 {
    let (program, rest) = match words {
        [program, rest @ ..] => (program.as_str(), rest),
        [] => ("", words),
    };
    if let Some((applet, rest)) = cli::applet::parse_applet(program, rest) {
        return cli::status_of(applet.start(rest.to_vec()));
    }
    cli::tree::run(rest)
}
