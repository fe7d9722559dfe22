//! Room: what recording costs a call: the same round trips without it and with it, in turns.
//! Not here: the round trips (`crate::run`), recording (`record`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use record::{Outcome, Run};

use super::accuracy::Trouble;
use super::categories;
use super::record::work::Work;
use super::record::{self as recorder, Observer, Plan};
use crate::plan::Driver;

/// Of each CPU, in KB.
const BUFFER_KB: u64 = 8192;

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

/// Measures all ways in turns. This program is started again for each.
///
/// # Errors
/// No tracing, no driver, or a run that did not come to its end.
pub fn measure(ask: &Ask) -> Result<Vec<Found>, Trouble> {
    let folder = std::env::temp_dir().join(format!("binderperf-overhead-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| unready(&format!("making {}", folder.display()), &error))?;
    let result = in_rounds(ask, &folder);
    let _ = fs::remove_dir_all(&folder);
    result
}

fn unready(what: &str, error: &io::Error) -> Trouble {
    Trouble::Unready(format!("{what}: {}", sys::errno::describe(error)))
}

fn in_rounds(ask: &Ask, folder: &Path) -> Result<Vec<Found>, Trouble> {
    let program = std::env::current_exe().map_err(|error| unready("finding this program's file", &error))?;
    let mut all = Way::ALL.map(|_| Vec::with_capacity(ask.rounds as usize));
    for _ in 0..ask.rounds {
        for (way, medians) in Way::ALL.into_iter().zip(&mut all) {
            medians.push(once(ask, way, &program, folder)?);
        }
    }
    let found = Way::ALL.into_iter().zip(&all).filter_map(|(way, medians)| {
        let ratios: Vec<f64> = medians.iter().zip(&all[0]).map(|(with, without)| with / without).collect();
        let [median, ratio] = [medians, &ratios].map(|list| record::stats::median(list));
        Some(Found { way, median: median?, ratio: ratio? })
    });
    Ok(found.collect())
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
        command.status().map_err(|error| unready("starting a run", &error))?;
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

struct Nobody;

impl Observer for Nobody {
    fn begins(&mut self, _notes: &[String]) {}
    fn advanced(&mut self, _elapsed: Duration, _bytes: u64) {}
}
