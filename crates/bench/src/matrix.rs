//! Many kernels in the same tests: every round runs each test on each kernel, so that drift of the machine affects all.
//! [`kernels`] makes them of words and [`presets`].
//! Not here: one run (`crate::ab::Bench`), the table (`record::matrix`).
//!
//! Each run leaves its record in the folder at once. A later call with the same folder measures only what is missing, so
//! nothing is lost with a crash. A kernel that fails in a test is left out of that test's further rounds.

pub mod kernels;
pub mod presets;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::Run;
use record::compare::{Group, Member};
use record::matrix::Kernel;

use crate::ab::{Bench, RunFailure, Side};

/// Key in [`Run::context`] of what was measured: kernel and test.
const KEY: &str = "matrix.of";

/// The kernels and tests to measure.
#[derive(Clone, Debug)]
pub struct MatrixOptions {
    /// The kernels by name.
    pub kernels: Vec<(String, Side)>,
    /// The tests: commands of this program, without its name.
    pub tests: Vec<Vec<String>>,
    /// Runs of each kernel in each test.
    pub rounds: usize,
    /// Count guest instructions.
    pub icount: bool,
    /// Folder of the records.
    pub folder: PathBuf,
    /// Time limit of one run.
    pub patience: Duration,
}

/// Watches the runs.
pub trait Watcher {
    /// A run begins: its number, the number of all, the kernel and the test.
    fn starts(&mut self, at: usize, of: usize, kernel: &str, test: &str);
    /// A run is there from an earlier call.
    fn found(&mut self, kernel: &str, test: &str);
    /// A run failed.
    fn failed(&mut self, kernel: &str, why: &RunFailure);
}

/// Result of all runs.
#[derive(Debug)]
pub struct Measured {
    /// The words of each test.
    pub tests: Vec<String>,
    /// The kernels with their runs.
    pub kernels: Vec<Kernel>,
    /// The signal that ended it early.
    pub stopped: Option<&'static str>,
}

/// Runs what the folder does not have yet. SIGINT and SIGTERM end it and keep the results so far.
///
/// # Errors
/// It cannot begin: no test, a folder that cannot be written, a test that is called wrongly.
pub fn execute(options: &MatrixOptions, watcher: &mut dyn Watcher) -> Result<Measured, RunFailure> {
    let tests: Vec<String> = options.tests.iter().map(|words| words.join(" ")).collect();
    let benches = options.tests.iter();
    let benches = benches.map(|test| Bench::new(test, &options.folder, options.patience, options.icount));
    let benches: Vec<Bench> = benches.collect::<Result<_, _>>()?;
    let none = |name: &String| Kernel {
        name: name.clone(),
        tests: vec![Ok(Group { name: name.clone(), members: Vec::new() }); tests.len()],
    };
    let kernels = options.kernels.iter().map(|(name, _)| none(name)).collect();
    let mut measured = Measured { tests, kernels, stopped: None };
    let all = options.rounds * options.tests.len() * options.kernels.len();
    let mut at = 0;
    for round in 0..options.rounds {
        for (test, bench) in benches.iter().enumerate() {
            for turn in 0..options.kernels.len() {
                // Each round begins with another kernel: none has always the same neighbour's heat.
                let kernel = (turn + round) % options.kernels.len();
                at += 1;
                if let Some(signal) = sys::stop_signal::received() {
                    measured.stopped = Some(signal);
                    return Ok(measured);
                }
                one(options, bench, &mut measured, (kernel, test, round), (at, all), watcher)?;
            }
        }
    }
    Ok(measured)
}

fn one(
    options: &MatrixOptions,
    bench: &Bench,
    measured: &mut Measured,
    (kernel, test, round): (usize, usize, usize),
    (at, all): (usize, usize),
    watcher: &mut dyn Watcher,
) -> Result<(), RunFailure> {
    let words = &measured.tests[test];
    let (name, side) = &options.kernels[kernel];
    let Ok(group) = &mut measured.kernels[kernel].tests[test] else { return Ok(()) };
    let identity = identity(side, words, options.icount);
    let file = format!("{}-{:016x}-run-{:02}", slug(name), hash(&identity), round + 1);
    let mark = (KEY.to_owned(), identity);
    if let Some(member) = earlier(&options.folder.join(format!("{file}.json")), &mark) {
        watcher.found(name, words);
        group.members.push(member);
        return Ok(());
    }
    watcher.starts(at, all, name, words);
    match bench.run(side, &file, mark) {
        Ok(member) if member.run.complete => group.members.push(member),
        // A part of a test that was stopped is measured again.
        _ if sys::stop_signal::received().is_some() => {}
        Err(why @ RunFailure::Here(_)) => return Err(why),
        outcome => {
            let why = match outcome {
                Ok(member) => RunFailure::Broken(format!("it stopped early: {}", reason(&member.run))),
                Err(why) => why,
            };
            watcher.failed(name, &why);
            // Good runs stay.
            if group.members.is_empty() {
                measured.kernels[kernel].tests[test] = Err(why.to_string());
            }
        }
    }
    Ok(())
}

/// The record of an earlier call, if it is of the same kernel and test.
fn earlier(file: &Path, mark: &(String, String)) -> Option<Member> {
    let run = Run::read(File::open(file).ok()?).ok()?;
    let same = run.context.contains(mark) && run.complete;
    same.then(|| Member { file: file.display().to_string(), run })
}

fn reason(run: &Run) -> &str {
    run.incomplete_reason.as_deref().unwrap_or("the run did not end")
}

/// FNV-1a of a text.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Kernel, test and build of this program in words. Files count with size and age: another image or module of that name is another kernel.
fn identity(side: &Side, test: &str, icount: bool) -> String {
    let files = side.kernels.iter().map(Path::new).chain(side.driver.as_deref()).filter_map(|file| {
        let about = std::fs::metadata(file).ok()?;
        let age = about.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(format!("; {} bytes of {}", about.len(), age.as_secs()))
    });
    let counted = if icount { "; counted" } else { "" };
    let tool = host::tool();
    let build = tool.git.as_deref().unwrap_or_default();
    format!("{side}; {test}{counted}{}; binderperf {} {build}", files.collect::<String>(), tool.version)
}

/// A name as part of a file's.
fn slug(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._".contains(letter) { letter } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_was_built_anew_is_another_kernel() {
        let folder = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let image = folder.path().join("bzImage");
        let side: Side = format!("kernel={}", image.display()).parse().expect("a side");
        std::fs::write(&image, "one").expect("written");
        let first = identity(&side, "throughput binder", true);
        assert_eq!(first, identity(&side, "throughput binder", true));
        assert_ne!(first, identity(&side, "throughput binder", false));
        assert_ne!(first, identity(&side, "latency binder", true));
        std::fs::write(&image, "another").expect("written");
        assert_ne!(first, identity(&side, "throughput binder", true));
        let module = folder.path().join("binder.ko");
        std::fs::write(&module, "one").expect("written");
        let side = Side::of_kernel("7.2", Some(&module), &[]);
        let first = identity(&side, "throughput binder", true);
        std::fs::write(&module, "another").expect("written");
        assert_ne!(first, identity(&side, "throughput binder", true));
    }

    #[test]
    fn names_become_file_names() {
        assert_eq!(slug("built:7.2-c/rt debug"), "built-7.2-c-rt-debug");
    }
}
