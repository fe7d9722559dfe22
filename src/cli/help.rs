//! The command `help`: prints the `--help` of another command.
//! Not here: the text (each command's definition, crate `manual`).

use clap::Args;

use super::program::Program;
use super::{CommandResult, OrExit, exit, say};

/// Show what a command is for, its options, examples and exit statuses
#[derive(Debug, Args)]
pub(super) struct HelpArgs {
    /// The command, as in `help throughput binder` [default: all of them]
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

/// Prints the help.
pub(super) fn run(args: &HelpArgs, program: &Program) -> CommandResult {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    print_help(&words, words.is_empty(), program)
}

/// Prints the help of a command, long or brief.
pub(super) fn print_help(words: &[&str], brief: bool, program: &Program) -> CommandResult {
    let unknown = || format!("no command {:?}; `binderperf help` lists them", words.join(" "));
    let mut definition = program.find(words).ok_or_else(unknown).or_exit(exit::USAGE)?;
    let help = if brief { definition.render_help() } else { definition.render_long_help() };
    say(&help.to_string())
}
