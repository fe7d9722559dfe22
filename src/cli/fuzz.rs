//! The command `fuzz`: its options, the drivers that it compares, and its report.
//! Not here: programs, their run and comparison (crate `fuzzer`), drivers in guests (`fleet::guest`).

mod keep;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use bench::plan::{Driver, Settings, Waiting, Wanted};
use clap::{Args, ValueHint};
use fleet::guest::fuzz::Guest;
use fuzzer::corpus::Corpus;
use fuzzer::program::Program;
use fuzzer::runner::{self, Local, Runner};
use fuzzer::session::{Finding, Report, Session};
use store::input;

use keep::Keep;

use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, note, say, tell};

/// Longest file of programs, in bytes.
const LONGEST: u64 = 64 << 20;

/// Programs of a round: without guests, and with them, whose boots take longer than many programs.
const ROUND: (u64, u64) = (50, 300);

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
        let programs = read(file)?;
        let mut local = local("kernel", Driver::Kernel, true).or_exit(exit::UNABLE)?;
        runner::serve(&mut local, &programs, &mut super::terminal::own()).or_exit(exit::INTERNAL)?;
        return Ok(exit::FINE);
    }
    let given = args.program.as_deref().map(read).transpose()?;
    // Without the handlers a signal kills this process, and nothing worse.
    let _ = sys::stop_signal::catch();
    let runners = args.drivers.iter().map(|word| word.runner(args.icount)).collect::<Result<Vec<_>, _>>();
    let runners = runners.or_exit(exit::UNABLE)?;
    if args.icount.is_some() && !runners.iter().any(|runner| runner.boots()) {
        return Err(Failure::new(exit::USAGE, "--icount is for guests, and none of the drivers is in one"));
    }
    let round = if runners.iter().any(|runner| runner.boots()) { ROUND.1 } else { ROUND.0 };
    let round = round.div_ceil(args.schedules + 1);
    let keep = args.out.as_deref().map(Keep::open).transpose()?;
    let corpus = match &keep {
        _ if args.undirected => None,
        Some(keep) => Some(keep.corpus()?),
        None => Some(Corpus::default()),
    };
    let mut session = Session::new(runners, corpus);
    let mut reporter = Reporter { keep: keep.as_ref(), findings: 0 };
    if let Some(programs) = given {
        session.compare(&programs, &[], &mut reporter).or_exit(exit::UNABLE)?;
    } else {
        let start = Instant::now();
        session.run_kept().or_exit(exit::UNABLE)?;
        let mut seed = keep.as_ref().and_then(Keep::next_seed).unwrap_or(args.seed);
        let mut left = args.programs.unwrap_or(u64::MAX);
        while left > 0 && start.elapsed().as_secs() < args.seconds && sys::stop_signal::received().is_none() {
            let count = round.min(left);
            session.round(seed..seed + count, args.schedules, &mut reporter).or_exit(exit::UNABLE)?;
            (seed, left) = (seed + count, left - count);
            if let Some(keep) = &keep {
                keep.set_next_seed(seed)?;
            }
        }
    }
    say(&summary(&session, reporter.findings))?;
    Ok(if reporter.findings == 0 { exit::FINE } else { exit::FAILED })
}

/// Shows and keeps what the session finds.
struct Reporter<'k> {
    keep: Option<&'k Keep>,
    findings: u64,
}

impl Report for Reporter<'_> {
    fn finding(&mut self, finding: &Finding) -> Result<(), String> {
        self.findings += 1;
        shown(self.findings, finding)?;
        self.keep.map_or(Ok(()), |keep| keep.finding(self.findings, finding))
    }

    fn kept(&mut self, program: &Program) -> Result<(), String> {
        self.keep.map_or(Ok(()), |keep| keep.program(program))
    }
}

fn shown(number: u64, finding: &Finding) -> Result<(), String> {
    let of = finding.seed.map_or("the given program".to_owned(), |seed| format!("seed {seed}"));
    let text = format!("difference {number}, {of}: {}\n{finding}", finding.difference.kind());
    say(&text).map(drop).map_err(|_| "the result cannot be written".to_owned())
}

fn summary(session: &Session, findings: u64) -> String {
    let totals = &session.totals;
    let known: u64 = totals.known.values().sum();
    let items: Vec<String> = totals.known.iter().map(|(item, count)| format!("{item} {count}")).collect();
    let items = if items.is_empty() { String::new() } else { format!(" ({})", items.join(", ")) };
    let scheduled = match totals.scheduled {
        0 => String::new(),
        count => format!(" and {count} with threads side by side"),
    };
    let reached: Vec<String> = session.reached().map(|(name, count)| format!("{count} of {name}")).collect();
    let reached = match reached.len() {
        0 => String::new(),
        _ => format!("fuzz: places reached: {}; programs kept: {}\n", reached.join(", "), session.kept()),
    };
    format!(
        "fuzz: {} programs{scheduled}, {} alike; differences: {findings} new, {} more of their kinds, {known} known{items}, {} not reproducible\n{reached}",
        totals.programs, totals.alike, totals.again, totals.fickle,
    )
}

fn read(file: &Path) -> Result<Vec<Program>, Failure> {
    let text = input::text(file, LONGEST, tell)
        .map_err(|error| Failure::of_file(exit::USAGE, "read", file, &error))?;
    runner::parse_programs(&text)
        .map_err(|why| Failure::new(exit::USAGE, format!("{}: {why}", file.display())))
}

/// A driver by its word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DriverWord {
    /// This machine's: the driver, and whether the embedded one has direct calls.
    Here(Driver, bool),
    /// One in guests of this kernel.
    Guest(String),
}

impl FromStr for DriverWord {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "embedded" => Self::Here(Driver::Embedded, true),
            "embedded:broker" => Self::Here(Driver::Embedded, false),
            "kernel" => Self::Here(Driver::Kernel, true),
            _ => match word.strip_prefix("kernel:").filter(|kernel| !kernel.is_empty()) {
                Some(kernel) => Self::Guest(kernel.to_owned()),
                None => {
                    let some = "embedded, embedded:broker, kernel, kernel:c, kernel:rust or kernel:X";
                    return Err(format!("no driver {word:?}; use {some}"));
                }
            },
        })
    }
}

impl fmt::Display for DriverWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(Driver::Embedded, false) => f.write_str("embedded:broker"),
            Self::Here(driver, _) => write!(f, "{driver}"),
            Self::Guest(kernel) => write!(f, "kernel:{kernel}"),
        }
    }
}

impl DriverWord {
    fn runner(&self, icount: Option<u8>) -> Result<Box<dyn Runner>, String> {
        Ok(match self {
            Self::Here(driver, direct) => Box::new(local(&self.to_string(), *driver, *direct)?),
            Self::Guest(kernel) => Box::new(Guest::new(&self.to_string(), kernel, icount)?),
        })
    }
}

fn local(name: &str, driver: Driver, call_slots: bool) -> Result<Local, String> {
    // Threads that spin look busy, and a step that waits must be seen to sleep.
    let settings = Settings { call_slots, waiting: Waiting::Sleep, ..Settings::default() };
    let wanted = Wanted { driver, settings, ..Wanted::default() };
    let located = conformance::find(&wanted).map_err(|error| error.to_string())?;
    let local = Local::new(name, located.context)?;
    if driver == Driver::Kernel && !local.reads_log() {
        note("binderperf: faults that the kernel reports do not count: /dev/kmsg cannot be read\n");
    }
    Ok(local)
}
