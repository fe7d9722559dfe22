//! The command `completions`: writes a shell's completion script.

use clap::Args;
use clap_complete::Shell;
use manual::NAME;

use super::applet::{self, Applet};
use super::program::Program;
use super::{CommandResult, OrExit, exit, say};

/// Write a shell's completion script for commands, options and their values
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    /// The program's name: binderperf, or an Android tool's name that is a link to it
    #[arg(default_value = NAME)]
    program: String,
}

/// Writes the script.
pub(super) fn run(args: &CompletionsArgs, whole: &Program) -> CommandResult {
    let unknown = || {
        let names = applet::names().join(", ");
        format!("this program is never called {:?}: there are {}, {names}", args.program, NAME)
    };
    say(&script(args.shell, &args.program, whole).ok_or_else(unknown).or_exit(exit::USAGE)?)
}

/// The script for one of the program's names.
fn script(shell: Shell, program: &str, whole: &Program) -> Option<String> {
    let mut definition = match Applet::named(program) {
        Some(_) => whole.find(&["applet", program])?,
        None => Some((whole.shown)()).filter(|_| program == NAME)?,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, program, &mut script);
    Some(String::from_utf8_lossy(&script).into_owned())
}
