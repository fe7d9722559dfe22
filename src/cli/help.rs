//! Room: `help`: what `--help` tells, of a command that is named.
//! Not here: what that is (each command's room, `lessons`).

use clap::Args;

use super::{complain, exit, say, tree};

/// Tell what a command is for, its options, examples and exit statuses
#[derive(Debug, Args)]
pub(super) struct HelpArgs {
    /// The command, as in `help throughput binder` [default: all of them]
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

/// Tells it; the result is the exit status.
pub(super) fn run(args: &HelpArgs) -> u8 {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    // Of the whole program there is a brief one only.
    of(&words, words.is_empty())
}

/// The help of a command in the tree, long or brief.
pub(super) fn of(words: &[&str], brief: bool) -> u8 {
    match tree::find(words) {
        Some(mut definition) if brief => say(&definition.render_help().to_string()),
        Some(mut definition) => say(&definition.render_long_help().to_string()),
        None => {
            complain(format_args!("no command {:?}; `binderperf help` lists them", words.join(" ")));
            exit::USAGE
        }
    }
}
