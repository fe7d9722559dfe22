//! Result of reading a trace: events read, events lost, problems.
//! Not here: the events that mark a gap (`Kind::Lost`).

use std::fmt;

use units::visible::printable;

/// Reader statistics and problems; complete after the last event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events read, without [`crate::event::Kind::Lost`].
    pub events: u64,
    /// Events that the kernel reports as lost.
    pub lost: u64,
    /// Gaps with an unknown number of missing events.
    pub gaps: u64,
    /// CPU time in nanoseconds that the hypervisor gave to others, if the recorder noted it.
    pub stolen_ns: Option<u64>,
    /// Problems, each with its number of occurrences. If any, the result is partial.
    pub problems: Vec<Problem>,
}

/// Problem of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Kind of problem.
    pub kind: ProblemKind,
    /// Location and content of the first occurrence.
    pub detail: String,
    /// Number of occurrences.
    pub times: u64,
}

/// Kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The file is truncated.
    Truncated,
    /// Invalid bytes; the rest of their page is skipped.
    Corrupt,
    /// A CPU's clock went backwards; the events keep their times.
    ClockBackwards,
    /// The times are counts of a clock whose unit is not known, such as the CPU's; they are taken for nanoseconds.
    OtherClock,
    /// The format of a decoded event lacks a field; such events come as `Kind::Other`.
    MissingField,
    /// Event without a format in the trace.
    UnknownEvent,
    /// Line of text that is no event.
    StrangeLine,
    /// Not supported by this version.
    Unsupported,
}

/// Maximum number of distinct problems; a forged file has more.
const MOST: usize = 64;

impl Report {
    /// Notes a problem. Problems of one kind are counted together; `detail` is made only for the first of them.
    pub(crate) fn note(&mut self, kind: ProblemKind, detail: impl FnOnce() -> String) {
        if let Some(known) = self.problems.iter_mut().find(|problem| problem.kind == kind) {
            known.times += 1;
        } else {
            self.problems.push(Problem { kind, detail: detail(), times: 1 });
        }
    }

    /// Notes a problem that is distinguished from others of its kind by its detail.
    pub(crate) fn note_apart(&mut self, kind: ProblemKind, detail: String) {
        if let Some(known) =
            self.problems.iter_mut().find(|problem| problem.kind == kind && problem.detail == detail)
        {
            known.times += 1;
        } else if self.problems.len() < MOST {
            self.problems.push(Problem { kind, detail, times: 1 });
        }
    }

    /// Notes lost events.
    pub(crate) fn lose(&mut self, count: Option<u64>) {
        match count {
            Some(count) => self.lost = self.lost.saturating_add(count),
            None => self.gaps += 1,
        }
    }

    /// Replaces gaps noted without a count by their number of lost events.
    pub(crate) fn count_gaps(&mut self, gaps: u64, lost: u64) {
        self.gaps = self.gaps.saturating_sub(gaps);
        self.lost = self.lost.saturating_add(lost);
    }

    /// Whether the trace is complete and was fully understood.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && self.gaps == 0 && self.problems.is_empty()
    }
}

impl fmt::Display for Report {
    /// One summary line, and one line for each problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events", self.events)?;
        if self.lost > 0 {
            write!(f, ", {} lost by the kernel", self.lost)?;
        }
        if self.gaps > 0 {
            write!(f, ", {} gaps of unknown size", self.gaps)?;
        }
        if let Some(stolen) = self.stolen_ns.filter(|stolen| *stolen > 0) {
            write!(f, ", {} of CPU time taken by the host", units::duration(stolen as f64))?;
        }
        for problem in &self.problems {
            write!(f, "\n{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ProblemKind::Truncated => "the trace breaks off",
            ProblemKind::Corrupt => "the trace is damaged",
            ProblemKind::ClockBackwards => "the trace's clock goes backwards",
            ProblemKind::OtherClock => {
                "the times are of a clock whose unit is not known (record with trace_clock mono or boot)"
            }
            ProblemKind::MissingField => "an event's format lacks a field",
            ProblemKind::UnknownEvent => "an event's format is not in the trace",
            ProblemKind::StrangeLine => "a line is no event",
            ProblemKind::Unsupported => "not supported",
        };
        write!(f, "{kind}: {}", printable(&self.detail))?;
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
        report.note(ProblemKind::Corrupt, || "page\n3".into());
        report.note(ProblemKind::Corrupt, || unreachable!("only the first is described"));
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
            report.note_apart(ProblemKind::MissingField, number.to_string());
        }
        assert_eq!(report.problems.len(), MOST);
    }
}
