//! The command `fleet lava-case`: its options, and what the command in a job leaves.
//! Not here: running it (`fleet::lava::case`).

use clap::Args;
use fleet::lava::case::{self, Keeps};

use crate::cli::program::Program;
use crate::cli::{CommandResult, Failure, OrExit, exit};

/// Run a command in a LAVA job, and print its results as LAVA's signals and its records as lines of the log
///
/// The jobs of fleet lava call it. The exit status is that of the command, which is a test case, too.
#[derive(Debug, Args)]
pub(super) struct CaseArgs {
    /// The command
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command and prints its results.
pub(super) fn run(args: &CaseArgs, program: &Program) -> CommandResult {
    let words = &args.command;
    (program.understood)(words).or_exit(exit::USAGE)?;
    case::run(words, &path(words, program).join("-"), check(words, program)?)
}

/// The files that the command leaves.
///
/// # Errors
/// It names a file for its record, which has its place in the log.
pub(super) fn check(words: &[String], program: &Program) -> Result<Keeps, Failure> {
    let names = path(words, program);
    let definition = program.find(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let has = |option: &str| {
        let mut arguments = definition.iter().flat_map(clap::Command::get_arguments);
        arguments.any(|argument| argument.get_long() == Some(option))
    };
    let (keeps, option) = match names.first().map(String::as_str) {
        Some("run") => (Keeps::Folder, "--out"),
        _ if has("record") => (Keeps::Record, "--record"),
        _ => return Ok(Keeps::Nothing),
    };
    let named = |word: &&String| word.split('=').next() == Some(option);
    match words.iter().take_while(|word| *word != "--").find(named) {
        Some(word) => Err(Failure::new(
            exit::USAGE,
            format_args!("{word}: leave it out, records go into the job's log"),
        )),
        None => Ok(keeps),
    }
}

/// The command's name: the first words that are commands.
fn path(words: &[String], program: &Program) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in words.iter().take_while(|word| !word.starts_with('-')) {
        let longer: Vec<&str> = names.iter().chain([word]).map(String::as_str).collect();
        if program.find(&longer).is_none() {
            break;
        }
        names.push(word.clone());
    }
    names
}
