//! Room: runs items, each in a process of its own, so that one that hangs, crashes or leaves a mess
//! behind costs only itself.
//! Not here: what an item does (the sections), how results look (`ktap`).

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::faulty::{Fault, FaultySubject};
use super::item::{Item, Outcome, Slot};
use super::kit::Kit;
use super::lobby;
use super::subject::Subject;
use super::{HELPER_COMMAND, catalogue, evidence};

/// How a suite is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Faults to put in front of the driver.
    pub faults: Vec<Fault>,
    /// After how long an item counts as hanging.
    pub limit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { faults: Vec::new(), limit: Duration::from_secs(60) }
    }
}

/// Marks the line in which an item's process says how it ended.
const RESULT: &str = "RESULT ";

/// Checks that the suite may manage the context, which nearly every item needs.
///
/// # Errors
/// Who manages it already, and what to do.
pub fn check_unmanaged(subject: &dyn Subject) -> Result<(), String> {
    match lobby::take(subject) {
        Ok(_) => Ok(()),
        Err(stop) => Err(stop.why()),
    }
}

/// Runs items in order; each outcome goes to `report` with the item's diagnostics, which says
/// whether to go on. SIGINT and SIGTERM end that, too; the item under way is then not reported. Returns
/// the signal that did.
pub fn run(
    subject: &dyn Subject,
    items: &[&Item],
    options: &Options,
    report: &mut dyn FnMut(&Item, &Outcome, &[String]) -> bool,
) -> Option<&'static str> {
    // Without it a signal ends this process, which is no worse than before.
    let _ = sys::stop_signal::catch();
    let mut open: Option<lobby::Open> = None;
    for item in items {
        if let Some(signal) = sys::stop_signal::received() {
            return Some(signal);
        }
        let mut notes = Vec::new();
        if let Some(lobby) = open.take_if(|lobby| lobby.has_ended() || item.slot == Slot::Free)
            && let Some(why) = lobby.close()
        {
            notes.push(format!("the suite's own context manager had ended: {why}"));
        }
        if item.slot == Slot::Lobby && open.is_none() {
            match lobby::Open::new(subject) {
                Ok(lobby) => open = Some(lobby),
                Err(stop) => {
                    if report(item, &Outcome::Failed(stop.why()), &notes) {
                        continue;
                    }
                    return None;
                }
            }
        }
        let (outcome, said) = run_one(subject, item, options);
        // A terminal's signal reaches the item's process, too, and what that then did says nothing.
        if let Some(signal) = sys::stop_signal::received() {
            return Some(signal);
        }
        notes.extend(said);
        if !report(item, &outcome, &notes) {
            return None;
        }
    }
    None
}

/// How often it is looked whether somebody wants to stop.
const TICK: Duration = Duration::from_millis(100);

/// What was sent, unless that takes longer than `limit` or somebody wants to stop.
fn within<T>(limit: Duration, sent: &mpsc::Receiver<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        match sent.recv_timeout(TICK.min(limit.saturating_sub(start.elapsed()))) {
            Ok(value) => return Some(value),
            Err(mpsc::RecvTimeoutError::Timeout)
                if start.elapsed() < limit && sys::stop_signal::received().is_none() => {}
            Err(_) => return None,
        }
    }
}

fn run_one(subject: &dyn Subject, item: &Item, options: &Options) -> (Outcome, Vec<String>) {
    let faults: Vec<String> = options.faults.iter().map(Fault::to_string).collect();
    let mut command = Command::new("/proc/self/exe");
    command.arg(HELPER_COMMAND).arg("item").arg(subject.address()).arg(item.id).args(faults);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    sys::tied_child::die_with_parent(&mut command);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return (Outcome::Failed(format!("its process did not start: {error}")), Vec::new()),
    };
    let (send, ended) = mpsc::channel();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let complaints = std::thread::spawn(move || read_all(stderr));
    std::thread::spawn(move || send.send(read_all(stdout)));
    let said = within(options.limit, &ended);
    // After the output's end the process is ending too; after the limit it must.
    if said.is_none() {
        let _ = child.kill();
    }
    let status = child.wait();
    let Some(said) = said else {
        return (Outcome::Failed(format!("it did not end within {:?}", options.limit)), Vec::new());
    };
    let mut notes = Vec::new();
    let outcome = judge(&said, status.ok(), &mut notes);
    // A panic's first lines say it all; a backtrace would bury the results.
    let complaints = complaints.join().unwrap_or_default();
    notes.extend(complaints.lines().filter(|line| !line.is_empty()).take(4).map(str::to_owned));
    (outcome, notes)
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What came before an error still counts.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How an item ended, from what its process said last and how that ended.
fn judge(said: &str, status: Option<ExitStatus>, notes: &mut Vec<String>) -> Outcome {
    let mut outcome = None;
    for line in said.lines() {
        match line.strip_prefix(RESULT) {
            Some("pass") => outcome = Some(Outcome::Passed),
            Some(result) => {
                let (word, why) = result.split_once(' ').unwrap_or((result, ""));
                let made: fn(String) -> Outcome = match word {
                    "skip" => Outcome::Skipped,
                    "differs" => Outcome::Differs,
                    _ => Outcome::Failed,
                };
                outcome = Some(made(why.to_owned()));
            }
            None => notes.push(line.to_owned()),
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

/// The item's side: runs one test in this process and says how it ended.
///
/// # Errors
/// An unknown item or fault, or no context: what is wrong.
pub(super) fn serve_item<'w>(
    subject: Box<dyn Subject>,
    id: &str,
    faults: impl Iterator<Item = &'w str>,
) -> Result<(), String> {
    let item = catalogue().find(|item| item.id == id).ok_or_else(|| format!("no item {id}"))?;
    let evidence = evidence::examine(subject.as_ref()).map_err(|error| error.to_string())?;
    let faults: Vec<Fault> = faults.map(str::parse).collect::<Result<_, _>>()?;
    let subject = if faults.is_empty() { subject } else { Box::new(FaultySubject::new(subject, faults)) };
    let outcome = Outcome::from((item.test)(&Kit { subject, evidence }));
    let line = match item.judged(outcome) {
        Outcome::Passed => "pass".to_owned(),
        Outcome::Skipped(why) => format!("skip {}", why.replace('\n', " ")),
        Outcome::Differs(why) => format!("differs {}", why.replace('\n', " ")),
        Outcome::Failed(why) => format!("fail {}", why.replace('\n', " ")),
    };
    println!("{RESULT}{line}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_ends_as_it_says_or_as_its_process_did() {
        let judged = |said: &str, status| judge(said, Some(ExitStatus::from_raw(status)), &mut Vec::new());
        assert_eq!(judged("RESULT pass\n", 0), Outcome::Passed);
        assert_eq!(judged("RESULT skip no device\n", 0), Outcome::Skipped("no device".into()));
        assert_eq!(judged("RESULT differs by nature\n", 0), Outcome::Differs("by nature".into()));
        assert_eq!(judged("RESULT fail expected 1, got 2\n", 0), Outcome::Failed("expected 1, got 2".into()));
        assert_eq!(judged("", 7), Outcome::Failed("its process was killed by signal 7".into()));
        assert!(matches!(judged("", 0x100), Outcome::Failed(why) if why.contains("without a result")));
        let mut notes = Vec::new();
        assert_eq!(judge("seen\nRESULT pass\n", None, &mut notes), Outcome::Passed);
        assert_eq!(notes, ["seen"]);
    }
}
