//! Room: the command line's front door, and a guest's first process.
//! Not here: what a subcommand does (`cli`).

#![forbid(unsafe_code)]
// Those macros panic when their stream is full or its reader gone; `cli::say` and `cli::note` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lab::stage::role;
use lab::{broker, chaos, inheritance, inversion, latency, load, speed, workers};

/// Performance tests for Linux Binder IPC, on any kernel
#[derive(Debug, Parser)]
#[command(name = "binderperf", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(cli::run::RunArgs),
    Throughput(cli::throughput::ThroughputArgs),
    Latency(cli::latency::LatencyArgs),
    Doctor(cli::doctor::DoctorArgs),
    Show(cli::show::ShowArgs),
    Compare(cli::compare::CompareArgs),
    Gate(cli::gate::GateArgs),
    Report(cli::report::ReportArgs),
    Convert(cli::convert::ConvertArgs),
    Ab(Box<cli::ab::AbArgs>),
    BisectStep(cli::bisect::BisectArgs),
    History(cli::history::HistoryArgs),
    Trace(cli::trace::TraceArgs),
    Applet(cli::applet::AppletArgs),
    State(cli::state::StateArgs),
    Conformance(cli::conformance::ConformanceArgs),
    Chaos(cli::chaos::ChaosArgs),
    Inheritance(cli::inheritance::InheritanceArgs),
    Inversion(cli::inversion::InversionArgs),
    #[command(name = lab::conformance::HELPER_COMMAND, hide = true)]
    ConformanceHelper(cli::conformance::HelperArgs),
    Broker(cli::broker::BrokerArgs),
    Vm(cli::vm::VmArgs),
    #[command(hide = true)]
    GuestProbe(cli::vm::ProbeArgs),
}

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
    match Cli::parse().command {
        Command::Run(args) => cli::run::run(&args),
        Command::Throughput(args) => cli::throughput::run(args),
        Command::Latency(args) => cli::latency::run(args),
        Command::Doctor(args) => cli::doctor::run(&args),
        Command::Show(args) => cli::show::run(&args),
        Command::Compare(args) => cli::compare::run(&args),
        Command::Gate(args) => cli::gate::run(&args),
        Command::Report(args) => cli::report::run(&args),
        Command::Convert(args) => cli::convert::run(&args),
        Command::Ab(args) => cli::ab::run(&args),
        Command::BisectStep(args) => cli::bisect::run(args),
        Command::History(args) => cli::history::run(&args),
        Command::Trace(args) => cli::trace::run(args),
        Command::Applet(args) => cli::applet::run(args),
        Command::State(args) => cli::state::run(&args),
        Command::Conformance(args) => cli::conformance::run(&args),
        Command::Chaos(args) => cli::chaos::run(&args),
        Command::Inheritance(args) => cli::inheritance::run(&args),
        Command::Inversion(args) => cli::inversion::run(&args),
        Command::ConformanceHelper(args) => cli::conformance::help(&args),
        Command::Broker(args) => cli::broker::run(&args),
        Command::Vm(args) => cli::vm::run(args),
        Command::GuestProbe(args) => cli::vm::probe(&args),
    }
}
