//! Text about a whole trace: its answer first, then tables and sums.
//! Not here: sentences about one call (`text`), the page (`picture::page`).

use std::fmt;

use super::text::{WORTH_TELLING, time};
use super::{Analysis, Group, MarkCost, SlowCall, Sum};
use crate::cause::Label;

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        writeln!(f, "{} events in {}", self.events, time(self.span_ns))?;
        if self.lost > 0 || self.gaps > 0 {
            writeln!(f, "WARNING: {} events lost, {} gaps of unknown size", self.lost, self.gaps)?;
        }
        for problem in &self.problems {
            writeln!(f, "WARNING: {problem}")?;
        }
        if let Some(stolen) = self.stolen_ns.filter(|stolen| *stolen > 0) {
            writeln!(f, "the host gave {} of this machine's CPU time to others (steal)", time(stolen))?;
        }
        let calls = units::counted(counts.calls, "call");
        write!(f, "{calls} ({} nested), {} oneway", counts.nested, counts.oneway)?;
        for (count, what) in [
            (counts.failed, "failed"),
            (counts.cut, "without an answer at the trace's end"),
            (counts.doubtful, "not judged for missing events"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        writeln!(f)?;
        if counts.scenes > 0 {
            writeln!(
                f,
                "{} calls are of inheritance scenes, which sleep on purpose (--scenes shows them)",
                counts.scenes
            )?;
        }
        match self.deadline_ns {
            Some(deadline) => writeln!(f, "{} over the deadline of {}", counts.missed, time(deadline))?,
            None if counts.missed > 0 => writeln!(f, "{} missed their test's deadline", counts.missed)?,
            None => {}
        }
        if counts.calls > 0 {
            let (calls, same) = (counts.calls, counts.same_cpu);
            writeln!(f, "both sides on one CPU in {same} of {calls} calls")?;
        }
        if self.inversions.urgent_calls > 0 {
            writeln!(f, "priority inversion: {}", self.inversions)?;
        }
        if let Some(words) = self.marks.and_then(MarkCost::words) {
            writeln!(f, "recording cost {words}")?;
        }
        self.answer(f)?;
        self.table(f)?;
        self.sums(f)?;
        if !self.behind.is_empty() {
            writeln!(f, "\nwaited behind")?;
            for task in &self.behind {
                writeln!(f, "  {:>9}  {task}", time(task.ns))?;
            }
        }
        let rest: Vec<&SlowCall> = self.slow.iter().skip(MOST_FIRST).collect();
        listed(f, "more slow calls", &rest, usize::MAX)
    }
}

/// A cause in a table: its name, but what is not shown is no cause.
#[must_use]
pub fn cause_words(cause: Label) -> &'static str {
    if cause == Label::NotShown { "not shown" } else { cause.name() }
}

/// The calls that were under way as any trace has some when it ends.
pub(crate) fn under_way_words(calls: &[&SlowCall]) -> Option<String> {
    let oldest = calls.iter().map(|slow| slow.ns).max()?;
    let calls = units::counted(calls.len() as u64, "call");
    Some(format!("{calls} under way at the trace's end, the longest for {}", time(oldest)))
}

fn listed(f: &mut fmt::Formatter<'_>, title: &str, calls: &[&SlowCall], most: usize) -> fmt::Result {
    if calls.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    for slow in calls.iter().take(most) {
        let mark = if slow.missed { "MISS " } else { "" };
        writeln!(f, "- {mark}{}", slow.verdict)?;
    }
    more(f, calls.len().saturating_sub(most), "call")
}

/// Failed calls; those that differ in nothing but their time share a line.
fn failed(f: &mut fmt::Formatter<'_>, calls: &[SlowCall]) -> fmt::Result {
    let kinds = kinds_of_failures(calls);
    if kinds.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nfailed")?;
    for (first, times) in kinds.iter().take(MOST_ROWS) {
        let more = if *times > 1 { format!("; {} more like it", times - 1) } else { String::new() };
        writeln!(f, "- {}{more}", first.verdict)?;
    }
    more(f, kinds.len().saturating_sub(MOST_ROWS), "kind")
}

/// The first call of each kind of failure, with their number, the most frequent first.
pub(crate) fn kinds_of_failures(calls: &[SlowCall]) -> Vec<(&SlowCall, usize)> {
    let kind = |slow: &SlowCall| {
        let caller = slow.caller_process.unwrap_or(slow.caller.tid);
        (caller, slow.server_process, slow.node, slow.code, slow.oneway, slow.failure.clone())
    };
    let mut kinds: Vec<(&SlowCall, usize)> = Vec::new();
    for slow in calls {
        match kinds.iter_mut().find(|(first, _)| kind(first) == kind(slow)) {
            Some((_, times)) => *times += 1,
            None => kinds.push((slow, 1)),
        }
    }
    kinds.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    kinds
}

fn more(f: &mut fmt::Formatter<'_>, number: usize, what: &str) -> fmt::Result {
    match number {
        0 => Ok(()),
        more => writeln!(f, "  and {} more (--format json has all)", units::counted(more as u64, what)),
    }
}

/// Slow calls before the tables; the others come last.
const MOST_FIRST: usize = 10;
/// Rows of a table that the text shows.
const MOST_ROWS: usize = 20;
/// Causes of a row that the text shows.
const MOST_CAUSES: usize = 3;

fn rows(f: &mut fmt::Formatter<'_>, title: &str, groups: &[&Group]) -> fmt::Result {
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    writeln!(f, "  {:>7} {:>9} {:>9} {:>9} {:>9}", "calls", "total", "median", "99 %", "most")?;
    for Group { name, sum, .. } in groups.iter().take(MOST_ROWS) {
        let [total, median, p99, most] = [sum.ns, sum.p50_ns, sum.p99_ns, sum.max_ns].map(time);
        let causes = sum.shares.iter().take(MOST_CAUSES).filter(|share| share.share >= WORTH_TELLING);
        let causes: Vec<_> = causes
            .map(|share| format!("{} {:.0} %", cause_words(share.cause), share.share * 100.0))
            .collect();
        let causes = causes.join(", ");
        writeln!(f, "  {:>7} {total:>9} {median:>9} {p99:>9} {most:>9}  {name}: {causes}", sum.calls)?;
    }
    more(f, groups.len().saturating_sub(MOST_ROWS), "row")
}

impl Analysis {
    /// The calls that an engineer looks for first: without an answer, failed, slow.
    fn answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (late, under_way): (Vec<&SlowCall>, Vec<&SlowCall>) =
            self.unanswered.iter().partition(|slow| self.is_late(slow));
        listed(f, "no answer", &late, MOST_ROWS)?;
        if let Some(words) = under_way_words(&under_way) {
            writeln!(f, "\n{words}")?;
        }
        failed(f, &self.failed)?;
        if !self.oneway_spam.is_empty() {
            writeln!(f, "\noneway spam suspected by the driver")?;
            self.oneway_spam.iter().take(MOST_ROWS).try_for_each(|spam| writeln!(f, "- {spam}"))?;
        }
        listed(f, "slow calls", &self.slow.iter().take(MOST_FIRST).collect::<Vec<_>>(), MOST_FIRST)
    }

    /// Whether to report a call that had not ended when the trace did: it is past its deadline, or slower than 99 % of the
    /// others. Any recording cuts some calls off.
    pub(crate) fn is_late(&self, slow: &SlowCall) -> bool {
        let usual = if slow.oneway { &self.oneway } else { &self.all };
        match self.deadline_ns {
            Some(_) if !slow.oneway => slow.missed,
            _ => usual.calls == 0 || slow.ns > usual.p99_ns,
        }
    }

    fn sums(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, sum) in
            [("all calls", &self.all), ("the slowest 1 %", &self.slowest), ("oneway calls", &self.oneway)]
        {
            if sum.calls == 0 {
                continue;
            }
            let Sum { calls, ns, min_ns, p50_ns, p99_ns, max_ns, shares } = sum;
            writeln!(
                f,
                "\n{what}: {calls}, together {}; least {}, median {}, 99 % {}, most {}",
                time(*ns),
                time(*min_ns),
                time(*p50_ns),
                time(*p99_ns),
                time(*max_ns),
            )?;
            for share in shares.iter().filter(|share| share.share >= 0.001) {
                writeln!(
                    f,
                    "  {:>5.1} %  {:<25} {}",
                    share.share * 100.0,
                    cause_words(share.cause),
                    time(share.ns)
                )?;
            }
        }
        Ok(())
    }

    /// The rows with the most time, then those that wait by design.
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(by) = self.by else { return Ok(()) };
        let (waiting, working): (Vec<&Group>, Vec<&Group>) =
            self.groups.iter().partition(|group| group.waits_by_design);
        rows(f, &format!("by {by}; nested calls count in their own row, too"), &working)?;
        rows(f, "waiting by design: the server slept for nearly all of nearly each call", &waiting)
    }
}
