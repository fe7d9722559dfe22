//! Room: the command line's front door, and a guest's first process.
//! Not here: what a subcommand does (`cli`).

#![forbid(unsafe_code)]
// Those macros panic when their stream is full or its reader gone; `cli::say` and `cli::note` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;

use std::process::ExitCode;

use lab::stage::role;
use lab::{broker, chaos, inheritance, inversion, latency, load, speed, workers};

fn main() -> ExitCode {
    if lab::vm::guest::is_guest_init() {
        lab::vm::guest::main();
    }
    broker::register();
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    ExitCode::from(dispatch(&words))
}

/// A server of ours, a tool of Android's by name or by its flags, or a subcommand.
fn dispatch(words: &[String]) -> u8 {
    let (program, rest) = match words {
        [program, rest @ ..] => (program.as_str(), rest),
        [] => ("", words),
    };
    match rest.first().map(String::as_str) {
        Some(role::COMMAND) => return role::play(&rest[1..]),
        Some(speed::role::COMMAND) => return speed::role::play(&rest[1..]),
        Some(broker::COMMAND) => return broker::play(&rest[1..]),
        Some(latency::role::COMMAND) => return latency::role::play(&rest[1..]),
        Some(workers::role::COMMAND) => return workers::role::play(&rest[1..]),
        Some(chaos::COMMAND) => return chaos::play(&rest[1..]),
        Some(inversion::role::COMMAND) => return inversion::role::play(&rest[1..]),
        Some(load::role::COMMAND) => return load::role::play(&rest[1..]),
        Some(inheritance::COMMAND) => return inheritance::play(&rest[1..]),
        _ => {}
    }
    if let Some((applet, rest)) = cli::applet::meant(program, rest) {
        return applet.start(rest.to_vec());
    }
    cli::tree::run(rest)
}
