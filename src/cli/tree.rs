//! The tree of all commands: as the parser uses it, and as help, manual and completions show it.
//! Not here: what a command does (its own file), examples and exit statuses (crate `manual`).
//!
//! Commands with Google Benchmark's or Android's flags parse their arguments themselves, so the tree passes those on
//! unparsed; [`shown`] has the definitions that parse them in their place.

use clap::{Command as Definition, CommandFactory, Parser, Subcommand};

use ::fleet::on::words::without;
use ::fleet::on::{Here, run_elsewhere};

use manual::NAME;
use manual::shown::with_help_text;

use super::on_words::with_flags;
use super::program::Program;
use super::{
    ab, applet, background, bisect, broker, chaos, compare, completions, conformance, convert, doctor,
    explain, fleet, fuzz, gate, help, history, inheritance, inversion, kpi, latency, man, matrix, overload,
    report, run, scenario, servicemanager, services, shim, show, state, throughput, top, trace, vm, watch,
    workload,
};

/// Performance tests for Linux Binder IPC, on any kernel
#[derive(Debug, Parser)]
#[command(name = NAME, version = env!("BINDERPERF_VERSION"), disable_help_subcommand = true, subcommand_value_name = "COMMAND")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// This tree, for the commands below it that need the whole.
const PROGRAM: &Program = &Program { shown, understood };

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Throughput(throughput::ThroughputArgs),
    Kpi(kpi::KpiArgs),
    Scenario(scenario::ScenarioArgs),
    Latency(latency::LatencyArgs),
    Doctor(doctor::DoctorArgs),
    Explain(explain::ExplainArgs),
    Top(top::TopArgs),
    Watch(Box<watch::WatchArgs>),
    Show(show::ShowArgs),
    Compare(compare::CompareArgs),
    Gate(gate::GateArgs),
    Report(report::ReportArgs),
    Convert(convert::ConvertArgs),
    Fleet(fleet::FleetArgs),
    Ab(Box<ab::AbArgs>),
    Matrix(Box<matrix::MatrixArgs>),
    BisectStep(Box<bisect::BisectArgs>),
    History(history::HistoryArgs),
    Trace(trace::TraceArgs),
    Workload(workload::WorkloadArgs),
    Applet(applet::AppletArgs),
    State(state::StateArgs),
    Conformance(conformance::ConformanceArgs),
    Chaos(chaos::ChaosArgs),
    Fuzz(fuzz::FuzzArgs),
    Inheritance(inheritance::InheritanceArgs),
    Inversion(inversion::InversionArgs),
    Overload(overload::OverloadArgs),
    Background(background::BackgroundArgs),
    #[command(name = ::conformance::HELPER_COMMAND, hide = true)]
    ConformanceHelper(conformance::HelperArgs),
    Shim(shim::ShimArgs),
    Broker(broker::BrokerArgs),
    #[command(name = "servicemanager")]
    ServiceManager(servicemanager::ServiceManagerArgs),
    Services(services::ServicesArgs),
    Vm(Box<vm::VmArgs>),
    #[command(hide = true)]
    GuestProbe(vm::ProbeArgs),
    Help(help::HelpArgs),
    Man(man::ManArgs),
    Completions(completions::CompletionsArgs),
}

/// Runs the command of these arguments; returns the exit status.
pub(crate) fn run(words: &[String]) -> u8 {
    if let Some(ended) = run_elsewhere(words, &Here { understood, run, names: applet::names() }) {
        return super::status_of(ended);
    }
    match parse(words) {
        Ok(command) => super::status_of(command.run()),
        Err(error) if !error.use_stderr() => super::status_of(super::say(&error.to_string())),
        Err(error) => {
            super::note(&error);
            // `git bisect run` takes the usual status to mean a bad commit.
            if words.first().is_some_and(|word| word == bisect::NAME) {
                conduct::bisect::STOP
            } else {
                super::exit::USAGE
            }
        }
    }
}

fn parse(words: &[String]) -> Result<Command, clap::Error> {
    let words = std::iter::once(NAME.to_owned()).chain(latency::with_modern_flags(words));
    let cli = with_help_text(Cli::command(), with_flags).try_get_matches_from(words)?;
    <Cli as clap::FromArgMatches>::from_arg_matches(&cli).map(|cli| cli.command)
}

/// Checks that these words would be understood, those of commands in guests, recordings and comparisons included.
///
/// # Errors
/// The parser's message.
fn understood(words: &[String]) -> Result<(), String> {
    if let Some(rest) = without(words)? {
        return understood(&rest);
    }
    if let Some((tool, rest)) = applet::parse_applet(NAME, words) {
        return tool.check(rest.to_vec());
    }
    match parse(words).map_err(|error| error.to_string())? {
        Command::Throughput(args) => args.check(),
        Command::Scenario(args) => args.check(),
        Command::Applet(args) => args.check(),
        Command::Vm(_) | Command::Ab(_) | Command::BisectStep(_) | Command::Trace(_) => {
            let Some(at) = words.iter().position(|word| word == "--") else { return Ok(()) };
            let rest = &words[at + 1..];
            understood(rest.strip_prefix(&[NAME.to_owned()][..]).unwrap_or(rest))
        }
        _ => Ok(()),
    }
}

impl Command {
    fn run(self) -> super::CommandResult {
        match self {
            Self::Run(args) => run::run(&args),
            Self::Throughput(args) => throughput::run(args),
            Self::Kpi(args) => kpi::run(&args),
            Self::Scenario(args) => scenario::run(&args),
            Self::Latency(args) => latency::run(args),
            Self::Doctor(args) => doctor::run(&args),
            Self::Explain(args) => explain::run(&args),
            Self::Top(args) => top::run(&args),
            Self::Watch(args) => watch::run(&args),
            Self::Show(args) => show::run(&args),
            Self::Compare(args) => compare::run(&args),
            Self::Gate(args) => gate::run(&args),
            Self::Report(args) => report::run(&args),
            Self::Convert(args) => convert::run(&args),
            Self::Fleet(args) => fleet::run(&args, PROGRAM),
            Self::Ab(args) => ab::run(&args),
            Self::Matrix(args) => matrix::run(&args, PROGRAM),
            Self::BisectStep(args) => bisect::run(&args),
            Self::History(args) => history::run(&args),
            Self::Trace(args) => trace::run(args),
            Self::Workload(args) => workload::run(&args),
            Self::Applet(args) => applet::run(args, PROGRAM),
            Self::State(args) => state::run(&args),
            Self::Conformance(args) => conformance::run(&args),
            Self::Chaos(args) => chaos::run(&args),
            Self::Fuzz(args) => fuzz::run(&args),
            Self::Inheritance(args) => inheritance::run(&args),
            Self::Inversion(args) => inversion::run(&args),
            Self::Overload(args) => overload::run(&args),
            Self::Background(args) => background::run(&args),
            Self::ConformanceHelper(args) => conformance::help(&args),
            Self::Shim(args) => shim::run(&args),
            Self::Broker(args) => broker::run(&args),
            Self::ServiceManager(args) => servicemanager::run(&args),
            Self::Services(args) => services::run(&args),
            Self::Vm(args) => vm::run(*args, PROGRAM),
            Self::GuestProbe(args) => vm::probe(&args),
            Self::Help(args) => help::run(&args, PROGRAM),
            Self::Man(args) => man::run(&args, PROGRAM),
            Self::Completions(args) => completions::run(&args, PROGRAM),
        }
    }
}

/// The whole program as documented: without hidden parts, with every flag of every test and tool.
fn shown() -> Definition {
    manual::shown::shown(&Cli::command(), own_parser, with_flags)
}

/// The definition that parses the arguments of a command, if the tree passes them on.
fn own_parser(path: &str) -> Option<Definition> {
    match path {
        "applet" => Some(applet::definition()),
        "scenario" => Some(scenario::definition()),
        _ => throughput::definition(path.strip_prefix("throughput ")?),
    }
}

#[cfg(test)]
mod tests;
