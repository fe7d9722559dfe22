//! Room: `binderperf inversion`: typed words to `lab::inversion`, its run into outputs and an exit status.
//! Not here: the experiment (`lab::inversion`), what inversion is (`record::inversion`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::inversion::{Ask, Flavour};
use lab::load::Class;
use lab::plan::{Release, fresh_seed};
use lab::run::Observer;
use record::{Run, Setting};

use super::choice;
use super::driver::{DriverArgs, chosen};
use super::output::Sink;
use super::progress::StatusLine;
use super::show::Form;
use super::{A_YEAR_S, cannot_run, complain, exit, note};

/// See whether a server without its real-time caller's priority keeps that caller waiting
///
/// A SCHED_FIFO caller, its server and CPU hogs share one CPU. With inheritance the server runs ahead of the hogs;
/// without it the caller waits for all of them.
#[derive(Clone, Debug, Args)]
pub(crate) struct InversionArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// What is spoken
    #[arg(help_heading = "Service", long, value_name = "FLAVOUR", default_value_t, value_parser = choice::of([Flavour::Hwbinder, Flavour::Binder]))]
    flavour: Flavour,

    /// Processes that hog the CPU
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true)]
    hogs: u32,

    /// How they are scheduled: other, batch, idle, niceN, fifoN, rrN
    #[arg(long, value_name = "CLASS", default_value_t)]
    hog_class: Class,

    /// For how long the service computes in each call, in us of CPU time
    #[arg(long, value_name = "US", default_value_t = 1000, allow_negative_numbers = true)]
    work: u64,

    /// The CPU that all share [default: the last usable one]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,

    /// Calls of each setting in a round
    #[arg(short = 'i', long, value_name = "N", default_value_t = 100, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: u32,

    /// Rounds, in each of which every setting has its turn
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// What makes the exit status 0
    #[arg(help_heading = "Verdict", long, value_enum, value_name = "WHAT", default_value_t = Expected::None)]
    expect: Expected,

    /// Android release whose service manager is spoken to: 8 to 16, 15-qpr
    #[arg(help_heading = "Service", long, value_name = "N", default_value_t)]
    android: Release,

    /// Seed of the pauses between calls [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// What to print
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Summary)]
    format: Form,

    /// Seconds after which all of it is given up
    #[arg(help_heading = "Verdict", long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    time_limit: u64,

    /// Seconds without a call after which it is given up
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Expected {
    /// No inversion with inheritance
    None,
    /// Inversion in spite of inheritance, as on drivers that do not pass real-time policies on
    Inversion,
}

impl InversionArgs {
    fn ask(&self) -> Result<Ask, String> {
        let ask = Ask {
            flavour: self.flavour,
            hogs: self.hogs,
            hog_class: self.hog_class,
            cpu: self.cpu,
            work_us: self.work,
            iterations: self.iterations,
            rounds: self.rounds,
            wanted: self.driver.wanted()?,
            inherit: self.driver.inherit(),
            android: self.android,
            seed: self.seed.unwrap_or_else(fresh_seed),
            patience_s: self.patience,
            time_limit_s: self.time_limit,
            command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        };
        ask.check().map(|()| ask)
    }
}

/// Carries the experiment out; the result is the exit status.
pub(crate) fn run(args: &InversionArgs) -> u8 {
    let ask = match args.ask() {
        Ok(ask) => ask,
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
    let result = lab::inversion::execute(&ask, &mut teller);
    teller.line.show("");
    let run = match result {
        Ok(run) => run,
        Err(error) => return cannot_run(&error),
    };
    stdout.put(&args.format.of(&run));
    if let Some(record) = &mut record {
        record.put(&run.to_json());
    }
    let mut end = status(&run, args.expect);
    if let Some(reason) = &run.incomplete_reason {
        complain(format_args!("{reason}; what was measured until then is kept"));
        end = exit::FAILED;
    }
    for trouble in [Some(&stdout), record.as_ref()].into_iter().flatten().filter_map(Sink::trouble) {
        complain(trouble);
        end = exit::INTERNAL;
    }
    end
}

/// Only a verdict that was reached can be as expected.
fn status(run: &Run, expected: Expected) -> u8 {
    let on = run.inversion.as_ref().and_then(|experiment| experiment.row(Setting::On));
    match (on.and_then(|row| row.inverted), expected) {
        (Some(false), Expected::None) | (Some(true), Expected::Inversion) => exit::FINE,
        _ => exit::FAILED,
    }
}

struct Teller {
    line: StatusLine,
}

impl Observer for Teller {
    fn begins(&mut self, run: &Run) {
        if let Some(chosen) = chosen(run) {
            note(chosen);
        }
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        self.line.step(done, all, &run.cases[case].name);
    }
}
