//! Outcomes of a program on one driver, and the text in which a guest sends it.
//! Not here: the comparison (`compare`).

use std::collections::BTreeSet;
use std::fmt;

use crate::reached::{self, Spot};

/// An outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The step after which it was seen.
    pub step: usize,
    /// The thread that had waited, if it is not the step's own outcome.
    pub thread: Option<String>,
    /// The outcome.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.thread {
            None => write!(f, "{} {}", self.step, self.text),
            Some(thread) => write!(f, "{}+{thread} {}", self.step, self.text),
        }
    }
}

impl Line {
    /// Whether this is wrong on any driver: a step that does not come back, a process that ends by itself or cannot be ended, what a
    /// driver keeps of processes that are gone.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        let text = &self.text;
        text.ends_with("hangs")
            || text.ends_with("cannot be killed")
            || text.starts_with("its process ended")
            || text.starts_with("left behind")
            || text.contains("the driver keeps ")
    }

    fn parse(text: &str) -> Option<Self> {
        let (place, text) = text.split_once(' ').unwrap_or((text, ""));
        let (step, thread) = match place.split_once('+') {
            Some((step, thread)) => (step, Some(thread.to_owned())),
            None => (place, None),
        };
        Some(Self { step: step.parse().ok()?, thread, text: text.to_owned() })
    }
}

/// Outcomes in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The outcomes.
    pub lines: Vec<Line>,
    /// Places of the driver that no program before it reached, where the kernel has KCOV.
    pub reached: BTreeSet<Spot>,
    /// Faults that the kernel reported of itself meanwhile; or that it went down.
    pub kernel: Vec<String>,
}

impl Transcript {
    /// A program that took its guest down.
    #[must_use]
    pub fn down(why: &str) -> Self {
        let first = why.lines().next().unwrap_or_default();
        Self { kernel: vec![format!("the guest went down: {first}")], ..Self::default() }
    }
}

/// First words of the lines between which a transcript stands.
const BEGIN: &str = "fuzz-program ";
const KERNEL: &str = "fuzz-kernel ";
const END: &str = "fuzz-end ";

/// Line that announces program `number`.
#[must_use]
pub fn beginning(number: usize) -> String {
    format!("{BEGIN}{number}\n")
}

/// Lines of a transcript of program `number`, after its beginning.
#[must_use]
pub fn ending(number: usize, transcript: &Transcript) -> String {
    let lines = transcript.lines.iter().map(|line| format!("{line}\n"));
    let kernel = transcript.kernel.iter().map(|text| format!("{KERNEL}{text}\n"));
    let reached = (!transcript.reached.is_empty()).then(|| {
        reached::text(&transcript.reached)
            + "
"
    });
    let all: String = lines.chain(kernel).chain(reached).collect();
    format!("{all}{END}{number}\n")
}

/// Transcripts of a guest's output in order, and whether a program began after the last of them.
#[must_use]
pub fn parse(text: &str) -> (Vec<Transcript>, bool) {
    let (mut whole, mut current) = (Vec::new(), None::<Transcript>);
    for line in text.lines() {
        if line.starts_with(BEGIN) {
            current = Some(Transcript::default());
        } else if line.starts_with(END) {
            whole.extend(current.take());
        } else if let Some(transcript) = &mut current {
            if let Some(text) = line.strip_prefix(KERNEL) {
                transcript.kernel.push(text.to_owned());
            } else if let Some(reached) = reached::parse(line) {
                transcript.reached = reached;
            } else {
                transcript.lines.extend(Line::parse(line));
            }
        }
    }
    (whole, current.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_are_read_as_they_are_written_and_a_cut_one_is_noticed() {
        let line = |step, thread: Option<&str>, text: &str| Line {
            step,
            thread: thread.map(str::to_owned),
            text: text.to_owned(),
        };
        let made = Transcript {
            lines: vec![line(0, None, "ok NOOP"), line(1, Some("p1.t0"), "EINTR"), line(2, None, "")],
            reached: BTreeSet::from([0xffff_0001, 7]),
            kernel: vec!["BUG: x".to_owned()],
        };
        let text = format!("{}{}{}", beginning(0), ending(0, &made), beginning(1));
        assert_eq!(parse(&text), (vec![made.clone()], true));
        assert_eq!(parse(&format!("noise\n{}{}", beginning(0), ending(0, &made))), (vec![made], false));
        assert_eq!(parse(""), (Vec::new(), false));
    }
}
