//! The command `trace info`: shows the contents of a trace.
//! Not here: counting them (`trace::contents`).

use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use store::input;
use store::traces::open;
use trace::contents::contents;

use crate::cli::{CommandResult, OrExit, exit, say};

/// Show the contents of a trace of any origin: CPUs, clock, time, events, losses
#[derive(Clone, Debug, Args)]
pub(crate) struct InfoArgs {
    /// A file of `binderperf trace record`, a trace of Perfetto, or ftrace's text, for example of atrace or systrace
    file: PathBuf,
}

/// Shows them.
pub(super) fn run(args: &InfoArgs) -> CommandResult {
    let file = args.file.display();
    let opened = input::seekable(&args.file)
        .map_err(|error| sys::errno::describe(&error))
        .and_then(|file| open(BufReader::new(file)).map_err(|error| error.to_string()));
    let mut reader = opened.map_err(|why| format!("{file}: {why}")).or_exit(exit::USAGE)?;
    say(&format!("{file}: {}", contents(&mut reader)))
}
