//! Room: the same in a guest: the same command there, and its folder brought back.
//! Not here: booting (`lab::vm`).

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use lab::suite::Depth;
use lab::vm::{Options, Sinks, kernel::Choice};
use record::render::report::Trouble;

use super::RunArgs;
use super::keep::Folder;
use crate::cli::progress::{Listener, StatusLine};
use crate::cli::{complain, exit, note, report};

/// Boots, runs, and takes over what came of it.
pub(super) fn run(args: &RunArgs, kernel: &str, folder: &mut Folder) -> Result<(), u8> {
    // Not in the folder that the user named: when that cannot be written, the summary shall still come.
    let own = std::env::temp_dir().join(format!("binderperf-guest-{}", std::process::id()));
    if let Err(error) = DirBuilder::new().mode(0o700).create(&own) {
        complain(format_args!("making {}: {}", own.display(), lab::describe_errno(&error)));
        return Err(exit::INTERNAL);
    }
    let mut line = StatusLine::new();
    let result = boot(args, kernel, &own, &mut line).and_then(|back| take_over(&own, folder, back));
    line.show("");
    // What is worth keeping of it was moved.
    let _ = std::fs::remove_dir_all(&own);
    result
}

/// How the copy in the guest ended, and what it said besides its results.
struct Back {
    /// Its exit status, or why that is not known.
    status: Result<u8, String>,
    said: String,
}

/// So long for each second that the parts usually take elsewhere: emulation is slow.
const PATIENCE: u32 = 20;

fn boot(args: &RunArgs, kernel: &str, own: &Path, line: &mut StatusLine) -> Result<Back, u8> {
    let binary = std::env::current_exe().map_err(|error| {
        complain(format_args!("finding this program: {error}"));
        exit::INTERNAL
    })?;
    let mut words = vec!["run", "--driver=kernel", "--out=.", "--progress"];
    match args.depth() {
        Depth::Quick => words.push("--quick"),
        Depth::Usual => {}
        Depth::Thorough => words.push("--thorough"),
    }
    for (given, word) in [(args.no_trace, "--no-trace"), (args.klog_check, "--klog-check")] {
        if given {
            words.push(word);
        }
    }
    let words = words.into_iter().map(str::to_owned).collect();
    let given = if kernel.is_empty() { Vec::new() } else { vec![kernel.to_owned()] };
    let options = Options {
        kernel: Choice { given, ..Choice::default() },
        out: Some(own.to_owned()),
        timeout: args.depth().usual_whole() * PATIENCE,
        ..Options::new(binary, words)
    };
    let mut booting = StatusLine::new();
    let mut listener = Listener::new(line);
    let mut sinks = Sinks {
        stdout: &mut std::io::sink(),
        stderr: &mut listener,
        progress: &mut |text| booting.show(text),
    };
    let outcome = lab::vm::run(&options, &mut sinks);
    let said = std::mem::take(&mut listener.said);
    booting.show("");
    match outcome {
        Ok(outcome) => Ok(Back { status: Ok(outcome.status.exit_code()), said }),
        // A panic or a lost guest may have left results behind all the same.
        Err(error) if own.read_dir().is_ok_and(|mut files| files.next().is_some()) => {
            Ok(Back { status: Err(error.to_string()), said })
        }
        Err(error) => {
            complain(&error);
            note(said);
            Err(error.exit_code())
        }
    }
}

/// The guest's results as if they had been measured here.
fn take_over(own: &Path, folder: &mut Folder, back: Back) -> Result<(), u8> {
    let bundle = match report::read(&[own.to_owned()]) {
        Ok(bundle) => bundle,
        Err(why) => {
            note(back.said);
            complain(format_args!("the run in the guest left no results: {why}"));
            // Such as 3: its kernel has no driver that can be used.
            return Err(back.status.ok().filter(|status| *status > exit::FAILED).unwrap_or(exit::INTERNAL));
        }
    };
    folder.take_over(bundle, own);
    let trouble = match back.status {
        Ok(exit::FINE | exit::FAILED) => return Ok(()),
        Ok(status) => format!("the run in the guest ended with status {status}"),
        Err(why) => why,
    };
    folder
        .bundle
        .troubles
        .push(Trouble { words: "ENDED EARLY".to_owned(), ..Trouble::not_run("the guest", trouble) });
    Ok(())
}
