//! The command `kpi`: the three figures that Android publishes of each kernel release, in one table.
//! Not here: measuring (`bench::run`), the table (`record::render::kpi`), each test by itself (`throughput addints`, `rpc`, `hwbinder`).

use bench::plan::request::ascending;
use bench::plan::{Controls, Family, Filter, Placement, Plan};
use clap::Args;
use record::HostClass;
use record::render::kpi::TEST;

use super::CommandResult;
use super::choice;
use super::throughput::rounds::RoundsArgs;

/// Rounds where time is measured, and where instructions are counted, which are the same in each round.
const ROUNDS: [u32; 2] = [10, 3];
/// Round trips of a case in a round where instructions are counted.
const COUNTED: u64 = 200;
/// Threads of RPC binder's session, besides one, where there is more than one CPU to run them.
const SEVERAL: u32 = 4;

/// Measure what Android publishes of each kernel release: RPC binder, addInts and hwbinder, in one short table
///
/// Each figure is the median of the rounds' medians, with its interval and its ratios to the controls of the same run.
/// `vm --icount` counts the instructions of 200 round trips a round; `ab`, `matrix`, `compare` and `history` take it as any test.
#[derive(Debug, Args)]
pub(crate) struct KpiArgs {
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

    /// Controls to compare with: default, all, none, or a list of pipe, unix, futex, eventfd, spin, raw
    #[arg(long, value_name = "LIST", default_value = "pipe,unix")]
    controls: Controls,

    /// Cases whose names match this regular expression
    #[arg(long, value_name = "REGEX", default_value = "", hide_default_value = true, value_parser = Filter::new)]
    filter: Filter,

    /// CPUs of both sides of every case: the scheduler's choice, the same, or two
    #[arg(long, value_name = "WHERE", default_value_t, value_parser = choice::of([Placement::Default, Placement::Same, Placement::Cross]))]
    placement: Placement,

    #[command(flatten)]
    each: RoundsArgs,
}

impl KpiArgs {
    fn plan(&self) -> Result<Plan, String> {
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
        let plan = self.each.plan(TEST, counts.then_some(COUNTED))?;
        Ok(Plan {
            tests: Family::KPIS.to_vec(),
            payloads,
            threads,
            controls: self.controls.clone(),
            filter: self.filter.clone(),
            repetitions: self.rounds.unwrap_or(ROUNDS[usize::from(counts)]),
            // Counted instructions repeat exactly if what came before does.
            interleaving_seed: plan.interleaving_seed.filter(|_| !counts),
            placement: self.placement,
            ..plan
        })
    }
}

/// Measures and prints the table.
pub(crate) fn run(args: &KpiArgs) -> CommandResult {
    args.each.measure(args.plan(), |_| false)
}
