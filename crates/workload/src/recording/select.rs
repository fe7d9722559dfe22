//! The part of a recording that is asked for, and neutral names of its processes.
//! Not here: what is made of it (`from_trace`, `figures`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Call, Recording};

/// Half of a recording, by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Calls before its middle.
    First,
    /// The others.
    Second,
}

/// Which calls of a recording. Calls that were made for another one go with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Calls sent at or after this time, in ns from the trace's first event.
    pub from_ns: Option<u64>,
    /// Calls sent before this time, in ns from the trace's first event.
    pub to_ns: Option<u64>,
    /// Calls of one half of what is left.
    pub half: Option<Half>,
    /// Largest number of calls; the first ones are taken.
    pub calls: usize,
    /// Calls between the processes with most calls, at most this many.
    pub processes: usize,
}

impl Default for Selection {
    fn default() -> Self {
        Self { from_ns: None, to_ns: None, half: None, calls: usize::MAX, processes: usize::MAX }
    }
}

/// Calls that a selection left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// They are outside its time.
    pub other_time: u64,
    /// They are beyond its number of calls.
    pub beyond: u64,
    /// They are of processes that it left out.
    pub processes: u64,
    /// They were made for a call that is left out or that the trace does not have whole.
    pub orphans: u64,
}

/// Why nothing is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotSelect {
    /// The trace has no call with an end.
    NoCalls,
    /// None of its calls is in the selection.
    NoneSelected,
}

impl fmt::Display for CannotSelect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCalls => {
                "no call of this trace is whole; it needs the events binder_transaction and binder_transaction_received"
            }
            Self::NoneSelected => "the trace has calls, and none of them is among those that were asked for",
        })
    }
}

impl std::error::Error for CannotSelect {}

/// Selected calls.
#[derive(Clone, Debug)]
pub struct Selected<'r> {
    pub(crate) recording: &'r Recording,
    /// Indices of the calls, in order of their sending.
    pub(crate) calls: Vec<usize>,
    /// When the first of them was sent, and when the last one of them was over.
    pub(crate) span: (u64, u64),
    /// Neutral names of processes.
    pub(crate) names: BTreeMap<i32, String>,
    /// Processes in the order of their names' numbers.
    pub(crate) processes: Vec<i32>,
    /// Calls that are not in it.
    pub left_out: LeftOut,
}

impl Recording {
    /// Selects calls.
    ///
    /// # Errors
    /// [`CannotSelect`] if there is none.
    pub fn select(&self, selection: &Selection) -> Result<Selected<'_>, CannotSelect> {
        if self.calls.is_empty() {
            return Err(CannotSelect::NoCalls);
        }
        let mut left_out = LeftOut::default();
        let roots = self.roots();
        let span = self.window(selection);
        let in_time = |at: usize| (span.0..=span.1).contains(&self.calls[at].sent);
        let mut takes: Vec<bool> = roots.iter().map(|root| in_time(*root)).collect();
        left_out.other_time = takes.iter().filter(|takes| !**takes).count() as u64;
        let kept = self.busiest(&takes, selection.processes);
        for (at, call) in self.calls.iter().enumerate() {
            if !takes[at] {
                continue;
            }
            let orphan = call.orphan || call.parent.is_some_and(|parent| !takes[parent]);
            let known = kept.contains_key(&call.caller) && kept.contains_key(&call.callee);
            left_out.orphans += u64::from(orphan);
            left_out.processes += u64::from(!orphan && !known);
            takes[at] = !orphan && known;
        }
        let mut sizes = vec![0_usize; self.calls.len()];
        roots.iter().zip(&takes).filter(|(_, takes)| **takes).for_each(|(root, _)| sizes[*root] += 1);
        let (mut room, mut closed) = (selection.calls, false);
        for size in sizes.iter_mut().filter(|size| **size > 0) {
            closed |= *size > room;
            room = room.saturating_sub(*size);
            if closed {
                *size = 0;
            }
        }
        let beyond = takes.iter_mut().zip(&roots).filter(|(takes, root)| **takes && sizes[**root] == 0);
        for (takes, _) in beyond {
            *takes = false;
            left_out.beyond += 1;
        }
        let calls: Vec<usize> = (0..self.calls.len()).filter(|at| takes[*at]).collect();
        let Some(first) = calls.first() else { return Err(CannotSelect::NoneSelected) };
        let last = calls.iter().map(|at| self.calls[*at].done.max(self.calls[*at].end)).max();
        // Nothing is to be waited for before the first call.
        let (begin, end) = (self.calls[*first].sent, last.unwrap_or(span.1));
        let (processes, names) = self.names(&calls);
        Ok(Selected { recording: self, calls, span: (begin, end), names, processes, left_out })
    }

    /// For each call the call that it was made for in the end; itself if none.
    fn roots(&self) -> Vec<usize> {
        let mut roots: Vec<usize> = Vec::with_capacity(self.calls.len());
        for (at, call) in self.calls.iter().enumerate() {
            // A parent stands before.
            let root = call.parent.and_then(|parent| roots.get(parent)).copied().unwrap_or(at);
            roots.push(root);
        }
        roots
    }

    /// First and last time at which a selected call is sent.
    fn window(&self, selection: &Selection) -> (u64, u64) {
        let begin = self.load.0.unwrap_or(self.span.0);
        let end = self.load.1.unwrap_or(self.span.1).max(begin);
        let from = selection.from_ns.map_or(begin, |from| self.span.0.saturating_add(from).max(begin));
        let to = selection.to_ns.map_or(end, |to| self.span.0.saturating_add(to.saturating_sub(1)).min(end));
        let Some(half) = selection.half else { return (from, to) };
        // Where processes name themselves, the others' calls, such as those of the start, are none of the load.
        let named = |process: i32| self.named.is_empty() || self.named.contains_key(&process);
        let load = self.calls.iter().filter(|call| named(call.caller) && named(call.callee));
        let within = load.map(|call| call.sent).filter(|sent| (from..=to).contains(sent));
        let (first, last) = within.fold((u64::MAX, 0), |(first, last), ts| (first.min(ts), last.max(ts)));
        if first > last {
            return (from, to);
        }
        let middle = first + (last - first) / 2;
        match half {
            Half::First => (from, middle),
            Half::Second => (middle.saturating_add(1), to),
        }
    }

    /// Number of calls of each process that is kept: that names itself, if any does, and is among those with most calls.
    fn busiest(&self, takes: &[bool], most: usize) -> BTreeMap<i32, u64> {
        let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
        for (call, _) in self.calls.iter().zip(takes).filter(|(_, takes)| **takes) {
            for process in [call.caller, call.callee] {
                *counts.entry(process).or_default() += 1;
            }
        }
        if !self.named.is_empty() {
            counts.retain(|process, _| self.named.contains_key(process));
        }
        if counts.len() > most {
            let mut order: Vec<(u64, i32)> =
                counts.iter().map(|(process, count)| (*count, *process)).collect();
            order.sort_unstable_by_key(|(count, process)| (std::cmp::Reverse(*count), *process));
            order.into_iter().skip(most).for_each(|(_, process)| {
                counts.remove(&process);
            });
        }
        counts
    }

    /// Processes of these calls, and neutral names: the own ones of a replay, otherwise `p1`, `p2` and so on by the
    /// number of calls in the whole recording, so that a process has one name in all of its parts.
    fn names(&self, calls: &[usize]) -> (Vec<i32>, BTreeMap<i32, String>) {
        let mut counts: BTreeMap<i32, (u64, usize)> = BTreeMap::new();
        for (at, call) in self.calls.iter().enumerate() {
            for process in [call.caller, call.callee] {
                // Those with as many calls are in the order of their first ones.
                counts.entry(process).or_insert((0, at)).0 += 1;
            }
        }
        let mut order: Vec<i32> = counts.keys().copied().collect();
        order.sort_by_key(|process| {
            counts.get(process).map(|(count, first)| (std::cmp::Reverse(*count), *first))
        });
        let taking_part: BTreeSet<i32> =
            calls.iter().flat_map(|at| [self.calls[*at].caller, self.calls[*at].callee]).collect();
        let names = order.iter().enumerate().filter(|(_, process)| taking_part.contains(process));
        let names = names.map(|(at, process)| {
            let own = self.named.get(process).cloned();
            (*process, own.unwrap_or_else(|| format!("p{}", at + 1)))
        });
        let names: BTreeMap<i32, String> = names.collect();
        order.retain(|process| taking_part.contains(process));
        (order, names)
    }
}

impl Selected<'_> {
    /// The selected calls, in order of their sending.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().map(|at| &self.recording.calls[*at])
    }

    /// Length of the selected time in nanoseconds.
    pub(crate) fn ns(&self) -> u64 {
        self.span.1.saturating_sub(self.span.0)
    }
}
