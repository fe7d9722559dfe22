//! The command `man`: writes pages of the manual.
//! Not here: their text (`manual::page`).

use std::path::{Path, PathBuf};

use clap::Args;
use manual::page;

use super::output::Sink;
use super::program::Program;
use super::{CommandResult, Failure, OrExit, exit, note, say};

/// Write pages of the manual: of the program and of each command
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The command whose page goes to the standard output, as in `man throughput binder` [default: the whole program]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    words: Vec<String>,

    /// Write every page into DIR, which is created if missing
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
}

/// Writes one page, or all.
pub(super) fn run(args: &ManArgs, program: &Program) -> CommandResult {
    if let Some(folder) = &args.out {
        return all_into(folder, program);
    }
    say(&page::of(&args.words, &(program.shown)()).or_exit(exit::USAGE)?.text)
}

fn all_into(folder: &Path, program: &Program) -> CommandResult {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::of_file(exit::INTERNAL, "make", folder, &error))?;
    let pages = page::all(&(program.shown)());
    for page in &pages {
        Sink::file(&folder.join(format!("{}.1", page.name))).deliver(&page.text)?;
    }
    note(format_args!("{} pages in {}\n", pages.len(), folder.display()));
    Ok(exit::FINE)
}
