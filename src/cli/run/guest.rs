//! `run --vm`: runs the same command in a guest and takes over its folder.
//! Not here: booting (`vm`).

use std::path::Path;

use bench::suite::Depth;
use intake::{Name, Place};
use record::render::report::RunProblem;
use sys::private_folder::PrivateFolder;
use vm::{Options, Sinks, TimeLimit, kernel::Choice};

use super::RunArgs;
use super::keep::Folder;
use crate::cli::progress::{Listener, StatusLine};
use crate::cli::{Failure, OrExit, complain, exit, note, report};

/// Boots a guest, runs the command there, and takes over its results.
pub(super) fn run(args: &RunArgs, kernels: &[String], folder: &mut Folder) -> Result<(), Failure> {
    // Not the user's folder: if that cannot be written, the summary is still printed.
    let own = PrivateFolder::new("guest").or_exit(exit::UNABLE)?;
    let mut line = StatusLine::new();
    let result =
        boot(args, kernels, own.path(), &mut line).and_then(|back| take_over(own.path(), folder, back));
    line.show("");
    result
}

/// How the copy in the guest ended, and its messages.
struct Back {
    /// Its exit status, or why it is unknown.
    status: Result<u8, String>,
    said: String,
}

/// Time limit per second that the parts usually take on real hardware: emulation is slow.
const PATIENCE: u32 = 20;

fn boot(args: &RunArgs, kernels: &[String], own: &Path, line: &mut StatusLine) -> Result<Back, Failure> {
    let binary = std::env::current_exe()
        .map_err(|error| format!("finding this program: {error}"))
        .or_exit(exit::INTERNAL)?;
    let mut words = vec!["run", "--driver=kernel", "--out=.", "--progress"];
    match args.depth() {
        Depth::Quick => words.push("--quick"),
        Depth::Usual => {}
        Depth::Thorough => words.push("--thorough"),
    }
    for (given, word) in [
        (args.no_trace, "--no-trace"),
        (args.experiments, "--experiments"),
        (args.klog_check, "--klog-check"),
    ] {
        if given {
            words.push(word);
        }
    }
    let faults = args.inject.iter().map(|fault| format!("--inject={fault}"));
    let words = words.into_iter().map(str::to_owned).chain(faults).collect();
    let given = kernels.iter().filter(|kernel| !kernel.is_empty()).cloned().collect();
    let options = Options {
        kernel: Choice { given, ..Choice::default() },
        limit: TimeLimit::Usual(args.depth().usual_whole() * PATIENCE),
        ..Options::new(binary, words)
    };
    let mut booting = StatusLine::new();
    let mut listener = Listener::new(line);
    let mut sinks = Sinks {
        stdout: &mut std::io::sink(),
        stderr: &mut listener,
        place: Some(&mut |name: &Name| Ok(Place::below(own, name))),
        progress: &mut |text| booting.show(text),
    };
    let outcome = vm::run(&options, &mut sinks);
    let said = std::mem::take(&mut listener.said);
    booting.show("");
    match outcome {
        Ok(outcome) => Ok(Back { status: Ok(outcome.status.exit_code()), said }),
        // Results may exist even after a panic or the loss of the guest.
        Err(error) if own.read_dir().is_ok_and(|mut files| files.next().is_some()) => {
            Ok(Back { status: Err(error.to_string()), said })
        }
        Err(error) => {
            complain(&error);
            note(said);
            Err(Failure { status: error.exit_code(), message: None })
        }
    }
}

/// Takes over the guest's results.
fn take_over(own: &Path, folder: &mut Folder, back: Back) -> Result<(), Failure> {
    let bundle = match report::read(&[own.to_owned()]) {
        Ok(bundle) => bundle,
        Err(why) => {
            note(back.said);
            // Such as 3: its kernel has no usable driver.
            let status = back.status.ok().filter(|status| *status > exit::FAILED);
            let why = format!("the run in the guest left no results: {why}");
            return Err(Failure::new(status.unwrap_or(exit::INTERNAL), why));
        }
    };
    folder.take_over(bundle, own);
    let trouble = match back.status {
        Ok(exit::FINE | exit::FAILED) => return Ok(()),
        Ok(status) => format!("the run in the guest ended with status {status}"),
        Err(why) => why,
    };
    folder.bundle.troubles.push(RunProblem {
        words: "ENDED EARLY".to_owned(),
        expected: "it runs to its end".to_owned(),
        ..RunProblem::not_run("the guest", trouble)
    });
    Ok(())
}
