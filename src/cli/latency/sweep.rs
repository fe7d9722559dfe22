//! The command `latency sweep`: its options, output and exit status.
//! Not here: measuring (`bench::sweep`), what is sustained (`record::experiments::sweep`).

use std::path::PathBuf;

use bench::latency::{Injected, LatencyOptions};
use bench::load::LoadSpec;
use bench::plan::{Flavour, Inherit, Release};
use bench::sweep::{Grid, execute, usual_pairs};
use clap::Parser;
use conduct::measure::measure;
use conduct::verdict::sweep_status;
use record::render::latency::Options;

use super::super::choice::{self, ON_OFF, Table};
use super::super::driver::DriverArgs;
use super::super::{A_YEAR_S, CommandResult, command_line};
use super::Form;

/// Measure latency over a grid of pairs, payloads, loads and deadlines, and how many calls per second are
/// sustained
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct SweepArgs {
    /// The library that the pairs use
    #[arg(long, value_parser = choice::table(&LIBRARIES), default_value = "hwbinder")]
    flavour: Flavour,

    /// Numbers of concurrent pairs [default: 1, and one less than the CPUs]
    #[arg(short = 'w', long, alias = "pair", value_name = "N", value_delimiter = ',')]
    pairs: Vec<u32>,

    /// Bytes that each call carries
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [0, 4096])]
    payload: Vec<u32>,

    /// Background load of a grid point: none, or values of `latency --load` separated by commas; may be repeated
    #[arg(long, value_name = "none|LOAD,...", default_value = NONE, value_parser = beside)]
    load: Vec<Beside>,

    /// Deadlines to check every call against
    #[arg(long, value_name = "US", value_delimiter = ',', default_values_t = [50, 100, 200, 500, 1000, 2500, 5000, 10_000])]
    deadline_us: Vec<u64>,

    /// Iterations of each pair at each point; each is one call from a SCHED_FIFO and one from a SCHED_OTHER thread
    #[arg(short = 'i', long, value_name = "N", default_value_t = 500)]
    iterations: u64,

    /// Calls per second of each pair to try for the highest sustained rate; none for no search
    #[arg(help_heading = "Rates", long, value_name = "none|HZ,...", default_value = "500,1000,2000,5000,10000,20000,50000", value_parser = rates)]
    rates: Rates,

    /// A rate is sustained if at least this share of the calls meets the deadline
    #[arg(help_heading = "Rates", long, value_name = "SHARE", default_value_t = 0.99)]
    meet: f64,

    /// One-sided confidence of that
    #[arg(help_heading = "Rates", long, value_name = "SHARE", default_value_t = 0.95)]
    confidence: f64,

    /// Whether the service's node inherits real-time priorities [default: on for hwbinder, off for binder]
    #[arg(help_heading = "Service", long, value_name = "on|off", value_parser = choice::table(&ON_OFF))]
    inherit_rt: Option<bool>,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Table)]
    format: Form,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Record every single time
    #[arg(help_heading = "Output", long)]
    raw_data: bool,

    /// Inject a fault, as in the other latency tests
    #[arg(help_heading = "Service", long, value_name = "FAULT")]
    inject: Vec<Injected>,

    /// Android release of the service manager's protocol: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    android: Release,

    /// Seconds (more on a busy machine) without a reply after which a pair counts as hanging
    #[arg(help_heading = "Service", long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    #[command(flatten)]
    driver: DriverArgs,
}

/// Libraries that pairs use.
const LIBRARIES: Table<Flavour, 2> =
    [(Flavour::Binder, "binder", "As schd-dbg"), (Flavour::Hwbinder, "hwbinder", "As libhwbinder_latency")];

const NONE: &str = "none";

/// The background load of a grid point.
type Beside = Vec<LoadSpec>;
/// Distinct rates in ascending order.
type Rates = Vec<f64>;

fn beside(text: &str) -> Result<Beside, String> {
    if text == NONE { Ok(Vec::new()) } else { text.split(',').map(str::parse).collect() }
}

fn rates(text: &str) -> Result<Rates, String> {
    if text == NONE {
        return Ok(Vec::new());
    }
    let rate = |word: &str| {
        word.parse::<f64>()
            .map_err(|_| format!("{word:?} is no number of calls per second, nor is it {NONE}"))
    };
    let mut rates = text.split(',').map(rate).collect::<Result<Rates, _>>()?;
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    Ok(rates)
}

impl SweepArgs {
    fn grid(&self) -> Result<Grid, String> {
        let usual = LatencyOptions::usual(self.flavour);
        let base = LatencyOptions {
            test: "latency sweep".to_owned(),
            iterations: self.iterations,
            inherit_rt: self.inherit_rt.unwrap_or(usual.inherit_rt),
            raw: self.raw_data,
            injected: self.inject.clone(),
            wanted: self.driver.wanted_inheriting(Inherit::Rt)?,
            android: self.android,
            patience_s: self.patience,
            command_line: command_line(),
            ..usual
        };
        let mut deadlines_us = self.deadline_us.clone();
        deadlines_us.sort_unstable();
        deadlines_us.dedup();
        let grid = Grid {
            base,
            pairs: if self.pairs.is_empty() {
                usual_pairs(sys::sched::usable_cpus())
            } else {
                self.pairs.clone()
            },
            payloads: self.payload.clone(),
            loads: self.load.clone(),
            deadlines_us,
            rates: self.rates.clone(),
            meet: self.meet,
            confidence: self.confidence,
        };
        grid.check().map(|()| grid)
    }
}

/// Measures the grid.
pub(super) fn run(args: &SweepArgs) -> CommandResult {
    measure(
        args.grid(),
        args.record.as_deref(),
        execute,
        |run| args.format.of(run, Options::default()),
        sweep_status,
    )
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
