//! Room: how far the embedded driver is from the floor of the machine: rows of one placement and
//! payload each, test and floors measured side by side in one run.
//! Not here: the measuring (`crate::run`), printing.
//! The floor is the best median of its families; ratios are of medians over all repetitions.

use std::fmt;

use driver::locate::{Driver, Wanted};
use record::Run;

use crate::plan::{Family, Filter, MinTime, Placement, Plan, Settings, Waiting};
use crate::run::{Observer, RunError, execute};

/// What one row measures, and what it is held to.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// For people.
    pub title: &'static str,
    /// How the embedded driver waits.
    pub waiting: Waiting,
    /// Where both sides run.
    pub placement: Placement,
    /// Bytes.
    pub payload: u64,
    /// The families whose best is the floor, as `--controls` takes them.
    floor: &'static str,
    /// Whether sleeping on one CPU may be the floor, too: what large payloads are copied faster by.
    or_asleep: bool,
    /// The most that the ratio may be.
    pub target: f64,
    /// What it should be.
    pub goal: Option<f64>,
}

/// The floors of sleeping.
const ASLEEP: &str = "futex,eventfd,pipe";

/// The rows, in their order.
pub const GOALS: [Goal; 4] = [
    Goal {
        title: "sleeping, one CPU, 4 B",
        waiting: Waiting::Sleep,
        placement: Placement::Same,
        payload: 4,
        floor: ASLEEP,
        or_asleep: false,
        target: 1.6,
        goal: Some(1.25),
    },
    Goal {
        title: "sleeping, default placement, 4 B",
        waiting: Waiting::Sleep,
        placement: Placement::Default,
        payload: 4,
        floor: ASLEEP,
        or_asleep: false,
        target: 1.3,
        goal: Some(1.1),
    },
    Goal {
        title: "spinning, two CPUs, 4 B",
        waiting: Waiting::Spin,
        placement: Placement::Cross,
        payload: 4,
        floor: "spin",
        or_asleep: false,
        target: 3.0,
        goal: Some(1.5),
    },
    Goal {
        title: "spinning, two CPUs, 64 KiB",
        waiting: Waiting::Spin,
        placement: Placement::Cross,
        payload: 65536,
        floor: "spin",
        or_asleep: true,
        target: 1.3,
        goal: None,
    },
];

/// A row that was measured.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it was held to.
    pub goal: Goal,
    /// Median round trip over the embedded driver in ns.
    pub embedded_ns: f64,
    /// The best family and its median in ns.
    pub floor: (String, f64),
}

impl Row {
    /// How many floors one round trip costs.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.embedded_ns / self.floor.1
    }

    /// Whether the target is met.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.ratio() <= self.goal.target
    }
}

/// One line of a table without its end.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { goal, embedded_ns, floor: (family, floor_ns) } = self;
        let goal_ratio = goal.goal.map_or("-".to_owned(), |goal| format!("{goal:.2}"));
        let verdict = match (self.is_met(), goal.goal.is_none_or(|goal| self.ratio() <= goal)) {
            (true, true) => "met",
            (true, false) => "met, short of the goal",
            (false, _) => "MISSED",
        };
        write!(
            f,
            "{:<34} {embedded_ns:>9.0} ns {floor_ns:>9.0} ns {family:<8} {:>6.2} {:>6.2} {goal_ratio:>6}  {verdict}",
            goal.title,
            self.ratio(),
            goal.target
        )
    }
}

/// The table's head.
#[must_use]
pub fn head() -> String {
    format!(
        "{:<34} {:>12} {:>12} {:<8} {:>6} {:>6} {:>6}\n",
        "embedded driver", "median", "floor", "of", "ratio", "target", "goal"
    )
}

/// Measures one row: each repetition of test and floors lasts at least `seconds`.
///
/// # Errors
/// The run could not start, or a case of it has no numbers.
pub fn measure(goal: Goal, repetitions: u32, seconds: f64) -> Result<Row, String> {
    let filter = format!("/{}$", goal.payload);
    let plan = Plan {
        controls: goal.floor.parse()?,
        filter: Filter::new(&filter).map_err(|error| error.to_string())?,
        min_time: MinTime::Seconds(seconds),
        repetitions,
        interleaving_seed: Some(1),
        placement: goal.placement,
        wanted: Wanted {
            driver: Driver::Embedded,
            settings: Settings { waiting: goal.waiting, ..Settings::default() },
            ..Wanted::default()
        },
        ..Plan::default()
    };
    let run = run(&plan)?;
    let mut floors = floors(&plan, &run, goal.payload)?;
    if goal.or_asleep {
        let filter = format!("(futex|eventfd|pipe)/{}$", goal.payload);
        let filter = Filter::new(&filter).map_err(|error| error.to_string())?;
        let asleep = Plan { controls: ASLEEP.parse()?, placement: Placement::Same, filter, ..plan };
        floors.extend(self::floors(&asleep, &self::run(&asleep)?, goal.payload)?);
    }
    let best = floors.into_iter().min_by(|one, other| one.1.total_cmp(&other.1));
    let (family, floor_ns) = best.ok_or("no floor was measured")?;
    let embedded_ns = median(&run, Family::Binder, goal.payload)?;
    Ok(Row { goal, embedded_ns, floor: (family.word().to_owned(), floor_ns) })
}

fn run(plan: &Plan) -> Result<Run, String> {
    execute(plan, &mut Silent).map_err(|error: RunError| error.to_string())
}

fn floors(plan: &Plan, run: &Run, payload: u64) -> Result<Vec<(Family, f64)>, String> {
    plan.controls.families().map(|family| Ok((family, median(run, family, payload)?))).collect()
}

struct Silent;

impl Observer for Silent {}

fn median(run: &Run, family: Family, payload: u64) -> Result<f64, String> {
    let name = family.case_name(payload);
    let case = run.case(&name).ok_or_else(|| format!("{name} was not measured"))?;
    case.median_real().ok_or_else(|| format!("{name} has no numbers: {:?}", case.repetitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_target_and_goal_apart() {
        let row = |embedded_ns| Row { goal: GOALS[0], embedded_ns, floor: ("futex".to_owned(), 1000.0) };
        assert!(row(1200.0).is_met() && row(1200.0).to_string().ends_with("  met"));
        assert!(row(1500.0).is_met() && row(1500.0).to_string().ends_with("short of the goal"));
        assert!(!row(1601.0).is_met() && row(1601.0).to_string().ends_with("MISSED"));
    }
}
