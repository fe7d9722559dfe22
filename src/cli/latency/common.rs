//! Options that the tests of single calls share: how often, when and where they call, load, output.
//! Not here: what they call (`super`, `super::ping`).

use std::path::PathBuf;

use bench::latency::{LatencyOptions, options};
use bench::load::LoadSpec;
use bench::plan::{Inherit, Release};
use clap::Args;
use conduct::latency::Asked;

use crate::cli::constraints::ConstraintArgs;
use crate::cli::driver::DriverArgs;
use crate::cli::place::PlaceArgs;
use crate::cli::{A_YEAR_S, command_line};

/// Options of every test of single calls.
#[derive(Debug, Args)]
pub(super) struct CommonArgs {
    /// Iterations of each pair or client; each is one call from a SCHED_FIFO and one from a SCHED_OTHER thread
    #[arg(short = 'i', long, value_name = "N", default_value_t = options::USUAL_ITERATIONS, allow_negative_numbers = true)]
    pub(super) iterations: u64,

    /// A call that takes longer misses its deadline; also -deadline_us
    #[arg(long, value_name = "US", default_value_t = options::USUAL_DEADLINE_US, allow_negative_numbers = true)]
    pub(super) deadline_us: u64,

    /// Calls per second of each pair or client, each timed from its intended start [default: back to back]
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub(super) rate: Option<f64>,

    /// Priority of the real-time caller, 1 to 99
    #[arg(long, value_name = "N", default_value_t = 99, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(super) priority: u8,

    #[command(flatten)]
    pub(super) place: PlaceArgs,

    /// Background load: cpu, memory, irq or io, with count (1 to 256 in all) and class (other, batch, idle, niceN,
    /// fifoN, rrN); may be repeated
    #[arg(help_heading = "Load", long, value_name = "KIND[:COUNT[:CLASS]]")]
    pub(super) load: Vec<LoadSpec>,

    /// Pin the load to this CPU
    #[arg(help_heading = "Load", long, value_name = "CPU")]
    pub(super) load_cpu: Option<u32>,

    /// Print pid, tid, CPU, policy and priority of each participant that tells
    #[arg(help_heading = "Output", short = 'v', long)]
    pub(super) verbose: bool,

    /// Print and record every single time; also -raw_data
    #[arg(help_heading = "Output", long)]
    pub(super) raw_data: bool,

    /// Stop the kernel's tracing and the test at the first miss; also -trace
    #[arg(help_heading = "Output", long)]
    pub(super) trace: bool,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Android release of the service manager's protocol: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    pub(super) android: Release,

    /// Seconds (more on a busy machine) without a reply after which a pair or client counts as hanging
    #[arg(help_heading = "Service", long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    pub(super) patience: u64,

    #[command(flatten)]
    pub(super) driver: DriverArgs,

    #[command(flatten)]
    pub(super) constraints: ConstraintArgs,
}

impl CommonArgs {
    /// A test with these options.
    pub(super) fn asked(&self, options: Result<LatencyOptions, String>) -> Asked<'_> {
        let (constraints, record) = (self.constraints.wanted(), self.record.as_deref());
        Asked { options, constraints, record, verbose: self.verbose }
    }

    /// The options of a test, which has these for the rest.
    pub(super) fn applied(&self, usual: LatencyOptions) -> Result<LatencyOptions, String> {
        Ok(LatencyOptions {
            iterations: self.iterations,
            deadline_us: self.deadline_us,
            rate_hz: self.rate,
            raw: self.raw_data,
            trace: self.trace,
            priority: self.priority,
            loads: self.load.clone(),
            load_cpu: self.load_cpu,
            // As on the phones for which these tests were made.
            wanted: self.driver.wanted_inheriting(Inherit::Rt)?,
            android: self.android,
            patience_s: self.patience,
            command_line: command_line(),
            ..usual
        })
    }
}
