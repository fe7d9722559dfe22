//! A comparison as text.
//! Not here: the comparison (the crate's root).

use std::fmt::{self, Display, Formatter};

use record::render::printable;
use trace::verdict::cause_words;
use units::duration;

use crate::{CauseChange, Change, Comparison, Direction, Lone, Row, Trace, Undecided, Unfinished, Verdict};

/// Rows of each kind that the text shows.
const MOST_ROWS: usize = 20;
/// Causes of a row that the text shows.
const MOST_CAUSES: usize = 4;
/// Causes that make less of a row's change are left out.
const WORTH_TELLING: f64 = 0.05;

/// The last line of each comparison.
const LIMITS: &str = "Intervals are of 95 % and hold what varied within the two traces, in blocks of consecutive calls. Another recording \
     of the same program may differ by more: compare two recordings of A to see by how much.";

/// A difference with its sign: `+1.20 ms`.
fn signed(ns: f64) -> String {
    let ns = if ns.abs() < 999.5 { ns.round() } else { ns };
    // A minus of its own, also for what rounds to 0.
    if ns < 0.0 { duration(ns) } else { format!("+{}", duration(ns.abs())) }
}

fn bounds(change: &Change) -> String {
    match (change.low_ns, change.high_ns) {
        (Some(low), Some(high)) => format!("{}..{}", signed(low), signed(high)),
        _ => "no interval: too few calls".to_owned(),
    }
}

fn whole(ns: f64) -> String {
    duration(if ns < 999.5 { ns.round() } else { ns })
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::SlowerAndFaster => "slower and faster",
        Verdict::Same => "no difference",
        Verdict::CannotTell(Undecided::FewCalls) => "cannot be told: too few calls",
        Verdict::CannotTell(Undecided::ManyRows) => "cannot be told: too few calls for so many rows",
        Verdict::CannotTell(Undecided::Wide) => "cannot be told: the interval is too wide",
        Verdict::CannotTell(Undecided::ByDesign) => "waits by design",
    }
}

impl Trace {
    fn write(&self, f: &mut Formatter<'_>, letter: &str) -> fmt::Result {
        let (calls, span) = (units::counted(self.calls, "call"), duration(self.span_ns as f64));
        write!(f, "{letter}  {}: {calls} in {span}", printable(&self.name))?;
        for (count, what) in [(self.failed, "failed"), (self.unanswered, "without an answer at its end")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        writeln!(f)?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "   WARNING: {}", printable(problem)))
    }
}

impl Row {
    /// Mean, median and p99 of both sides, and what changed.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (a, b) = (&self.a, &self.b);
        let percent = match a.mean_ns > 0.0 {
            true => format!(", {:+.1} %", self.mean.difference_ns / a.mean_ns * 100.0),
            false => String::new(),
        };
        let both = if self.verdict == Verdict::SlowerAndFaster { " (slower and faster)" } else { "" };
        writeln!(
            f,
            "  {}{both}: {} per call ({}){percent}; {} and {} calls, together {}",
            printable(&self.name),
            signed(self.mean.difference_ns),
            bounds(&self.mean),
            a.calls,
            b.calls,
            signed(self.cost_ns),
        )?;
        for (what, of_a, of_b, change) in
            [("median", a.median_ns, b.median_ns, &self.median), ("99 %", a.p99_ns, b.p99_ns, &self.p99)]
        {
            let (of_a, of_b) = (duration(of_a as f64), duration(of_b as f64));
            let uncertain = if change.direction.is_none() { ", not certain" } else { "" };
            writeln!(
                f,
                "      {what}: {of_a} -> {of_b}, {} ({}){uncertain}",
                signed(change.difference_ns),
                bounds(change)
            )?;
        }
        let telling = |cause: &&CauseChange| {
            let share = cause.change.difference_ns.abs() / self.mean.difference_ns.abs();
            cause.change.direction.is_some() && share >= WORTH_TELLING
        };
        let mut causes: Vec<&CauseChange> = self.causes.iter().filter(telling).collect();
        causes.sort_by(|one, other| {
            other.change.difference_ns.abs().total_cmp(&one.change.difference_ns.abs())
        });
        for CauseChange { cause, a_ns, b_ns, change } in causes.iter().take(MOST_CAUSES) {
            let (of_a, of_b) = (whole(*a_ns), whole(*b_ns));
            writeln!(
                f,
                "      {}: {of_a} -> {of_b} per call, {} ({})",
                cause_words(*cause),
                signed(change.difference_ns),
                bounds(change)
            )?;
        }
        if causes.is_empty() {
            writeln!(f, "      no single cause is certain")?;
        }
        Ok(())
    }

    /// One line, for a row that did not change or cannot be judged.
    fn write_short(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [a, b] = [&self.a, &self.b];
        let [of_a, of_b, p99_a, p99_b] =
            [a.median_ns, b.median_ns, a.p99_ns, b.p99_ns].map(|ns| duration(ns as f64));
        let mean = match self.mean.low_ns {
            Some(_) => format!("; mean {} ({})", signed(self.mean.difference_ns), bounds(&self.mean)),
            None => String::new(),
        };
        writeln!(
            f,
            "  {}: {}; {} and {} calls, median {of_a} and {of_b}, 99 % {p99_a} and {p99_b}{mean}",
            printable(&self.name),
            words(self.verdict),
            a.calls,
            b.calls,
        )
    }
}

fn section<T>(
    f: &mut Formatter<'_>,
    title: &str,
    rows: &[T],
    mut write: impl FnMut(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    rows.iter().take(MOST_ROWS).try_for_each(|row| write(f, row))?;
    match rows.len().saturating_sub(MOST_ROWS) {
        0 => Ok(()),
        more => writeln!(f, "  and {} more (--format json has all)", units::counted(more as u64, "row")),
    }
}

fn lone(f: &mut Formatter<'_>, one: &Lone) -> fmt::Result {
    let figures = &one.figures;
    let [median, p99] = [figures.median_ns, figures.p99_ns].map(|ns| duration(ns as f64));
    let calls = units::counted(figures.calls, "call");
    writeln!(f, "  {}: {calls}, median {median}, 99 % {p99}", printable(&one.name))
}

fn unfinished(f: &mut Formatter<'_>, row: &Unfinished) -> fmt::Result {
    let Unfinished { a_failed, b_failed, a_unanswered, b_unanswered, .. } = row;
    let all = [(a_failed, b_failed, "failed"), (a_unanswered, b_unanswered, "without an answer")];
    let some = all.into_iter().filter(|(a, b, _)| **a + **b > 0);
    let words: Vec<String> = some.map(|(a, b, what)| format!("{a} and {b} {what}")).collect();
    writeln!(f, "  {}: {}", printable(&row.name), words.join(", "))
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.a.write(f, "A")?;
        self.b.write(f, "B")?;
        for note in &self.notes {
            writeln!(f, "Note: {}", printable(note))?;
        }
        let of = |wanted: &dyn Fn(&Row) -> bool| -> Vec<&Row> {
            self.rows.iter().filter(|row| wanted(row)).collect()
        };
        let slower = of(&|row| row.direction() == Some(Direction::Slower));
        let faster = of(&|row| row.direction() == Some(Direction::Faster));
        let rest = of(&|row| row.direction().is_none() && !row.waits_by_design);
        let waiting = of(&|row| row.waits_by_design);
        section(f, "without a reply, A and B", &self.unfinished, unfinished)?;
        section(f, "slower in B, by what it costs all calls of B", &slower, |f, row| row.write(f))?;
        section(f, "faster in B, by what it saves", &faster, |f, row| row.write(f))?;
        section(f, "no difference, or none that can be told", &rest, |f, row| row.write_short(f))?;
        section(f, "waiting by design, not judged", &waiting, |f, row| row.write_short(f))?;
        section(f, "only in A", &self.only_a, lone)?;
        section(f, "only in B", &self.only_b, lone)?;
        let unknown = rest.iter().filter(|row| matches!(row.verdict, Verdict::CannotTell(_))).count();
        let (slower, faster) = self.slower_and_faster();
        let same = rest.len() - unknown;
        writeln!(
            f,
            "\nB against A, by {}: {slower} slower, {faster} faster, {same} without a difference of {:.0} %, {unknown} that cannot be told\n{LIMITS}",
            self.by,
            self.resolution * 100.0
        )
    }
}
