//! Cost of the marks that traced processes write themselves, estimated from the trace.
//! Not here: the cost of the kernel's own events, which a trace does not show.
//!
//! Each mark is a system call of the thread that is traced. From one mark to the thread's next one on the same CPU, with
//! no event between, passes one such call and what the thread did; the shortest such times are nearly the call alone.

use serde::{Deserialize, Serialize};

use crate::event::{Binder, Event, Flavour, Kind};

/// Maximum number of intervals that are kept.
const MOST: usize = 1 << 14;
/// Marks of a call between which hardly anything else is done.
const MANY: u64 = 10;
/// Minimum number of intervals for an estimate.
const LEAST: usize = 20;
/// Steps of a trace's stamps that an interval must have to be measured by them.
const STEPS: u64 = 10;
/// Percentile of the intervals that is taken for the cost of one mark.
const SHORTEST: f64 = 10.0;

/// Marks of the embedded driver, and what one cost its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkCost {
    /// Marks in the trace.
    pub marks: u64,
    /// Calls among them.
    pub calls: u64,
    /// About the cost of one, in nanoseconds.
    pub each_ns: u64,
}

impl MarkCost {
    /// In words; `None` without calls.
    pub(crate) fn words(self) -> Option<String> {
        let of_each = self.marks.saturating_mul(self.each_ns).checked_div(self.calls)?;
        let marks = self.marks / self.calls;
        // Between few marks a thread does much else.
        let about = if marks < MANY { "at most" } else { "about" };
        Some(format!(
            "{about} {} of each call: {marks} marks of the embedded driver, {} each, in the shares of driver and of \
             running threads",
            units::duration(of_each as f64),
            units::duration(self.each_ns as f64)
        ))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    count: u64,
    calls: u64,
    intervals: Vec<u64>,
    /// The latest event: CPU, thread and time, if it was a mark.
    last: Option<(u32, i32, u64)>,
}

impl Marks {
    pub(super) fn take(&mut self, event: &Event) {
        let Kind::Binder(Flavour::Embedded, mark) = &event.kind else {
            self.last = None;
            return;
        };
        self.count += 1;
        self.calls += u64::from(matches!(mark, Binder::Transaction(sent) if !sent.reply));
        if let Some((cpu, tid, ts)) = self.last
            && (cpu, tid) == (event.cpu, event.tid)
            && self.intervals.len() < MOST
        {
            self.intervals.push(event.ts.saturating_sub(ts));
        }
        self.last = Some((event.cpu, event.tid, event.ts));
    }

    /// The estimate; `None` with too few marks, or with stamps too coarse for it.
    pub(super) fn cost(mut self) -> Option<MarkCost> {
        self.intervals.sort_unstable();
        // Text that atrace and trace-cmd print has stamps in microseconds.
        let step = if self.intervals.iter().all(|ns| ns % 1000 == 0) { 1000 } else { 1 };
        let shortest = units::percentile(&self.intervals, SHORTEST);
        let each_ns =
            shortest.filter(|ns| self.intervals.len() >= LEAST && *ns > 0 && *ns >= STEPS * (step - 1))?;
        Some(MarkCost { marks: self.count, calls: self.calls, each_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Transaction;
    use crate::event::fixtures::event;

    #[test]
    fn the_shortest_ways_from_mark_to_mark_are_their_cost() {
        let mut marks = Marks::default();
        let mut ts = 0;
        let mut next = |kind: Kind, after: u64| {
            ts += after;
            marks.take(&event(ts, 0, 7, kind));
        };
        let mark = |binder| Kind::Binder(Flavour::Embedded, binder);
        for debug_id in 0..40 {
            next(mark(Binder::Transaction(Transaction { debug_id, ..Transaction::default() })), 900);
            next(mark(Binder::Received { debug_id }), 1000);
            next(Kind::Print("x".into()), 10);
            next(mark(Binder::Received { debug_id }), 10);
        }
        let cost = marks.cost().expect("enough marks");
        assert_eq!((cost.marks, cost.calls, cost.each_ns), (120, 40, 900), "none behind another event");
        let words = cost.words().expect("there are calls");
        assert!(words.starts_with("at most 2.70 us of each call: 3 marks"), "{words}");
        assert_eq!(Marks::default().cost(), None);
    }

    #[test]
    fn stamps_in_microseconds_tell_no_cost() {
        let mut marks = Marks::default();
        for number in 0..80 {
            // 700 ns from mark to mark, cut to whole microseconds.
            let ts = number * 700 / 1000 * 1000;
            marks.take(&event(ts, 0, 7, Kind::Binder(Flavour::Embedded, Binder::Received { debug_id: 1 })));
        }
        assert_eq!(marks.cost(), None, "not about 0 ns");
    }
}
