//! Outcomes of a program on one driver, and the text in which a guest sends it.
//! Not here: the comparison (`compare`).

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

/// A place of a driver that programs reach, where the kernel has KCOV: the lower half of its address, since the upper half
/// is the same all over a kernel.
pub type Spot = u32;

/// An outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The step after which it was seen.
    pub step: usize,
    /// The thread that had waited, if it is not the step's own outcome.
    pub thread: Option<String>,
    /// The outcome.
    pub text: String,
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
}

/// Outcomes in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The outcomes.
    pub lines: Vec<Line>,
    /// Places of the driver that no program before it reached, where the kernel has KCOV.
    pub reached: BTreeSet<Spot>,
    /// Faults that the kernel reported of itself meanwhile; or that it went down.
    pub kernel: Vec<String>,
}

impl Transcript {
    /// Outcomes that were seen after a step.
    pub(crate) fn at(&self, step: usize) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.step == step)
    }

    /// The same as one text.
    pub(crate) fn text_at(&self, step: usize) -> String {
        let texts = self.at(step).map(|line| match &line.thread {
            None => line.text.clone(),
            Some(thread) => format!("{thread}: {}", line.text),
        });
        texts.collect::<Vec<_>>().join(" | ")
    }

    /// A program that took its guest down.
    #[must_use]
    pub fn down(why: &str) -> Self {
        let first = why.lines().next().unwrap_or_default();
        Self { kernel: vec![format!("the guest went down: {first}")], ..Self::default() }
    }
}

/// Line before each program that a guest runs. One line of JSON follows, its transcript, unless the guest goes down.
const BEGIN: &str = "fuzz-program";

/// Writes that a program begins.
///
/// # Errors
/// The output is closed.
pub fn begin(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{BEGIN}")?;
    out.flush()
}

/// Writes the transcript of the program that began.
///
/// # Errors
/// The output is closed.
pub fn end(out: &mut dyn Write, transcript: &Transcript) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(transcript)?)?;
    out.flush()
}

/// Transcripts of a guest's output in order, and whether a program began after the last of them.
#[must_use]
pub fn parse(text: &str) -> (Vec<Transcript>, bool) {
    let (mut whole, mut is_begun) = (Vec::new(), false);
    for line in text.lines() {
        if line == BEGIN {
            is_begun = true;
        } else if is_begun && let Ok(transcript) = serde_json::from_str(line) {
            whole.push(transcript);
            is_begun = false;
        }
    }
    (whole, is_begun)
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
        let (mut one, mut two) = (b"noise\n".to_vec(), Vec::new());
        begin(&mut one).and_then(|()| end(&mut one, &made)).expect("written");
        begin(&mut two).and_then(|()| end(&mut two, &made)).expect("written");
        let (one, two) = (String::from_utf8(one).expect("text"), String::from_utf8(two).expect("text"));
        assert_eq!(parse(&one), (vec![made.clone()], false));
        assert_eq!(parse(&format!("{one}{}", &two[..two.len() - 9])), (vec![made.clone()], true));
        assert_eq!(parse(&format!("{one}{two}")), (vec![made.clone(), made], false));
        assert_eq!(parse(""), (Vec::new(), false));
    }
}
