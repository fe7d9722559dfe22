//! Room: the command line's front door, and a guest's first process.
//! Not here: what a subcommand does (`cli`).

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Performance tests for Linux Binder IPC
#[derive(Debug, Parser)]
#[command(name = "binderperf", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Vm(cli::vm::VmArgs),
    #[command(hide = true)]
    GuestProbe(cli::vm::ProbeArgs),
}

fn main() -> ExitCode {
    if lab::vm::guest::is_guest_init() {
        lab::vm::guest::main();
    }
    ExitCode::from(match Cli::parse().command {
        Command::Vm(args) => cli::vm::run(args),
        Command::GuestProbe(args) => cli::vm::probe(&args),
    })
}
