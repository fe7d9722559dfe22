//! Room: `man`: which page, and where it goes.
//! Not here: what is on it (`page`).

mod page;

use std::path::{Path, PathBuf};

use clap::Args;

use super::output::Sink;
use super::{complain, exit, note, say, tree};

/// Write pages of the manual: of this program, of each command
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The command whose page goes to the standard output, as in `man throughput binder` [default: the whole program]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    words: Vec<String>,

    /// Write every page into DIR, which is made if it is not there
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
}

/// Writes one, or all; the result is the exit status.
pub(super) fn run(args: &ManArgs) -> u8 {
    if let Some(folder) = &args.out {
        return all_into(folder);
    }
    let (words, name) = (args.words.join("-"), tree::NAME);
    let wanted = match words.strip_prefix(name).map(|rest| rest.trim_start_matches('-')).unwrap_or(&words) {
        "" => name.to_owned(),
        command => format!("{name}-{command}"),
    };
    match page::all().into_iter().find(|page| page.name == wanted) {
        Some(page) => say(&page.text),
        None => {
            complain(format_args!("no page {wanted:?}; `binderperf help` lists the commands"));
            exit::USAGE
        }
    }
}

fn all_into(folder: &Path) -> u8 {
    if let Err(error) = std::fs::create_dir_all(folder) {
        complain(format_args!("cannot make {}: {}", folder.display(), lab::describe_errno(&error)));
        return exit::INTERNAL;
    }
    let pages = page::all();
    for page in &pages {
        let mut file = Sink::file(&folder.join(format!("{}.1", page.name)));
        file.put(&page.text);
        if let Some(trouble) = file.trouble() {
            complain(trouble);
            return exit::INTERNAL;
        }
    }
    note(format_args!("{} pages in {}\n", pages.len(), folder.display()));
    exit::FINE
}
