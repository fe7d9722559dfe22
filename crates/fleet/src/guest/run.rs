//! `run --vm`: runs the same command in a guest and takes over its folder, or its log of a soak.
//! Not here: booting (`vm`).

use std::path::Path;
use std::time::Duration;

use bench::suite::Depth;
use intake::{Name, Place};
use record::render::report::RunProblem;
use store::run::Folder;
use sys::private_folder::PrivateFolder;
use vm::guest::WORKSHOP;
use vm::{Added, Options, Sinks, TimeLimit, kernel::Choice};

use console::progress::{Listener, StatusLine};
use console::{Failure, OrExit, complain, exit, note, tell};

/// Boots a guest, runs `run` with these words there, and takes over its results. `usual`: how long it takes on real hardware.
///
/// # Errors
/// There is no guest, or it left no results.
pub fn run(
    kernels: &[String],
    words: Vec<String>,
    usual: Duration,
    folder: &mut Folder,
) -> Result<(), Failure> {
    // Not the user's folder: if that cannot be written, the summary is still printed.
    let own = PrivateFolder::new("guest").or_exit(exit::UNABLE)?;
    let job = Job { words, limit: usual * PATIENCE, added: Vec::new() };
    let back = boot(kernels, job, own.path())?;
    take_over(own.path(), folder, back)
}

/// Soaks in a guest with these words, behind the turns of this log if it has any; the log then has the guest's turns, too. They
/// come back when the guest ends.
///
/// # Errors
/// There is no guest, or it left no turns.
pub fn soak(kernels: &[String], words: Vec<String>, time: Duration, log: &Path) -> Result<(), Failure> {
    let own = PrivateFolder::new("guest").or_exit(exit::UNABLE)?;
    let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let earlier = std::fs::metadata(log).is_ok_and(|file| file.len() > 0);
    let added = Added::at(log, &format!("{WORKSHOP}/{name}")).or_exit(exit::USAGE)?;
    let limit = time * 2 + Depth::Quick.usual_whole() * PATIENCE;
    let job = Job { words, limit, added: earlier.then_some(added).into_iter().collect() };
    let Back { status, said } = boot(kernels, job, own.path())?;
    let there = own.path().join(&name);
    if !there.exists() {
        note(said);
        let status = status.ok().filter(|status| *status > exit::FAILED).unwrap_or(exit::INTERNAL);
        return Err(Failure::new(status, "the soak in the guest left no turns"));
    }
    sys::draft::copy(&there, log)
        .map_err(|error| Failure::of_file(exit::INTERNAL, "write all of the turns to", log, &error))?;
    match status {
        Ok(exit::FINE | exit::FAILED | exit::UNABLE) => Ok(()),
        Ok(status) => {
            note(said);
            Err(Failure::new(status, format_args!("the soak in the guest ended with status {status}")))
        }
        Err(why) => Err(Failure::new(exit::INTERNAL, why)),
    }
}

/// Task of the copy in the guest.
struct Job {
    /// Its words, apart from those that every copy gets.
    words: Vec<String>,
    /// Time limit on a machine that does nothing else.
    limit: Duration,
    /// Files that the guest has, too.
    added: Vec<Added>,
}

/// How the copy in the guest ended, and its messages.
struct Back {
    /// Its exit status, or why it is unknown.
    status: Result<u8, String>,
    said: String,
}

/// Time limit per second that the parts usually take on real hardware: emulation is slow.
const PATIENCE: u32 = 20;

fn boot(kernels: &[String], job: Job, own: &Path) -> Result<Back, Failure> {
    let binary = std::env::current_exe()
        .map_err(|error| format!("finding this program: {error}"))
        .or_exit(exit::INTERNAL)?;
    let always = ["run", "--driver=kernel", "--out=.", "--progress"].map(str::to_owned);
    let words = always.into_iter().chain(job.words).collect();
    let given = kernels.iter().filter(|kernel| !kernel.is_empty()).cloned().collect();
    let options = Options {
        kernel: Choice { given, ..Choice::default() },
        limit: TimeLimit::Usual(job.limit),
        added: job.added,
        ..Options::new(binary, words)
    };
    let (mut booting, mut line) = (StatusLine::default(), StatusLine::default());
    let mut listener = Listener::new(&mut line);
    let mut sinks = Sinks {
        stdout: &mut std::io::sink(),
        stderr: &mut listener,
        place: Some(&mut |name: &Name| Ok(Place::below(own, name))),
        progress: &mut |text| booting.show(text),
    };
    let outcome = vm::run(&options, &mut sinks);
    let said = std::mem::take(&mut listener.said);
    booting.show("");
    line.show("");
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
    let bundle = match store::bundle::read(&[own.to_owned()], tell) {
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
