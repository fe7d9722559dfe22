//! Room: what reading a trace came to: how much was read, what is missing, what was wrong.
//! Not here: the events that say where something is missing (`Kind::Lost`).

use std::fmt;

/// What a reader has met so far. Whole when it has given its last event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events given, without [`crate::event::Kind::Lost`].
    pub events: u64,
    /// Events that the kernel says it lost.
    pub lost: u64,
    /// Gaps of which the trace does not say how many events are missing.
    pub gaps: u64,
    /// What was wrong, each said once with how often it was met. If there are any, the result is partial.
    pub problems: Vec<Problem>,
}

/// One thing that was wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What sort of thing.
    pub sort: Sort,
    /// Where it was met first, and what was found there.
    pub detail: String,
    /// How often it was met.
    pub times: u64,
}

/// Sorts of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sort {
    /// The file ends in the middle of something.
    Truncated,
    /// Bytes that cannot be what they should be; what follows them up to the next page is skipped.
    Corrupt,
    /// A CPU's clock went backwards; the events are given with their own times all the same.
    ClockBackwards,
    /// The format of an event that matters lacks a field; such events come as `Kind::Other`.
    MissingField,
    /// An event whose format the trace does not carry.
    UnknownEvent,
    /// A line of text that is no event.
    StrangeLine,
    /// Something that this program's version cannot read.
    Unsupported,
}

/// The most problems that are told apart; a forged file has more.
const MOST: usize = 64;

impl Report {
    /// Notes a problem, the first of its sort and detail, or one more like it. `detail` is only made for
    /// a new sort: repetitions of a sort at other places are counted with the first.
    pub(crate) fn note(&mut self, sort: Sort, detail: impl FnOnce() -> String) {
        if let Some(known) = self.problems.iter_mut().find(|problem| problem.sort == sort) {
            known.times += 1;
        } else {
            self.problems.push(Problem { sort, detail: detail(), times: 1 });
        }
    }

    /// Notes a problem that is told apart from others of its sort by its detail.
    pub(crate) fn note_apart(&mut self, sort: Sort, detail: String) {
        if let Some(known) =
            self.problems.iter_mut().find(|problem| problem.sort == sort && problem.detail == detail)
        {
            known.times += 1;
        } else if self.problems.len() < MOST {
            self.problems.push(Problem { sort, detail, times: 1 });
        }
    }

    /// Notes lost events.
    pub(crate) fn lose(&mut self, count: Option<u64>) {
        match count {
            Some(count) => self.lost = self.lost.saturating_add(count),
            None => self.gaps += 1,
        }
    }

    /// So many events are missing in so many gaps that were noted without a count.
    pub(crate) fn count_gaps(&mut self, gaps: u64, lost: u64) {
        self.gaps = self.gaps.saturating_sub(gaps);
        self.lost = self.lost.saturating_add(lost);
    }

    /// Whether everything that was recorded is there and was understood.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && self.gaps == 0 && self.problems.is_empty()
    }
}

impl fmt::Display for Report {
    /// One line for people, and one for each problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events", self.events)?;
        if self.lost > 0 {
            write!(f, ", {} lost by the kernel", self.lost)?;
        }
        if self.gaps > 0 {
            write!(f, ", {} gaps of unknown size", self.gaps)?;
        }
        for problem in &self.problems {
            write!(f, "\n{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sort = match self.sort {
            Sort::Truncated => "the trace breaks off",
            Sort::Corrupt => "the trace is damaged",
            Sort::ClockBackwards => "the trace's clock goes backwards",
            Sort::MissingField => "an event's format lacks a field",
            Sort::UnknownEvent => "an event's format is not in the trace",
            Sort::StrangeLine => "a line is no event",
            Sort::Unsupported => "not supported",
        };
        write!(f, "{sort}: {}", self.detail)?;
        if self.times > 1 { write!(f, " (and {} more)", self.times - 1) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_said_once_and_counted() {
        let mut report = Report { events: 3, ..Report::default() };
        assert!(report.is_whole());
        report.note(Sort::Corrupt, || "page 3".into());
        report.note(Sort::Corrupt, || unreachable!("only the first is described"));
        report.lose(Some(5));
        report.lose(None);
        assert!(!report.is_whole());
        assert_eq!(
            report.to_string(),
            "3 events, 5 lost by the kernel, 1 gaps of unknown size\nthe trace is damaged: page 3 (and 1 more)"
        );
    }

    #[test]
    fn a_forged_trace_cannot_fill_memory_with_problems() {
        let mut report = Report::default();
        for number in 0..1000 {
            report.note_apart(Sort::MissingField, number.to_string());
        }
        assert_eq!(report.problems.len(), MOST);
    }
}
