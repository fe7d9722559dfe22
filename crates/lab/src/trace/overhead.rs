//! Room: what recording costs a call: the same round trips without it and with it, in turns.
//! Not here: the round trips (`crate::run`), recording (`record`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use record::{Outcome, Run};

use super::accuracy::Trouble;
use super::categories;
use super::record::work::Work;
use super::record::{self as recorder, Observer, Plan};
use crate::plan::Driver;

/// Of each CPU, in KB.
const BUFFER_KB: u64 = 8192;
/// How often it is looked whether a run that is not recorded has ended.
const STEP: Duration = Duration::from_millis(10);

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Without,
    /// Binder's events alone.
    Binder,
    /// What `trace record` takes unless told.
    Usual,
}

impl Way {
    /// All of them, in the order of a round.
    pub const ALL: [Self; 3] = [Self::Without, Self::Binder, Self::Usual];

    /// What is recorded, in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Without => "nothing",
            Self::Binder => "binder_driver",
            Self::Usual => "the usual categories",
        }
    }

    fn categories(self) -> Vec<&'static categories::Category> {
        let names: &[&str] = match self {
            Self::Without => &[],
            Self::Binder => &["binder_driver"],
            Self::Usual => &categories::USUAL,
        };
        names.iter().filter_map(|name| categories::named(name)).collect()
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Ask {
    /// On which driver.
    pub driver: Driver,
    /// Round trips of each way in each round.
    pub iterations: u32,
    /// Rounds.
    pub rounds: u32,
}

/// One way's figures.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Which.
    pub way: Way,
    /// The median over rounds of the medians of a round trip, in clock units.
    pub median: f64,
    /// The same by that of nothing recorded in the same round: the median of the rounds' ratios.
    pub ratio: f64,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Each way's figures; none if a signal came in the first round.
    pub found: Vec<Found>,
    /// Whole rounds.
    pub rounds: usize,
    /// The signal that ended it.
    pub stopped_by: Option<&'static str>,
}

/// Measures all ways in turns. This program is started again for each. A signal ends it, with the whole rounds until
/// then.
///
/// # Errors
/// No tracing, no driver, or a run that did not come to its end.
pub fn measure(ask: &Ask) -> Result<Measured, Trouble> {
    sys::stop_signal::catch().map_err(|error| unready("catching signals", &error))?;
    let folder = std::env::temp_dir().join(format!("binderperf-overhead-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| unready(&format!("making {}", folder.display()), &error))?;
    let result = in_rounds(ask, &folder);
    let _ = fs::remove_dir_all(&folder);
    result
}

fn unready(what: &str, error: &io::Error) -> Trouble {
    Trouble::Unready(format!("{what}: {}", sys::errno::describe(error)))
}

fn in_rounds(ask: &Ask, folder: &Path) -> Result<Measured, Trouble> {
    let program = std::env::current_exe().map_err(|error| unready("finding this program's file", &error))?;
    let mut rounds = Vec::with_capacity(ask.rounds as usize);
    let mut stopped_by = None;
    while rounds.len() < ask.rounds as usize && stopped_by.is_none() {
        let round =
            Way::ALL.iter().map(|way| once(ask, *way, &program, folder)).collect::<Result<Vec<_>, _>>();
        stopped_by = sys::stop_signal::received();
        match round {
            // Whatever else went wrong with it, it is not whole.
            _ if stopped_by.is_some() => {}
            round => rounds.push(round?),
        }
    }
    Ok(Measured { found: figures(&rounds), rounds: rounds.len(), stopped_by })
}

/// Of rounds, each with the medians of all ways.
fn figures(rounds: &[Vec<f64>]) -> Vec<Found> {
    let found = Way::ALL.into_iter().enumerate().filter_map(|(place, way)| {
        let medians: Vec<f64> = rounds.iter().filter_map(|round| round.get(place).copied()).collect();
        let ratios: Vec<f64> =
            rounds.iter().filter_map(|round| Some(round.get(place)? / round.first()?)).collect();
        let [median, ratio] = [&medians, &ratios].map(|list| record::stats::median(list));
        Some(Found { way, median: median?, ratio: ratio? })
    });
    found.collect()
}

/// The median of a round trip.
fn once(ask: &Ask, way: Way, program: &Path, folder: &Path) -> Result<f64, Trouble> {
    let document = folder.join("run.json");
    let words = [
        "throughput".to_owned(),
        "binder".to_owned(),
        "--benchmark_filter=^BM_sendVec_binder/4$".to_owned(),
        format!("--benchmark_min_time={}x", ask.iterations),
        format!("--driver={}", ask.driver),
        format!("--record={}", document.display()),
    ];
    if way == Way::Without {
        let mut command = Command::new(program);
        command.args(&words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sys::tied_child::die_with_parent(&mut command);
        let child = command.spawn().map_err(|error| unready("starting a run", &error))?;
        wait(child).map_err(|error| unready("waiting for a run", &error))?;
    } else {
        let plan = Plan {
            categories: way.categories(),
            buffer_kb: BUFFER_KB,
            circular: false,
            output: folder.join("run.trace"),
            work: Work::Command {
                program: PathBuf::from(program),
                name: "binderperf".to_owned(),
                words: words.to_vec(),
                silent: true,
            },
        };
        recorder::record(&plan, &mut Nobody).map_err(Trouble::Tracing)?;
    }
    let failed = |why: String| Trouble::Unready(format!("binderperf {}: {why}", words.join(" ")));
    let run = File::open(&document).map_err(|error| failed(sys::errno::describe(&error)))?;
    let run = Run::read(run).map_err(|error| failed(error.to_string()))?;
    let _ = fs::remove_file(&document);
    let outcomes = run.cases.iter().flat_map(|case| &case.repetitions).map(|repetition| &repetition.outcome);
    let median = outcomes.into_iter().find_map(|outcome| match outcome {
        Outcome::Measured(numbers) => numbers.samples.percentile(50.0),
        _ => None,
    });
    median.map(|median| median as f64).ok_or_else(|| failed("it measured nothing".to_owned()))
}

/// Until it ends; a signal ends it sooner.
fn wait(mut child: Child) -> io::Result<()> {
    let mut told = false;
    while child.try_wait()?.is_none() {
        if !told && sys::stop_signal::received().is_some() {
            sys::child::ask_to_end(&mut child)?;
            told = true;
        }
        thread::sleep(STEP);
    }
    Ok(())
}

struct Nobody;

impl Observer for Nobody {
    fn begins(&mut self, _notes: &[String]) {}
    fn advanced(&mut self, _elapsed: Duration, _bytes: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_medians_of_rounds_and_of_each_rounds_ratio() {
        let rounds = [vec![10.0, 30.0, 40.0], vec![20.0, 30.0, 60.0], vec![10.0, 50.0, 40.0]];
        let found: Vec<(f64, f64)> = figures(&rounds).iter().map(|way| (way.median, way.ratio)).collect();
        assert_eq!(found, [(10.0, 1.0), (30.0, 3.0), (40.0, 4.0)]);
        assert!(figures(&[]).is_empty(), "stopped in the first round");
    }
}
