//! Room: `throughput compare-flavours`: binder beside hwbinder, the same interface without IPC, and every
//! control, all in one run: its flags and its exit status.
//! Not here: measuring (`lab::run`), the tables (`record::render::flavours`).

use std::path::PathBuf;

use clap::Parser;
use lab::plan::{
    Controls, Device, Family, Fault, LARGEST_PAYLOAD, MinTime, Placement, Plan, Release, fresh_seed,
};
use lab::run::Observer;
use record::Run;
use record::render::flavours::{self, Limit};

use super::super::choice;
use super::super::driver::{DriverArgs, chosen};
use super::super::output::Sink;
use super::super::progress::StatusLine;
use super::super::show::Form;
use super::super::{A_YEAR_S, cannot_run, complain, exit, note};
use super::crowd;

/// Compare binder with hwbinder, with the same interface without IPC, and with every control
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct FlavoursArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// Payloads in bytes
    #[arg(short = 's', long, value_name = "BYTES", value_delimiter = ',', allow_negative_numbers = true,
        default_values_t = [4, 64, 1024, 4096, 16384, 65536])]
    payload: Vec<u64>,

    /// Rounds of every case, all of them in a drawn order
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// How long a round of each case takes, in seconds
    #[arg(long, value_name = "S", default_value = "0.05", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: f64,

    /// Round trips of each case in a round, in place of a time
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "duration", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// Where both sides of every case run: where the scheduler puts them, on one CPU, on two; spinning always has two
    #[arg(long, value_name = "WHERE", default_value_t = Placement::Same,
        value_parser = choice::of([Placement::Default, Placement::Same, Placement::Cross]))]
    placement: Placement,

    /// Android release whose wire format binder speaks: 8 to 16, 15-qpr
    #[arg(long, value_name = "N", default_value_t)]
    android: Release,

    /// Seed of the order [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Exit with 1 when a limit is missed
    #[arg(help_heading = "Verdict", long)]
    strict: bool,

    /// What to print
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Summary)]
    format: Form,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Break something on purpose: KIND=CASE with kill-server, hang-server or corrupt-reply
    #[arg(long, hide = true, value_name = "KIND=CASE")]
    fault: Vec<Fault>,

    /// Seconds without a round trip after which a case is given up
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

impl FlavoursArgs {
    fn plan(&self) -> Result<Plan, String> {
        if !matches!(self.driver.device(), Device::Auto | Device::Private) {
            return Err(
                "--device does not go with compare-flavours: each flavour needs a context of its own"
                    .to_owned(),
            );
        }
        if let Some(payload) = self.payload.iter().find(|payload| **payload > LARGEST_PAYLOAD) {
            return Err(format!(
                "a payload of {payload} B does not fit into a receiver's buffer, in which a client's last call may lie \
                 beside its next one: the limit is {LARGEST_PAYLOAD} B"
            ));
        }
        let mut payloads = self.payload.clone();
        payloads.sort_unstable();
        payloads.dedup();
        Ok(Plan {
            test: flavours::TEST.to_owned(),
            tests: Family::TESTS.to_vec(),
            payloads,
            controls: Controls::with_parts(),
            min_time: self.iterations.map_or(MinTime::Seconds(self.duration), MinTime::Iterations),
            repetitions: self.rounds,
            interleaving_seed: Some(self.seed.unwrap_or_else(fresh_seed)),
            wanted: self.driver.wanted()?,
            placement: self.placement,
            spin_apart: true,
            android: self.android,
            faults: self.fault.clone(),
            patience_s: self.patience,
            command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            ..Plan::default()
        })
    }
}

/// Runs it; the result is the exit status.
pub(super) fn run(args: &FlavoursArgs) -> u8 {
    let plan = match args.plan() {
        Ok(plan) => plan,
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
    let mut line = Line(StatusLine::new());
    let measured = lab::run::execute(&plan, &mut line);
    line.0.show("");
    let run = match measured {
        Ok(run) => run,
        Err(error) => return cannot_run(&error),
    };
    stdout.put(&args.format.of(&run));
    if let Some(record) = &mut record {
        record.put(&run.to_json());
    }
    let mut end = verdict(&run, args.strict);
    for trouble in [Some(&stdout), record.as_ref()].into_iter().flatten().filter_map(Sink::trouble) {
        complain(trouble);
        end = exit::INTERNAL;
    }
    end
}

fn verdict(run: &Run, strict: bool) -> u8 {
    if let Some(reason) = &run.incomplete_reason {
        complain(format_args!("{reason}; what was measured until then is kept"));
    }
    // A shared machine may miss any limit, and a script asks for that when it wants to know.
    let missed = strict && !flavours::limits(run).iter().all(Limit::is_met);
    if run.any_failed() || !run.complete || missed { exit::FAILED } else { exit::FINE }
}

struct Line(StatusLine);

impl Observer for Line {
    fn begins(&mut self, run: &Run) {
        note(chosen(run).unwrap_or_default());
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        self.0.step(done, all, &run.cases[case].name);
    }
}
