//! Room: all commands as one tree, twice: as words are parsed by it, and as help, manual and shells show it.
//! Not here: what a command does (its own room), what else there is to say of it (`lessons`).
//! Google Benchmark's dialect and Android's tools read their words themselves, so the parser hands them on as they are;
//! what is shown in their places is made from the definitions that read them there.

use clap::{Command as Definition, CommandFactory, Parser, Subcommand};

use super::{
    ab, applet, bisect, broker, chaos, compare, completions, conformance, convert, doctor, gate, help,
    history, inheritance, inversion, latency, lessons, man, report, run, show, state, throughput, trace, vm,
};

/// Performance tests for Linux Binder IPC, on any kernel
#[derive(Debug, Parser)]
#[command(name = NAME, version, disable_help_subcommand = true, subcommand_value_name = "COMMAND")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The program's name, whatever file it was started from.
pub(super) const NAME: &str = "binderperf";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Throughput(throughput::ThroughputArgs),
    Latency(latency::LatencyArgs),
    Doctor(doctor::DoctorArgs),
    Show(show::ShowArgs),
    Compare(compare::CompareArgs),
    Gate(gate::GateArgs),
    Report(report::ReportArgs),
    Convert(convert::ConvertArgs),
    Ab(Box<ab::AbArgs>),
    BisectStep(Box<bisect::BisectArgs>),
    History(history::HistoryArgs),
    Trace(trace::TraceArgs),
    Applet(applet::AppletArgs),
    State(state::StateArgs),
    Conformance(conformance::ConformanceArgs),
    Chaos(chaos::ChaosArgs),
    Inheritance(inheritance::InheritanceArgs),
    Inversion(inversion::InversionArgs),
    #[command(name = lab::conformance::HELPER_COMMAND, hide = true)]
    ConformanceHelper(conformance::HelperArgs),
    Broker(broker::BrokerArgs),
    Vm(vm::VmArgs),
    #[command(hide = true)]
    GuestProbe(vm::ProbeArgs),
    Help(help::HelpArgs),
    Man(man::ManArgs),
    Completions(completions::CompletionsArgs),
}

/// Reads the words behind the program's name and does what they say; the result is the exit status.
pub(crate) fn run(words: &[String]) -> u8 {
    match parse(words) {
        Ok(command) => command.run(),
        Err(error) if !error.use_stderr() => super::say(&error.to_string()),
        Err(error) => {
            super::note(&error);
            // `git bisect run` takes the usual status for a bad commit.
            if words.first().is_some_and(|word| word == bisect::NAME) {
                bisect::STOP
            } else {
                super::exit::USAGE
            }
        }
    }
}

fn parse(words: &[String]) -> Result<Command, clap::Error> {
    let words = std::iter::once(NAME.to_owned()).chain(latency::with_modern_flags(words));
    let cli = taught(Cli::command()).try_get_matches_from(words)?;
    <Cli as clap::FromArgMatches>::from_arg_matches(&cli).map(|cli| cli.command)
}

impl Command {
    fn run(self) -> u8 {
        match self {
            Self::Run(args) => run::run(&args),
            Self::Throughput(args) => throughput::run(args),
            Self::Latency(args) => latency::run(args),
            Self::Doctor(args) => doctor::run(&args),
            Self::Show(args) => show::run(&args),
            Self::Compare(args) => compare::run(&args),
            Self::Gate(args) => gate::run(&args),
            Self::Report(args) => report::run(&args),
            Self::Convert(args) => convert::run(&args),
            Self::Ab(args) => ab::run(&args),
            Self::BisectStep(args) => bisect::run(&args),
            Self::History(args) => history::run(&args),
            Self::Trace(args) => trace::run(args),
            Self::Applet(args) => applet::run(args),
            Self::State(args) => state::run(&args),
            Self::Conformance(args) => conformance::run(&args),
            Self::Chaos(args) => chaos::run(&args),
            Self::Inheritance(args) => inheritance::run(&args),
            Self::Inversion(args) => inversion::run(&args),
            Self::ConformanceHelper(args) => conformance::help(&args),
            Self::Broker(args) => broker::run(&args),
            Self::Vm(args) => vm::run(args),
            Self::GuestProbe(args) => vm::probe(&args),
            Self::Help(args) => help::run(&args),
            Self::Man(args) => man::run(&args),
            Self::Completions(args) => completions::run(&args),
        }
    }
}

/// A definition of the whole program with its lessons, and its commands in their groups.
fn taught(definition: Definition) -> Definition {
    let groups = groups(&definition);
    let statuses = lessons::listed(lessons::STATUSES);
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n\nExit status:\n{statuses}\n\
         Each command tells more: {NAME} COMMAND --help. A first look: {NAME} run --quick\n"
    );
    lessons::teach(definition, "").help_template(template)
}

/// The commands by what one wants, each with what it is for.
fn groups(definition: &Definition) -> String {
    let mut text = String::new();
    for group in &lessons::GROUPS {
        text += &format!("{}:\n", group.title);
        for name in group.commands() {
            let about = definition.find_subcommand(name).and_then(Definition::get_about);
            text += &format!("  {name:<12} {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

/// The whole program as its users meet it: nothing that is hidden, and every flag of every test and tool.
pub(super) fn shown() -> Definition {
    let whole = Cli::command();
    let version = whole.get_version().unwrap_or_default().to_owned();
    let mut definition = taught(visible(&whole, "").version(version).disable_help_subcommand(true));
    definition.build();
    definition
}

/// The command of these words in what is shown.
pub(super) fn find(path: &[&str]) -> Option<Definition> {
    let whole = shown();
    path.iter().try_fold(&whole, |command, word| command.find_subcommand(word)).cloned()
}

/// What reads the words of a command, if the parser hands them on.
fn reader(path: &str) -> Option<Definition> {
    match path {
        "applet" => Some(applet::definition()),
        _ => throughput::definition(path.strip_prefix("throughput ")?),
    }
}

/// A command without what is hidden, for neither arguments nor commands can be taken out of one.
fn visible(whole: &Definition, path: &str) -> Definition {
    let reader = reader(path);
    let source = reader.as_ref().unwrap_or(whole);
    let mut definition = Definition::new(whole.get_name().to_owned());
    if let Some(about) = whole.get_about() {
        definition = definition.about(about.clone());
    }
    if let Some(about) = whole.get_long_about() {
        definition = definition.long_about(about.clone());
    }
    if let Some(name) = whole.get_subcommand_value_name() {
        definition = definition.subcommand_value_name(name.to_owned());
    }
    if let Some(heading) = whole.get_subcommand_help_heading() {
        definition = definition.subcommand_help_heading(heading.to_owned());
    }
    for argument in source.get_arguments().filter(|argument| !argument.is_hide_set()) {
        definition = definition.arg(argument.clone());
    }
    for command in source.get_subcommands().filter(|command| !command.is_hide_set()) {
        let below = format!("{path} {}", command.get_name());
        definition = definition.subcommand(visible(command, below.trim_start())).subcommand_required(true);
    }
    definition
}

#[cfg(test)]
mod tests;
