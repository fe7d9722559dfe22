//! The kernel's log as part of an item's verdict: a fault that the kernel reports of itself while an item runs is that
//! item's failure.
//! Not here: reading the log, which messages are such reports (`host::klog`).

use std::time::Duration;

use host::klog::{Message, Watch};

use super::fault_injection::Fault;
use super::item::Outcome;
use super::subject::Subject;

/// Time for the driver to release what an item's processes had open (contract EXT-04): its faults belong to that item.
const RELEASE: Duration = Duration::from_millis(10);
/// Alarms that are shown of an item, besides the first.
const SHOWN: usize = 4;

/// The kernel's log during a run.
pub(super) struct KernelLog {
    watch: Option<Watch>,
    /// Why it is not read, until that was reported.
    note: Option<String>,
}

impl KernelLog {
    /// Begins to read it if the driver is a kernel's.
    pub(super) fn of(subject: &Subject, faults: &[Fault]) -> Self {
        if subject.device().is_none() {
            return Self { watch: None, note: None };
        }
        match Watch::begin() {
            Ok(watch) if faults.contains(&Fault::LogABug) => {
                Self { watch: Some(watch.with_planted()), note: None }
            }
            Ok(watch) => Self { watch: Some(watch), note: None },
            Err(why) => Self { watch: None, note: Some(unread(&why)) },
        }
    }

    /// The outcome of an item that has just ended, with what the kernel reported meanwhile.
    pub(super) fn judge(&mut self, outcome: Outcome, notes: &mut Vec<String>) -> Outcome {
        notes.extend(self.note.take());
        let Some(watch) = &mut self.watch else { return outcome };
        std::thread::sleep(RELEASE);
        match watch.alarms() {
            Ok(alarms) => judged(outcome, &alarms, notes),
            Err(why) => {
                notes.push(unread(&why));
                self.watch = None;
                outcome
            }
        }
    }
}

fn unread(why: &dyn std::fmt::Display) -> String {
    format!("faults that the kernel reports do not count: {why}")
}

/// The outcome with these alarms.
fn judged(outcome: Outcome, alarms: &[Message], notes: &mut Vec<String>) -> Outcome {
    let [first, more @ ..] = alarms else { return outcome };
    notes.extend(more.iter().take(SHOWN).map(|message| format!("kernel: {message}")));
    if let Some(rest) = more.len().checked_sub(SHOWN).filter(|rest| *rest > 0) {
        notes.push(format!("kernel: {rest} more such lines"));
    }
    let reported = format!("the kernel reported a fault of itself while it ran: {first}");
    match outcome {
        Outcome::Failed(why) => Outcome::Failed(format!("{reported}; and {why}")),
        _ => Outcome::Failed(reported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_kernel_fails_the_item_that_ran() {
        let message = |text: &str| Message { level: 3, time_us: 1_500_000, text: text.to_owned() };
        let mut notes = Vec::new();
        assert_eq!(judged(Outcome::Passed, &[], &mut notes), Outcome::Passed);
        let alarms: Vec<Message> = (0..8).map(|number| message(&format!("BUG: {number}"))).collect();
        let reported = "the kernel reported a fault of itself while it ran: [1.500000] <3> BUG: 0";
        assert_eq!(judged(Outcome::Passed, &alarms, &mut notes), Outcome::Failed(reported.to_owned()));
        assert_eq!((notes.len(), notes[0].as_str()), (SHOWN + 1, "kernel: [1.500000] <3> BUG: 1"));
        assert_eq!(notes[SHOWN], "kernel: 3 more such lines");
        let both = judged(Outcome::Failed("expected 1".to_owned()), &alarms[..1], &mut Vec::new());
        assert_eq!(both, Outcome::Failed(format!("{reported}; and expected 1")));
    }
}
