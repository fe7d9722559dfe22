//! The command `scenario`: loads of which one process measures a part, and their descriptions.
//! Not here: the scenarios (crate `workload`), measuring (`throughput`).

use bench::plan::request::Test;
use clap::{Arg, Args, Command};
use workload::scenario::{self, described, list};

use super::throughput::{self, own};
use super::{CommandResult, Failure, exit, say};

const ALL: &str = "all";
const LIST: &str = "list";
const SHOW: &str = "show";

/// Measure what real systems do to Binder: oneway floods, descriptors, deaths, freezing, cold starts
///
/// NAME is a scenario or `all`; `list` names them with what each models, and `show CASE` prints the steps of one measurement,
/// such as oneway_victim/4. Flags are those of `throughput`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct ScenarioArgs {
    /// The scenario, then the test's flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "NAME")]
    words: Vec<String>,
}

/// The definition that parses the arguments.
pub(super) fn definition() -> Command {
    let names: Vec<&str> = scenario::all().iter().map(|scenario| scenario.name).collect();
    let help = format!("A scenario: {}; {ALL}; or {LIST}, {SHOW} CASE", names.join(", "));
    own::definition(Test::Scenario(None)).arg(Arg::new("name").value_name("NAME").help(help).index(1))
}

/// Meaning of the words.
enum Wanted {
    Measure(Test, Vec<String>),
    List,
    Show(String),
}

impl ScenarioArgs {
    /// Parses the arguments that the tree passed on.
    pub(super) fn check(&self) -> Result<(), String> {
        match wanted(&self.words)? {
            Wanted::Measure(test, words) => throughput::check(test, words),
            Wanted::List => Ok(()),
            Wanted::Show(case) => described(&case).map(drop),
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &ScenarioArgs) -> CommandResult {
    match wanted(&args.words).map_err(|why| Failure::new(exit::USAGE, why))? {
        Wanted::Measure(test, words) => {
            Ok(throughput::benchmark(test, "binderperf scenario", words, test.controls()))
        }
        Wanted::List => say(&list()),
        Wanted::Show(case) => say(&described(&case).map_err(|why| Failure::new(exit::USAGE, why))?),
    }
}

fn wanted(words: &[String]) -> Result<Wanted, String> {
    let known = || {
        let names: Vec<&str> = scenario::all().iter().map(|scenario| scenario.name).collect();
        format!("name a scenario ({}), {ALL}, {LIST}, or {SHOW} CASE", names.join(", "))
    };
    let (name, rest) = match words.split_first() {
        None => return Err(known()),
        // A question about the flags needs no scenario.
        Some((flag, _)) if flag.starts_with('-') => (None, words),
        Some((name, rest)) => (Some(name.as_str()), rest),
    };
    match (name, rest) {
        (None, rest) if rest.iter().any(|word| word == "--help" || word == "-h") => {
            Ok(Wanted::Measure(Test::Scenario(None), rest.to_vec()))
        }
        (None, _) => Err(known()),
        (Some(LIST), []) => Ok(Wanted::List),
        (Some(SHOW), [case]) => Ok(Wanted::Show(case.clone())),
        (Some(ALL), rest) => Ok(Wanted::Measure(Test::Scenario(None), rest.to_vec())),
        (Some(name), rest) => match scenario::all().iter().find(|scenario| scenario.name == name) {
            Some(scenario) => Ok(Wanted::Measure(Test::Scenario(Some(scenario.name)), rest.to_vec())),
            None => Err(format!("no scenario is named {name:?}: {}", known())),
        },
    }
}
