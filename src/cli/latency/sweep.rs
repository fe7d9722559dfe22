//! Room: `latency sweep`: words into a grid, its record into output and an exit status.
//! Not here: carrying it out (`lab::latency::sweep`), what is sustained (`record::sweep`).

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};
use lab::latency::sweep::{Grid, execute};
use lab::latency::{Ask, Flavour, Injected};
use lab::load::LoadSpec;
use lab::plan::{Inherit, Release};
use lab::run::Observer;
use record::Run;
use record::render::latency::{Options, json, table};

use super::super::driver::{DriverArgs, chosen};
use super::super::output::Sink;
use super::super::progress::StatusLine;
use super::super::{A_YEAR_S, cannot_run, complain, exit, note};
use super::verdict::failures;
use super::{Form, Switch};

/// Measure latency over a grid of pairs, payloads, loads and deadlines, and how many calls per second are
/// sustained
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct SweepArgs {
    /// What the pairs speak
    #[arg(long, value_enum, default_value_t = Speak::Hwbinder)]
    flavour: Speak,

    /// Pairs at work at once [default: 1, and as many as there are CPUs but one]
    #[arg(short = 'w', long, alias = "pair", value_name = "N", value_delimiter = ',')]
    pairs: Vec<u32>,

    /// Bytes that each call carries
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [0, 4096])]
    payload: Vec<u32>,

    /// Load beside it: none, or the word that `latency --load` takes, several with commas; again for the grid's next
    #[arg(long, value_name = "none|LOAD,...", default_values_t = [Beside(Vec::new())])]
    load: Vec<Beside>,

    /// Deadlines that every call is held against
    #[arg(long, value_name = "US", value_delimiter = ',', default_values_t = [50, 100, 200, 500, 1000, 2500, 5000, 10_000])]
    deadline_us: Vec<u64>,

    /// Iterations of each pair at each point; each is one call from a SCHED_FIFO and one from a SCHED_OTHER thread
    #[arg(short = 'i', long, value_name = "N", default_value_t = 500)]
    iterations: u64,

    /// Calls per second of each pair among which the highest that is sustained is searched; none for no search
    #[arg(help_heading = "Rates", long, value_name = "none|HZ,...", default_value_t = Rates(vec![500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4]))]
    rates: Rates,

    /// A rate is sustained if this share of the calls meets the deadline
    #[arg(help_heading = "Rates", long, value_name = "SHARE", default_value_t = 0.99)]
    meet: f64,

    /// With this confidence, one-sided
    #[arg(help_heading = "Rates", long, value_name = "SHARE", default_value_t = 0.95)]
    confidence: f64,

    /// Whether the service's node lets real-time priorities pass [default: on for hwbinder, off for binder]
    #[arg(help_heading = "Service", long, value_name = "on|off")]
    inherit_rt: Option<Switch>,

    /// What to print
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Table)]
    format: Form,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Every single time in the record
    #[arg(help_heading = "Output", long)]
    raw_data: bool,

    /// Make something go wrong, to see it found: as in the other latency tests
    #[arg(help_heading = "Service", long, value_name = "FAULT")]
    inject: Vec<Injected>,

    /// Android release whose service manager is spoken to: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    android: Release,

    /// Seconds without a reply after which a pair is given up
    #[arg(help_heading = "Service", long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    #[command(flatten)]
    driver: DriverArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Speak {
    /// As schd-dbg
    Binder,
    /// As libhwbinder_latency
    Hwbinder,
}

const NONE: &str = "none";

/// What loads a point of the grid.
#[derive(Clone, Debug, PartialEq)]
struct Beside(Vec<LoadSpec>);

impl FromStr for Beside {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(Self(Vec::new()));
        }
        let specs: Result<Vec<LoadSpec>, _> = text.split(',').map(str::parse).collect();
        specs.map(Self).map_err(|error| error.to_string())
    }
}

impl std::fmt::Display for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&listed(&self.0))
    }
}

/// Rates, in ascending order, each once.
#[derive(Clone, Debug, PartialEq)]
struct Rates(Vec<f64>);

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(Self(Vec::new()));
        }
        let rate = |word: &str| {
            word.parse::<f64>()
                .map_err(|_| format!("{word:?} is no number of calls per second, nor is it {NONE}"))
        };
        let mut rates = text.split(',').map(rate).collect::<Result<Vec<f64>, _>>()?;
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        Ok(Self(rates))
    }
}

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&listed(&self.0))
    }
}

fn listed(values: &[impl ToString]) -> String {
    if values.is_empty() {
        return NONE.to_owned();
    }
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl SweepArgs {
    fn grid(&self) -> Result<Grid, String> {
        let flavour = match self.flavour {
            Speak::Binder => Flavour::Binder,
            Speak::Hwbinder => Flavour::Hwbinder,
        };
        let usual = Ask::usual(flavour);
        let base = Ask {
            test: "latency sweep".to_owned(),
            iterations: self.iterations,
            inherit_rt: self.inherit_rt.map_or(usual.inherit_rt, |switch| switch == Switch::On),
            raw: self.raw_data,
            injected: self.inject.clone(),
            wanted: self.driver.wanted_inheriting(Inherit::Rt)?,
            android: self.android,
            patience_s: self.patience,
            command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            ..usual
        };
        let mut deadlines_us = self.deadline_us.clone();
        deadlines_us.sort_unstable();
        deadlines_us.dedup();
        let grid = Grid {
            base,
            pairs: if self.pairs.is_empty() { usual_pairs(lab::usable_cpus()) } else { self.pairs.clone() },
            payloads: self.payload.clone(),
            loads: self.load.iter().map(|beside| beside.0.clone()).collect(),
            deadlines_us,
            rates: self.rates.0.clone(),
            meet: self.meet,
            confidence: self.confidence,
        };
        grid.check().map(|()| grid)
    }
}

/// Numbers of pairs that do not overload the machine.
fn usual_pairs(cpus: u32) -> Vec<u32> {
    let mut pairs = vec![1, cpus.saturating_sub(1).max(1)];
    pairs.dedup();
    pairs
}

/// Runs it; the result is the exit status.
pub(super) fn run(args: &SweepArgs) -> u8 {
    let grid = match args.grid() {
        Ok(grid) => grid,
        Err(why) => {
            complain(why);
            return exit::USAGE;
        }
    };
    let mut stdout = Sink::stdout();
    let mut record = args.record.as_deref().map(Sink::file);
    if let Some(trouble) = record.as_ref().and_then(Sink::trouble) {
        complain(trouble);
    }
    let mut teller = Teller { line: StatusLine::new() };
    let result = execute(&grid, &mut teller);
    teller.line.show("");
    let run = match result {
        Ok(run) => run,
        Err(error) => return cannot_run(&error),
    };
    stdout.put(&match args.format {
        Form::Json => json(&run, &Options::default()),
        Form::Table => table(&run),
    });
    if let Some(record) = &mut record {
        record.put(&run.to_json());
    }
    let status = verdict(&run);
    let troubles: Vec<String> = std::iter::once(&stdout).chain(&record).filter_map(Sink::trouble).collect();
    troubles.iter().for_each(complain);
    if troubles.is_empty() { status } else { exit::INTERNAL }
}

/// A sweep asks how things are, so only what could not be measured is a failure.
fn verdict(run: &Run) -> u8 {
    let mut status = failures(run);
    for finding in run.findings.iter().filter(|finding| finding.severity == record::Severity::Error) {
        complain(&finding.text);
        status = exit::FAILED;
    }
    if let Some(reason) = &run.incomplete_reason {
        complain(format_args!("{reason}; what was measured is kept"));
        status = exit::FAILED;
    }
    status
}

/// Tells which point is measured.
struct Teller {
    line: StatusLine,
}

impl Observer for Teller {
    fn begins(&mut self, run: &Run) {
        note(chosen(run).unwrap_or_default());
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        if let Some(case) = run.cases.get(case) {
            self.line.step(done, all, case.name.split("/pair:").next().unwrap_or(&case.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(words: &[&str]) -> Result<Grid, String> {
        let args = SweepArgs::try_parse_from(std::iter::once(&"x").chain(words))
            .map_err(|error| error.to_string())?;
        args.grid()
    }

    #[test]
    fn words_become_axes() {
        let words = [
            "-w",
            "2,1",
            "--payload",
            "0,64",
            "--load=none",
            "--load=cpu:2,io:1:batch",
            "--deadline-us=500,100,500",
            "--rates",
            "2000,0.5,2000",
            "-i",
            "7",
            "--meet=0.5",
            "--flavour=binder",
        ];
        let grid = grid(&words).expect("a grid");
        assert_eq!((grid.pairs, grid.payloads, grid.deadlines_us), (vec![2, 1], vec![0, 64], vec![100, 500]));
        assert_eq!(grid.rates, [0.5, 2000.0]);
        assert_eq!(grid.loads.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((grid.base.iterations, grid.base.flavour), (7, Flavour::Binder));
    }

    #[test]
    fn a_grid_needs_no_words() {
        let usual = grid(&[]).expect("a grid");
        assert_eq!((usual.loads, usual.meet, usual.confidence), (vec![Vec::new()], 0.99, 0.95));
        assert!(usual.deadlines_us.contains(&2500) && usual.rates.len() > 3);
        assert_eq!(grid(&["--rates=none"]).expect("no search").rates, [0.0; 0]);
        assert_eq!((usual_pairs(1), usual_pairs(2), usual_pairs(8)), (vec![1], vec![1], vec![1, 7]));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "--rates=x",
            "--rates=1,",
            "--rates=0",
            "--rates=nan",
            "--load=x",
            "--load=cpu:2,",
            "--meet=1",
            "--meet=nan",
            "--confidence=0.3",
            "--pairs=0",
            "--deadline-us=0",
            "--payload=-1",
            "--payload=99999999",
            "--iterations=0",
        ] {
            assert!(grid(&[bad]).is_err(), "{bad}");
        }
    }
}
