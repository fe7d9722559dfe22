//! The command `kpi`: the three figures that Android publishes of each kernel release, in one table.
//! Not here: measuring (`bench::run`), the table (`record::render::kpi`), each test by itself (`throughput addints`, `rpc`, `hwbinder`).

use std::path::PathBuf;

use bench::plan::{Controls, Device, Family, Fault, Filter, MinTime, Placement, Plan, fresh_seed};
use clap::Args;
use record::render::kpi::TEST;
use record::{HostClass, Run};

use super::choice;
use super::driver::DriverArgs;
use super::measure::{completeness, measure};
use super::show::Form;
use super::throughput::own::ascending;
use super::throughput::seconds;
use super::{A_YEAR_S, CommandResult, command_line, exit};

/// Rounds where time is measured, and where instructions are counted, which are the same in each round.
const ROUNDS: [u32; 2] = [10, 3];
/// Round trips of a case in a round where instructions are counted.
const COUNTED: u64 = 200;
/// Threads of RPC binder's session, besides one, where there is more than one CPU to run them.
const SEVERAL: u32 = 4;

/// Measure what Android publishes of each kernel release: RPC binder, addInts and hwbinder, in one short table
///
/// Each figure is the median of the rounds' medians, with its interval and its ratios to the controls of the same run.
/// `vm --icount` counts instructions; `ab`, `matrix`, `compare` and `history` take it as any test.
#[derive(Debug, Args)]
pub(crate) struct KpiArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// Payloads of RPC binder and hwbinder in bytes; addInts has 8
    #[arg(short = 's', long, value_name = "BYTES", value_delimiter = ',', allow_negative_numbers = true,
        default_values_t = [64, 4096, 65536])]
    payload: Vec<u64>,

    /// Numbers of threads that call at once through one session of RPC binder [default: 1,4; with one CPU: 1]
    #[arg(short = 't', long, value_name = "N", value_delimiter = ',', allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Vec<u32>,

    /// Rounds of every case, in random order [default: 10; of counted instructions 3, in the table's order]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Duration of a round of each case in seconds
    #[arg(long, value_name = "S", default_value = "0.05", allow_negative_numbers = true, value_parser = seconds)]
    duration: f64,

    /// Round trips of each case in a round, of each thread, instead of a duration [default where instructions are counted: 200]
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "duration", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// Controls to compare with: default, all, none, or a list of pipe, unix, futex, eventfd, spin, raw
    #[arg(long, value_name = "LIST", default_value = "pipe,unix")]
    controls: Controls,

    /// Cases whose names match this regular expression
    #[arg(long, value_name = "REGEX", default_value = "", hide_default_value = true, value_parser = Filter::new)]
    filter: Filter,

    /// CPUs of both sides of every case: the scheduler's choice, the same, or two
    #[arg(long, value_name = "WHERE", default_value_t, value_parser = choice::of([Placement::Default, Placement::Same, Placement::Cross]))]
    placement: Placement,

    /// Seed of the order [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Summary)]
    format: Form,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Inject a fault: KIND=CASE with kill-server, hang-server or corrupt-reply
    #[arg(long, hide = true, value_name = "KIND=CASE")]
    fault: Vec<Fault>,

    /// Seconds (more on a busy machine) without a round trip after which a case counts as hanging
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

impl KpiArgs {
    fn plan(&self) -> Result<Plan, String> {
        if !matches!(self.driver.device(), Device::Auto | Device::Private) {
            return Err("--device does not go with kpi: each flavour needs a context of its own".to_owned());
        }
        if let Some(payload) = self.payload.iter().find(|payload| **payload > Family::LARGEST_RPC) {
            return Err(format!(
                "a payload of {payload} B is too large: RPC binder's messages end at {} B",
                Family::LARGEST_RPC
            ));
        }
        let payloads = ascending(&self.payload);
        let counts = host::class() == HostClass::Icount;
        let one_cpu = sys::sched::affinity().is_ok_and(|cpus| cpus.len() < 2);
        let threads = match &self.threads[..] {
            [] if one_cpu => vec![1],
            [] => vec![1, SEVERAL],
            given => ascending(given),
        };
        let min_time = match self.iterations {
            Some(iterations) => MinTime::Iterations(iterations),
            None if counts => MinTime::Iterations(COUNTED),
            None => MinTime::Seconds(self.duration),
        };
        Ok(Plan {
            test: TEST.to_owned(),
            tests: Family::KPIS.to_vec(),
            payloads,
            threads,
            controls: self.controls.clone(),
            filter: self.filter.clone(),
            min_time,
            repetitions: self.rounds.unwrap_or(ROUNDS[usize::from(counts)]),
            // Counted instructions repeat exactly if what came before does.
            interleaving_seed: (!counts).then(|| self.seed.unwrap_or_else(fresh_seed)),
            wanted: self.driver.wanted()?,
            placement: self.placement,
            faults: self.fault.clone(),
            patience_s: self.patience,
            command_line: command_line(),
            ..Plan::default()
        })
    }
}

/// Measures and prints the table.
pub(crate) fn run(args: &KpiArgs) -> CommandResult {
    let print = |run: &Run| args.format.of(run);
    measure(args.plan(), args.record.as_deref(), bench::run::execute, print, verdict)
}

fn verdict(run: &Run) -> u8 {
    if completeness(run) != exit::FINE || run.any_failed() || !run.complete {
        exit::FAILED
    } else {
        exit::FINE
    }
}
