//! Sweeps: assembles one from the runs of its points, searches the highest sustained rate, and reports what is
//! sustained.
//! Not here: measuring a point (`bench`), tables (`text`).

use crate::schema::{Case, Cell, Class, Finding, LatencyTest, Measured, Point, Run, Severity, Sweep};
use crate::stats::{normal_quantile, wilson_lower};

/// The number of samples that took longer than each deadline.
pub fn misses(samples: &[u64], deadlines: &[u64]) -> Vec<u64> {
    let over = |deadline: &u64| samples.iter().filter(|sample| *sample > deadline).count() as u64;
    deadlines.iter().map(over).collect()
}

/// The cells of a point from its run, whose cases must hold all single times (`Latency::raw`).
pub fn cells(run: &Run, point: &Point, deadlines: &[u64]) -> Vec<Cell> {
    let all = run.latency().into_iter().flat_map(|test| &test.all);
    let cell = |class: Class| {
        let of_class = |case: &&Case| case.latency.as_ref().is_some_and(|latency| latency.class == class);
        let cases: Vec<&Case> = run.cases.iter().filter(of_class).collect();
        let found = cases.iter().filter_map(|case| case.latency.as_ref());
        let times: Vec<u64> = found.flat_map(|latency| latency.raw.iter().copied()).collect();
        let failed = cases.iter().find_map(|case| case.failure()).map(str::to_owned);
        if times.is_empty() && failed.is_none() {
            return None;
        }
        Some(Cell {
            point: point.clone(),
            class,
            calls: times.len() as u64,
            misses: misses(&times, deadlines),
            worst: times.iter().copied().max().unwrap_or(0),
            percentiles: all.clone().find(|all| all.class == class).map(|all| all.percentiles),
            failed,
        })
    };
    Class::BOTH.into_iter().filter_map(cell).collect()
}

/// Whether a cell meets its deadline with index `deadline`: the share of calls that met it is, with the sweep's
/// confidence, as high as required. A cell with a failed pair never holds.
pub fn holds(sweep: &Sweep, cell: &Cell, deadline: usize) -> bool {
    cell.failed.is_none() && met_at_least(sweep, cell, deadline).is_some_and(|bound| bound >= sweep.meet)
}

/// Lower confidence bound of the share of calls that met the deadline with this index; `None` without calls.
pub fn met_at_least(sweep: &Sweep, cell: &Cell, deadline: usize) -> Option<f64> {
    let misses = *cell.misses.get(deadline)?;
    wilson_lower(cell.calls.checked_sub(misses)?, cell.calls, sweep.confidence)
}

/// The sustained rate of one class at one point, for one deadline.
#[derive(Debug, Clone, PartialEq)]
pub struct Sustained {
    /// The point, without a rate.
    pub point: Point,
    /// The class of the callers.
    pub class: Class,
    /// The deadline in clock units.
    pub deadline: u64,
    /// The highest measured rate that holds, in calls per second of each pair; `None` if none does.
    pub rate_hz: Option<f64>,
    /// The next higher measured rate, which does not hold; `None` if the highest one holds.
    pub fails_at_hz: Option<f64>,
}

impl Sustained {
    /// Calls per second of all pairs together.
    pub fn total_hz(&self) -> Option<f64> {
        self.rate_hz.map(|rate| rate * f64::from(self.point.pairs))
    }
}

/// The sustained rates of every point that was measured at several rates.
pub fn sustained(sweep: &Sweep) -> Vec<Sustained> {
    let mut found: Vec<Sustained> = Vec::new();
    for cell in sweep.cells.iter().filter(|cell| cell.point.rate_hz.is_some()) {
        let point = cell.point.unpaced();
        if found.iter().any(|known| known.point == point && known.class == cell.class) {
            continue;
        }
        for number in 0..sweep.deadlines.len() {
            found.push(at(sweep, &point, cell.class, number));
        }
    }
    found
}

fn at(sweep: &Sweep, point: &Point, class: Class, number: usize) -> Sustained {
    let here = sweep.cells.iter().filter(|cell| cell.class == class && cell.point.unpaced() == *point);
    let mut rungs: Vec<(f64, bool)> =
        here.filter_map(|cell| Some((cell.point.rate_hz?, holds(sweep, cell, number)))).collect();
    rungs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let highest = rungs.iter().rposition(|(_, holds)| *holds);
    Sustained {
        point: point.clone(),
        class,
        deadline: sweep.deadlines[number],
        rate_hz: highest.map(|rung| rungs[rung].0),
        fails_at_hz: rungs.get(highest.map_or(0, |rung| rung + 1)).map(|(rate, _)| *rate),
    }
}

/// Finds, for each question, the highest of ascending rungs at which it holds, by bisection; no rung is measured
/// twice. It assumes that a question that fails at one rung fails at all higher ones. `measure` answers all questions
/// at a rung; `None` means that a question has no answer at any rung.
///
/// # Errors
/// The first error of `measure`, which ends the search.
pub fn climb<E>(
    rungs: usize,
    questions: usize,
    mut measure: impl FnMut(usize) -> Result<Vec<Option<bool>>, E>,
) -> Result<Vec<Option<usize>>, E> {
    let mut known: Vec<Option<Vec<Option<bool>>>> = vec![None; rungs];
    let mut highest = Vec::with_capacity(questions);
    for question in 0..questions {
        // Invariant: every rung below `low` holds, none from `high` on.
        let (mut low, mut high) = (0, rungs);
        while low < high {
            let middle = low + (high - low) / 2;
            let answers = match &mut known[middle] {
                Some(answers) => answers,
                unknown => unknown.insert(measure(middle)?),
            };
            match answers.get(question).copied().flatten() {
                Some(true) => low = middle + 1,
                Some(false) => high = middle,
                None => (low, high) = (0, 0),
            }
        }
        highest.push(low.checked_sub(1));
    }
    Ok(highest)
}

/// Appends the run of a point to those of the points before it. Host, driver, iterations and roles are those of the
/// first.
pub fn join(whole: &mut Option<Run>, mut part: Run) {
    let Some(run) = whole else {
        if let Some(test) = part.measured.latency_mut() {
            // Totals belong to a point, not to the sweep; the cells contain them.
            test.all.clear();
        }
        *whole = Some(part);
        return;
    };
    run.elapsed_ns = run.elapsed_ns.saturating_add(part.elapsed_ns);
    run.overloaded |= part.overloaded;
    run.complete &= part.complete;
    run.incomplete_reason = run.incomplete_reason.take().or(part.incomplete_reason);
    if let (Some(test), Measured::Latency(of_part)) = (run.measured.latency_mut(), &part.measured) {
        join_tests(test, of_part);
    }
    for finding in part.findings {
        // A busy machine is found at many points: keep such findings once, but every distinct error.
        let known = |known: &Finding| {
            known.id == finding.id && (known.text == finding.text || finding.severity < Severity::Error)
        };
        if !run.findings.iter().any(known) {
            run.findings.push(finding);
        }
    }
    for mut case in part.cases {
        case.per_family_instance_index = u32::try_from(run.cases.len()).unwrap_or(u32::MAX);
        run.cases.push(case);
    }
}

fn join_tests(test: &mut LatencyTest, of_part: &LatencyTest) {
    test.pairs = test.pairs.max(of_part.pairs);
    test.realtime = test.realtime.and(of_part.realtime);
    test.realtime_problem = test.realtime_problem.take().or_else(|| of_part.realtime_problem.clone());
    let (found, more) = (&mut test.inheritance, &of_part.inheritance);
    found.calls = found.calls.saturating_add(more.calls);
    found.not_inherited = found.not_inherited.saturating_add(more.not_inherited);
}

/// Drops the single times, after the cells were counted from them.
pub fn forget_raw(run: &mut Run) {
    run.cases
        .iter_mut()
        .filter_map(|case| case.latency.as_mut())
        .for_each(|latency| latency.raw = Vec::new());
}

/// Calls that each pair must make at a rate: at least `asked`, and enough that a growing backlog exceeds the longest
/// deadline, so that an unsustainable rate is detected.
pub fn calls_at(rate_hz: f64, asked: u64, longest_deadline_ns: u64) -> u64 {
    const DEADLINES: f64 = 20.0;
    let outlasting = rate_hz * longest_deadline_ns as f64 / 1e9 * DEADLINES;
    asked.max(outlasting.ceil() as u64)
}

/// Fewest calls that show, if all meet the deadline, a share of at least `meet` with this confidence; `None` if no
/// number does.
pub fn calls_needed(meet: f64, confidence: f64) -> Option<u64> {
    let z = normal_quantile(confidence)?;
    let needed = meet * z * z / (1.0 - meet);
    // Wilson's bound of n successes in n trials is n / (n + z^2).
    needed.is_finite().then(|| (needed.ceil() as u64).max(1))
}

#[cfg(test)]
mod tests;
