//! Overhead of recording, and of `top`, per call: the same round trips without and with it, alternately.
//! Not here: the round trips (`crate::run`), recording (`record`).

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ftrace::categories::{self, Category};
use procgroup::OWN_PROGRAM;
use record::Outcome;

use super::{CheckError, RecordingFolder, read_record, record_own, unready, usual_categories};
use crate::plan::Driver;

/// Trace buffer per CPU, in KB.
const BUFFER_KB: u64 = 8192;
/// Poll interval for the end of a run without recording.
const STEP: Duration = Duration::from_millis(10);

/// Set of recorded events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingMode {
    /// No events.
    Without,
    /// Those that `top` reads meanwhile.
    Top,
    /// Binder's events alone.
    Binder,
    /// The defaults of `trace record`.
    Usual,
}

impl RecordingMode {
    /// All modes, in the order of a round.
    pub const ALL: [Self; 4] = [Self::Without, Self::Top, Self::Binder, Self::Usual];

    /// Describes what is recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Without => "nothing",
            Self::Top => "top",
            Self::Binder => "binder_driver",
            Self::Usual => "the usual categories",
        }
    }

    /// Categories to record; `None` for no recording.
    fn categories(self) -> Option<Vec<&'static Category>> {
        match self {
            Self::Without | Self::Top => None,
            Self::Binder => Some(categories::named("binder_driver").into_iter().collect()),
            Self::Usual => Some(usual_categories()),
        }
    }
}

/// Options of the measurement.
#[derive(Clone, Debug)]
pub struct OverheadOptions {
    /// Driver.
    pub driver: Driver,
    /// Round trips of each mode in each round.
    pub iterations: u32,
    /// Number of rounds.
    pub rounds: u32,
}

/// Cost of one mode.
#[derive(Clone, Copy, Debug)]
pub struct ModeCost {
    /// The mode.
    pub way: RecordingMode,
    /// Median over rounds of the median duration of a round trip, in clock units.
    pub median: f64,
    /// Median over rounds of the ratio to the same round without recording.
    pub ratio: f64,
    /// Median over rounds of the CPU time that `top` itself takes for a call, in ns.
    pub own_ns: Option<f64>,
}

impl fmt::Display for ModeCost {
    /// A row of the table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.own_ns.map(|ns| format!("  {:.2} us a call", ns / 1000.0)).unwrap_or_default();
        writeln!(f, "{:<22} {:>12.2} us  {:>6.2}{own}", self.way.name(), self.median / 1000.0, self.ratio)
    }
}

/// Head of the table of costs.
pub const HEAD: &str = "recorded                4 B round trip   ratio  top's own CPU time\n";

/// Cost of one mode in one round.
#[derive(Clone, Copy, Debug)]
struct Once {
    /// Median duration of a round trip, in clock units.
    median: f64,
    /// CPU time of `top` itself for a call, in ns.
    own_ns: Option<f64>,
}

/// Result of the measurement.
#[derive(Clone, Debug, Default)]
pub struct OverheadResult {
    /// Cost of each mode; empty if a signal came in the first round.
    pub found: Vec<ModeCost>,
    /// Number of whole rounds.
    pub rounds: usize,
    /// The signal that ended it.
    pub stopped_by: Option<&'static str>,
}

/// Measures all modes alternately. This program is started again for each. A signal ends the measurement,
/// with the whole rounds until then.
///
/// # Errors
/// No tracing, no driver, or a run that did not finish.
pub fn measure(options: &OverheadOptions) -> Result<OverheadResult, CheckError> {
    sys::stop_signal::catch().map_err(|error| unready("catching signals", &error))?;
    let folder = RecordingFolder::create("overhead", None)?;
    in_rounds(options, &folder.path)
}

fn in_rounds(options: &OverheadOptions, folder: &Path) -> Result<OverheadResult, CheckError> {
    let mut rounds = Vec::with_capacity(options.rounds as usize);
    let mut stopped_by = None;
    while rounds.len() < options.rounds as usize && stopped_by.is_none() {
        let round =
            RecordingMode::ALL.iter().map(|way| once(options, *way, folder)).collect::<Result<Vec<_>, _>>();
        stopped_by = sys::stop_signal::received();
        match round {
            // Whatever else failed in it, the round is incomplete.
            _ if stopped_by.is_some() => {}
            round => rounds.push(round?),
        }
    }
    Ok(OverheadResult { found: figures(&rounds), rounds: rounds.len(), stopped_by })
}

/// Computes the figures from rounds, each with the medians of all modes.
fn figures(rounds: &[Vec<Once>]) -> Vec<ModeCost> {
    let found = RecordingMode::ALL.into_iter().enumerate().filter_map(|(place, way)| {
        let of = |figure: &dyn Fn(&[Once], Once) -> Option<f64>| {
            let all: Vec<f64> = rounds.iter().filter_map(|round| figure(round, *round.get(place)?)).collect();
            record::stats::median(&all)
        };
        Some(ModeCost {
            way,
            median: of(&|_, once| Some(once.median))?,
            ratio: of(&|round, once| Some(once.median / round.first()?.median))?,
            own_ns: of(&|_, once| once.own_ns),
        })
    });
    found.collect()
}

/// Measures a mode.
fn once(options: &OverheadOptions, way: RecordingMode, folder: &Path) -> Result<Once, CheckError> {
    let document = folder.join("run.json");
    let words = [
        "throughput".to_owned(),
        "binder".to_owned(),
        "--benchmark_filter=^BM_sendVec_binder/4$".to_owned(),
        format!("--benchmark_min_time={}x", options.iterations),
        format!("--driver={}", options.driver),
        format!("--record={}", document.display()),
    ];
    let mut own_ns = None;
    match way.categories() {
        Some(categories) => {
            record_own(words.to_vec(), categories, BUFFER_KB, folder.join("run.trace"), false)?;
        }
        None if way == RecordingMode::Top => {
            let top = RunningTop::start()?;
            run_own(&words)?;
            // A run that a signal ended has fewer calls, and the round is given up.
            if sys::stop_signal::received().is_none() {
                own_ns = Some(top.end(options.iterations)?);
            }
        }
        None => run_own(&words)?,
    }
    let failed = |why: String| CheckError::Unready(format!("binderperf {}: {why}", words.join(" ")));
    let run = read_record(&document).map_err(failed)?;
    let _ = fs::remove_file(&document);
    let outcomes = run.cases.iter().flat_map(|case| &case.repetitions).map(|repetition| &repetition.outcome);
    let median = outcomes.into_iter().find_map(|outcome| match outcome {
        Outcome::Measured(numbers) => numbers.samples.percentile(50.0),
        _ => None,
    });
    let median = median.ok_or_else(|| failed("it measured nothing".to_owned()))? as f64;
    Ok(Once { median, own_ns })
}

/// Returns a command of this program with these arguments, which ends with it.
fn own(words: &[String]) -> Command {
    let mut command = Command::new(OWN_PROGRAM);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    sys::child::die_with_parent(&mut command);
    command
}

/// A `top` that looks at all calls.
struct RunningTop {
    child: Child,
    /// Reads its output while it runs: it would wait for a reader.
    reader: Option<JoinHandle<Result<Shown, String>>>,
}

/// Sums of what a `top` showed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shown {
    own_ns: f64,
    calls: f64,
}

impl Shown {
    /// Sums up all lines; `begun` gets word of the first one.
    fn read(lines: impl BufRead, begun: &mpsc::Sender<()>) -> Result<Self, String> {
        let mut all = Self::default();
        for line in lines.lines() {
            let line = line.map_err(|error| sys::errno::describe(&error))?;
            let line: serde_json::Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            let figure = |name: &str| line[name].as_f64().unwrap_or(0.0);
            all.own_ns += figure("own_cpu") * figure("span_s") * 1e9;
            all.calls += figure("calls");
            // It has no other use than to begin.
            let _ = begun.send(());
        }
        Ok(all)
    }

    /// CPU time for each call, in ns, if it saw all calls of a run.
    ///
    /// # Errors
    /// It saw fewer: its figure is none of that load.
    fn for_each(self, made: u32) -> Result<f64, String> {
        match self.calls >= f64::from(made) {
            true => Ok(self.own_ns / self.calls),
            false => Err(format!(
                "top saw {} of {made} calls: another recorder has the embedded driver's events, or some were lost",
                self.calls
            )),
        }
    }
}

impl RunningTop {
    /// Starts it, and waits until it looks: it has shown an interval.
    fn start() -> Result<Self, CheckError> {
        let words = "top --batch --format json --interval 0.5 --max-overhead 100".split(' ');
        let mut command = own(&words.map(str::to_owned).collect::<Vec<_>>());
        let mut child =
            command.stdout(Stdio::piped()).spawn().map_err(|error| unready("starting top", &error))?;
        let lines = child.stdout.take().map(BufReader::new);
        let (begun, has_begun) = mpsc::channel();
        let mut top = Self { child, reader: None };
        if let Some(lines) = lines {
            let reader = sys::title::thread("top's reader", move || Shown::read(lines, &begun));
            top.reader = Some(reader.map_err(|error| unready("starting a thread", &error))?);
        }
        // Its end ends the channel.
        has_begun.recv().map_err(|_| CheckError::Unready("top cannot look at calls here".to_owned()))?;
        Ok(top)
    }

    /// Ends it, and returns its CPU time for each call of a run, in ns.
    fn end(mut self, made: u32) -> Result<f64, CheckError> {
        sys::child::ask_to_end(&mut self.child).map_err(|error| unready("ending top", &error))?;
        let status = self.child.wait().map_err(|error| unready("waiting for top", &error))?;
        let shown = self.reader.take().map(JoinHandle::join);
        match shown {
            Some(Ok(shown)) if status.success() => {
                shown.and_then(|shown| shown.for_each(made)).map_err(CheckError::Unready)
            }
            _ => Err(CheckError::Unready(format!("top ended with {status}"))),
        }
    }
}

impl Drop for RunningTop {
    fn drop(&mut self) {
        // It has ended, or the run did not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a copy of this program without recording, until it ends; a signal ends it sooner.
fn run_own(words: &[String]) -> Result<(), CheckError> {
    let mut child = own(words).spawn().map_err(|error| unready("starting a run", &error))?;
    let waiting = |error| unready("waiting for a run", &error);
    let mut asked = false;
    while child.try_wait().map_err(waiting)?.is_none() {
        if !asked && sys::stop_signal::received().is_some() {
            sys::child::ask_to_end(&mut child).map_err(waiting)?;
            asked = true;
        }
        thread::sleep(STEP);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_medians_of_rounds_and_of_each_rounds_ratio() {
        let rounds = [[10.0, 30.0, 40.0], [20.0, 30.0, 60.0], [10.0, 50.0, 40.0]];
        let rounds = rounds.map(|round| {
            round.map(|median| Once { median, own_ns: (median > 30.0).then_some(median * 2.0) }).to_vec()
        });
        let found: Vec<_> = figures(&rounds).iter().map(|way| (way.median, way.ratio, way.own_ns)).collect();
        assert_eq!(found, [(10.0, 1.0, None), (30.0, 3.0, Some(100.0)), (40.0, 4.0, Some(80.0))]);
        assert!(figures(&[]).is_empty(), "stopped in the first round");
    }

    #[test]
    fn a_top_that_missed_calls_has_no_figure() {
        let lines = "{\"own_cpu\":0.5,\"span_s\":1.0,\"calls\":900}\n{\"own_cpu\":0.25,\"span_s\":2.0,\"calls\":100}\n";
        let (begun, has_begun) = mpsc::channel();
        let shown = Shown::read(lines.as_bytes(), &begun).expect("JSON");
        assert_eq!(shown, Shown { own_ns: 1e9, calls: 1000.0 });
        assert!(has_begun.recv().is_ok());
        assert_eq!(shown.for_each(1000), Ok(1e6));
        assert!(shown.for_each(1001).expect_err("one is missing").contains("1000 of 1001 calls"));
        assert!(Shown::read("no JSON\n".as_bytes(), &begun).is_err());
    }
}
