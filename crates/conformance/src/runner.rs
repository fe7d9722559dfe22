//! Runs each item in its own process, so that a hang, a crash or leftover state affects only that item.
//! Not here: the items (sections), output (`ktap`).

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use procgroup::{Streams, WorkerProcess};

use super::check::Stop;
use super::fault_injection::Fault;
use super::item::{Item, Outcome};
use super::kernel_log::KernelLog;
use super::kit::Kit;
use super::subject::Subject;
use super::test_manager;
use super::{HELPER_COMMAND, catalogue};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Faults to inject.
    pub faults: Vec<Fault>,
    /// Time limit per item.
    pub limit: Duration,
    /// End behind the first item that fails.
    pub stop_at_failure: bool,
    /// A file of the driver's: it is written to before each item, and its text is a note of that item.
    pub read_after: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { faults: Vec::new(), limit: Duration::from_secs(60), stop_at_failure: false, read_after: None }
    }
}

/// Prefix of the result line of an item's process; its outcome as JSON follows.
const RESULT: &str = "RESULT ";

/// Checks that the suite can manage the context, which nearly every item needs.
///
/// # Errors
/// Which process manages it already, and what to do.
pub fn check_unmanaged(subject: &Subject) -> Result<(), String> {
    test_manager::become_manager(subject).map(drop).map_err(Stop::why)
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every item ran, or `report` asked for the end.
    Done,
    /// This item failed, and was to be the last.
    Failed(&'static str),
    /// This signal ended it, without a report of the current item.
    Stopped(&'static str),
    /// A process of this item, which was reported, hangs in the kernel and cannot be killed. Nothing that ran after it
    /// would show the driver as it is.
    Stuck(&'static str),
}

/// Runs items in order. `report` gets each outcome with diagnostics and returns whether to continue. A caught
/// SIGINT or SIGTERM (`sys::stop_signal::catch`) also ends the run.
pub fn run(
    subject: &Subject,
    items: &[&'static Item],
    options: &Options,
    report: &mut dyn FnMut(&Item, &Outcome, &[String]) -> bool,
) -> Ended {
    let mut open: Option<test_manager::ManagerThread> = None;
    let mut log = KernelLog::of(subject, &options.faults);
    for item in items {
        if let Some(signal) = sys::stop_signal::received() {
            return Ended::Stopped(signal);
        }
        let mut notes = Vec::new();
        if let Some(mut manager) = open.take_if(|manager| manager.has_ended() || item.free)
            && let Some(why) = manager.close()
        {
            notes.push(format!("the suite's own context manager had ended: {why}"));
        }
        if let Some(manager) = &open {
            // What the item before left there, under numbers that this one uses too.
            notes.extend(manager.forget_all().err().map(|stop| stop.why()));
        }
        if !item.free && open.is_none() {
            match test_manager::ManagerThread::new(subject) {
                Ok(manager) => open = Some(manager),
                Err(stop) => {
                    if report(item, &Outcome::Failed(stop.why()), &notes) {
                        continue;
                    }
                    return Ended::Done;
                }
            }
        }
        if let Some(file) = &options.read_after {
            notes.extend(std::fs::write(file, "0").err().map(|error| of_file(file, &error)));
        }
        let (outcome, is_stuck) = run_one(subject, item, options, &mut notes);
        // A terminal's signal also reaches the item's process, which makes its result meaningless.
        if let Some(signal) = sys::stop_signal::received() {
            return Ended::Stopped(signal);
        }
        let outcome = log.judge(outcome, &mut notes);
        if let Some(file) = &options.read_after {
            notes.push(std::fs::read_to_string(file).unwrap_or_else(|error| of_file(file, &error)));
        }
        if !report(item, &outcome, &notes) {
            return Ended::Done;
        }
        if is_stuck {
            return Ended::Stuck(item.id);
        }
        if options.stop_at_failure && matches!(outcome, Outcome::Failed(_)) {
            return Ended::Failed(item.id);
        }
    }
    Ended::Done
}

fn of_file(file: &Path, error: &std::io::Error) -> String {
    format!("{}: {}", file.display(), sys::errno::describe(error))
}

/// Runs one item: its outcome, and whether its process hangs in the kernel.
fn run_one(subject: &Subject, item: &Item, options: &Options, notes: &mut Vec<String>) -> (Outcome, bool) {
    /// Time for a killed process to end.
    const DYING: Duration = Duration::from_secs(10);
    /// Poll interval for stop signals.
    const TICK: Duration = Duration::from_millis(100);
    let own = [HELPER_COMMAND.to_owned(), "item".to_owned(), subject.address(), item.id.to_owned()];
    let words: Vec<String> = own.into_iter().chain(options.faults.iter().map(Fault::to_string)).collect();
    let (title, streams) = (format!("test {}", item.id), Streams::all_heard());
    let process = match WorkerProcess::spawn(Path::new("/proc/self/exe"), &title, &words, streams, None) {
        Ok(process) => process,
        Err(error) => return (Outcome::Failed(format!("its process did not start: {error}")), false),
    };
    let start = Instant::now();
    while process.end_within(TICK).is_none() {
        if sys::patience::is_over(start, options.limit) || sys::stop_signal::received().is_some() {
            let late = format!("it did not end within {:?}", options.limit);
            process.kill();
            if process.end_within(sys::patience::stretched(DYING)).is_some() {
                return (Outcome::Failed(late), false);
            }
            // Its drop would wait for the end.
            std::mem::forget(process);
            return (Outcome::Failed(format!("{late}, and cannot be killed: it hangs in the kernel")), true);
        }
    }
    let outcome = judge(&process.last_words(), process.end(), notes);
    // The first lines of a panic suffice; a backtrace would hide the results.
    let complaints = process.complaints();
    notes.extend(complaints.lines().filter(|line| !line.is_empty()).take(4).map(str::to_owned));
    (outcome, false)
}

/// Derives the outcome from the process's output and exit status.
fn judge(said: &str, status: Option<ExitStatus>, notes: &mut Vec<String>) -> Outcome {
    let mut outcome = None;
    for line in said.lines() {
        match line.strip_prefix(RESULT).map(serde_json::from_str) {
            Some(Ok(result)) => outcome = Some(result),
            // Cut short as the process died, for one.
            Some(Err(_)) | None => notes.push(line.to_owned()),
        }
    }
    outcome.unwrap_or_else(|| {
        Outcome::Failed(match status {
            Some(status) => match status.signal() {
                Some(signal) => format!("its process was killed by signal {signal}"),
                None => format!("its process ended without a result: {status}"),
            },
            None => "its process vanished".to_owned(),
        })
    })
}

/// Runs one test in this process and prints its outcome.
///
/// # Errors
/// Unknown item or fault, or no context.
pub(super) fn serve_item(subject: Subject, id: &str, faults: &[&str]) -> Result<(), String> {
    let item = catalogue().find(|item| item.id == id).ok_or_else(|| format!("no item {id}"))?;
    let faults = faults.iter().map(|fault| fault.parse()).collect::<Result<_, _>>()?;
    let kit = Kit::new(subject).map_err(Stop::why)?;
    let outcome = item.run(&kit.on(kit.subject.clone().with_faults(faults)));
    println!("{RESULT}{}", serde_json::to_string(&outcome).map_err(|error| error.to_string())?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_ends_as_it_says_or_as_its_process_did() {
        let judged = |said: &str, status| judge(said, Some(ExitStatus::from_raw(status)), &mut Vec::new());
        assert_eq!(judged("RESULT \"Passed\"\n", 0), Outcome::Passed);
        assert_eq!(judged("RESULT {\"Skipped\":\"no device\"}\n", 0), Outcome::Skipped("no device".into()));
        assert_eq!(judged("RESULT {\"Differs\":\"by nature\"}\n", 0), Outcome::Differs("by nature".into()));
        let failed = Outcome::Failed("expected 1,\ngot 2".into());
        let line = format!("RESULT {}\n", serde_json::to_string(&failed).expect("JSON"));
        assert_eq!(judged(&line, 0), failed);
        assert_eq!(judged("", 7), Outcome::Failed("its process was killed by signal 7".into()));
        assert!(matches!(judged("", 0x100), Outcome::Failed(why) if why.contains("without a result")));
        let mut notes = Vec::new();
        let said = "seen\nRESULT \"Passed\"\nRESULT {\"Fai";
        assert_eq!(judge(said, None, &mut notes), Outcome::Passed);
        assert_eq!(notes, ["seen", "RESULT {\"Fai"], "one that was cut short hides nothing");
    }
}
