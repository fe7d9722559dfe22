//! Random programs on several drivers: rounds of them, what is kept, and the report.
//! Not here: programs, their run and comparison (crate `fuzzer`), drivers in guests (`fleet::guest::fuzz`).

mod keep;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use bench::plan::{Driver, Settings, Waiting, Wanted};
use console::{CommandResult, Failure, OrExit, exit, note, say, tell, terminal};
use fleet::guest::fuzz::Guest;
use fuzzer::corpus::Corpus;
use fuzzer::program::Program;
use fuzzer::runner::{self, Local, Runner};
use fuzzer::session::{Finding, News, Session};
use store::input;

use keep::Keep;

/// Longest file of programs, in bytes.
const LONGEST: u64 = 64 << 20;

/// Programs of a round: without guests, and with them, whose boots take longer than many programs.
const ROUND: (u64, u64) = (50, 300);

/// A comparison that is asked for.
#[derive(Clone, Debug)]
pub struct Job {
    /// The drivers that are compared.
    pub drivers: Vec<DriverWord>,
    /// Seconds after which no more programs begin.
    pub seconds: u64,
    /// Most programs.
    pub programs: Option<u64>,
    /// Seed of the first program.
    pub seed: u64,
    /// Orders in which each program runs, too.
    pub schedules: u64,
    /// Whether each program is made from its seed alone.
    pub undirected: bool,
    /// Guests count instructions, with this shift.
    pub icount: Option<u8>,
    /// File of the programs, instead of random ones.
    pub given: Option<PathBuf>,
    /// Folder for findings.
    pub out: Option<PathBuf>,
}

/// Runs the programs of a file on this machine's driver and writes what they gave, for another copy of this program.
///
/// # Errors
/// The file or the driver cannot be used.
pub fn serve(file: &Path) -> CommandResult {
    let programs = read(file)?;
    let mut local = local("kernel", Driver::Kernel, true).or_exit(exit::UNABLE)?;
    runner::serve(&mut local, &programs, &mut terminal::own()).or_exit(exit::INTERNAL)?;
    Ok(exit::FINE)
}

/// Compares; the exit status is 1 if a difference is new.
///
/// # Errors
/// A driver or a file cannot be used.
pub fn run(job: &Job) -> CommandResult {
    let given = job.given.as_deref().map(read).transpose()?;
    // Without the handlers a signal kills this process, and nothing worse.
    let _ = sys::stop_signal::catch();
    let runners = job.drivers.iter().map(|word| word.runner(job.icount)).collect::<Result<Vec<_>, _>>();
    let runners = runners.or_exit(exit::UNABLE)?;
    if job.icount.is_some() && !runners.iter().any(|runner| runner.boots()) {
        return Err(Failure::new(exit::USAGE, "--icount is for guests, and none of the drivers is in one"));
    }
    let round = if runners.iter().any(|runner| runner.boots()) { ROUND.1 } else { ROUND.0 };
    let round = round.div_ceil(job.schedules + 1);
    let keep = job.out.as_deref().map(Keep::open).transpose()?;
    let corpus = match &keep {
        _ if job.undirected => None,
        Some(keep) => Some(keep.corpus()?),
        None => Some(Corpus::default()),
    };
    let mut session = Session::new(runners, corpus);
    let mut findings = 0;
    let mut report = |news: News<'_>| match news {
        News::Found(finding) => {
            findings += 1;
            shown(findings, finding)?;
            keep.as_ref().map_or(Ok(()), |keep| keep.finding(findings, finding))
        }
        News::Kept(program) => keep.as_ref().map_or(Ok(()), |keep| keep.program(program)),
    };
    if let Some(programs) = given {
        session.compare(&programs, &[], &mut report).or_exit(exit::UNABLE)?;
    } else {
        let start = Instant::now();
        session.run_kept().or_exit(exit::UNABLE)?;
        let mut seed = keep.as_ref().and_then(Keep::next_seed).unwrap_or(job.seed);
        let mut left = job.programs.unwrap_or(u64::MAX);
        while left > 0 && start.elapsed().as_secs() < job.seconds && sys::stop_signal::received().is_none() {
            let count = round.min(left);
            session.round(seed..seed + count, job.schedules, &mut report).or_exit(exit::UNABLE)?;
            (seed, left) = (seed + count, left - count);
            if let Some(keep) = &keep {
                keep.set_next_seed(seed)?;
            }
        }
    }
    say(&summary(&session, findings))?;
    Ok(if findings == 0 { exit::FINE } else { exit::FAILED })
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
pub enum DriverWord {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_written_as_it_is_typed() {
        for word in ["embedded", "embedded:broker", "kernel", "kernel:c", "kernel:6.12"] {
            assert_eq!(word.parse::<DriverWord>().map(|driver| driver.to_string()), Ok(word.to_owned()));
        }
        for bad in ["", "kernel:", "binder"] {
            assert!(bad.parse::<DriverWord>().is_err(), "{bad}");
        }
    }
}
