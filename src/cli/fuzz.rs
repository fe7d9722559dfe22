//! The command `fuzz`: its options.
//! Not here: the drivers that it compares, and its report (`conduct::fuzz`).

use std::path::PathBuf;

use clap::{Args, ValueHint};
use conduct::fuzz::{DriverWord, Job};

use super::{A_YEAR_S, CommandResult};

/// Run random programs on several drivers and compare what they do
///
/// A program is a list of steps of several processes: calls, counts, death and freeze notifications, kills. Each
/// driver runs it step by step; outcomes are compared without addresses and process numbers. A difference that is not
/// among the known ones is shrunk to a few steps and printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct FuzzArgs {
    /// Drivers: embedded, embedded:broker (no direct calls), kernel (this machine's), kernel:c (Debian's newest, in a
    /// guest), kernel:rust (the newest that vm build-kernel --driver rust built), kernel:X (any that vm --kernel takes)
    #[arg(long, value_name = "LIST", default_value = "embedded,embedded:broker", value_delimiter = ',')]
    drivers: Vec<DriverWord>,

    /// Seconds after which no more programs begin
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    seconds: u64,

    /// Most programs [default: as many as the time permits]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    programs: Option<u64>,

    /// Seed of the first program; the next ones have the next seeds. With KCOV a program depends on those before it, too
    #[arg(long, value_name = "X", default_value_t = 1)]
    seed: u64,

    /// Also run each program in N orders: its threads side by side, with waits, priorities and CPUs from the seed
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1000))]
    schedules: u64,

    /// Make each program from its seed alone. By default, where a kernel has KCOV, programs that reach new places of a
    /// driver are varied
    #[arg(long)]
    undirected: bool,

    /// Guests count instructions, each of 2^SHIFT ns, so that a boot has the same order each time; another shift, another order
    #[arg(long, value_name = "SHIFT", value_parser = clap::value_parser!(u8).range(1..=10))]
    icount: Option<u8>,

    /// Run the programs of FILE (- for stdin) instead of random ones: one step a line, --- between programs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    program: Option<PathBuf>,

    /// Folder for findings (steps, and a C program where one can show it), the next seed, and with KCOV the programs that
    /// are varied (corpus.txt); the same command goes on from there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,

    /// Run the programs of FILE on this machine's driver and write what they gave, for another binderperf
    #[arg(long, value_name = "FILE", hide = true)]
    serve: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &FuzzArgs) -> CommandResult {
    if let Some(file) = &args.serve {
        return conduct::fuzz::serve(file);
    }
    conduct::fuzz::run(&Job {
        drivers: args.drivers.clone(),
        seconds: args.seconds,
        programs: args.programs,
        seed: args.seed,
        schedules: args.schedules,
        undirected: args.undirected,
        icount: args.icount,
        given: args.program.clone(),
        out: args.out.clone(),
    })
}
