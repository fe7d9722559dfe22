//! Room: `completions`: what a shell needs to know to complete the words of a command line.
//! Not here: the words (`tree`), the shells' languages (`clap_complete`).

use clap::Args;
use clap_complete::Shell;

use super::applet::Applet;
use super::{complain, exit, say, tree};

/// Write what a shell needs to complete commands, options and their values
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,

    /// For this name: binderperf, or that of a tool of Android's that is a link to it
    #[arg(default_value = tree::NAME)]
    program: String,
}

/// Writes it; the result is the exit status.
pub(super) fn run(args: &CompletionsArgs) -> u8 {
    let Some(text) = script(args.shell, &args.program) else {
        let names = Applet::ALL.map(Applet::name).join(", ");
        complain(format_args!(
            "this program is never called {:?}: there are {}, {names}",
            args.program,
            tree::NAME
        ));
        return exit::USAGE;
    };
    say(&text)
}

/// The script for one of our names.
fn script(shell: Shell, program: &str) -> Option<String> {
    let mut definition = match Applet::named(program) {
        Some(_) => tree::find(&["applet", program])?,
        None => Some(tree::shown()).filter(|_| program == tree::NAME)?,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, program, &mut script);
    Some(String::from_utf8_lossy(&script).into_owned())
}
