//! A soak: turns of tests, each stored at once, until the time is over; then a table and a page with the verdicts.
//! Not here: a turn (`bench::soak`), the verdicts (`record::soak`), the table and the page (`record::render::soak`), guests (`fleet`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bench::soak::{Soak, SoakOptions, TurnEnd};
use console::progress::{self, StatusLine};
use console::{CommandResult, Failure, OrExit, complain, exit, note, say, status_of, tell};
use record::render::soak as render;
use record::soak::Turn;
use record::soak::judge::{Drift, judge};
use store::lock::FolderLock;
use store::soak::Log;

use crate::measure::chosen;

/// The page.
const PAGE: &str = "soak.html";

/// A soak that is asked for.
#[derive(Clone, Debug)]
pub struct Job {
    /// Folder of the log and the page.
    pub folder: PathBuf,
    /// How long all turns last.
    pub time: Duration,
    /// Number of the last turn.
    pub turns: Option<u64>,
    /// Whether progress is reported for another copy of this program.
    pub for_a_copy: bool,
}

/// Soaks, and shows what came of it.
///
/// # Errors
/// No turn was whole, or the log cannot be written.
pub fn run(job: &Job, options: impl FnOnce() -> Result<SoakOptions, String>) -> CommandResult {
    carried_out(job, |log| soak(job, options, log))
}

/// Has another copy of this program soak, behind the turns of the log with this path, and shows what came of it.
///
/// # Errors
/// Those of [`run`].
pub fn run_elsewhere(job: &Job, soak: impl FnOnce(&Path) -> Result<(), Failure>) -> CommandResult {
    carried_out(job, |log| {
        let ended = soak(log.path());
        *log = Log::open(&job.folder)?;
        ended
    })
}

fn carried_out(job: &Job, soak: impl FnOnce(&mut Log) -> Result<(), Failure>) -> CommandResult {
    let folder = &job.folder;
    let is_new = !folder.exists();
    let _lock = FolderLock::take(folder, tell)?;
    let mut log = Log::open(folder)?;
    let ended = if job.is_over(log.last()) { Ok(()) } else { soak(&mut log) };
    if log.last().is_none() {
        log.remove_if_empty();
        if is_new {
            // Fails on purpose if the folder has contents.
            let _ = std::fs::remove_dir(folder);
        }
        ended?;
        return Err(Failure::new(exit::UNABLE, "no turn was whole, so there is nothing to judge"));
    }
    let lost = ended.err().map(|failure| status_of(Err(failure)));
    let shown = present(&log, folder)?;
    Ok(lost.unwrap_or(shown))
}

impl Job {
    /// Whether no further turn is needed.
    fn is_over(&self, last: Option<&Turn>) -> bool {
        last.is_some_and(|turn| {
            turn.soaked_s >= self.time.as_secs_f64() || self.turns.is_some_and(|turns| turn.turn >= turns)
        })
    }
}

/// Makes turns until the time is over or a signal comes. What a turn found is in the log before the next begins.
fn soak(
    job: &Job,
    options: impl FnOnce() -> Result<SoakOptions, String>,
    log: &mut Log,
) -> Result<(), Failure> {
    let mut line = StatusLine::default();
    line.show("starting the driver, the load and a service");
    let begun = Soak::begin(options().or_exit(exit::USAGE)?, log.last());
    line.show("");
    let mut soak = begun?;
    note(chosen(soak.facts()).unwrap_or_default());
    log.begin(soak.setup())?;
    let (before, stretch) = log.last().map_or((0.0, 1), |turn| (turn.soaked_s, turn.stretch + 1));
    if let Some(turn) = log.last() {
        note(format_args!("Goes on behind turn {} of this soak.\n", turn.turn));
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let start = Instant::now();
    while !job.is_over(log.last()) {
        let number = log.last().map_or(1, |turn| turn.turn + 1);
        let soaked = before + start.elapsed().as_secs_f64();
        show(job, &mut line, number, soaked);
        let began = host::now();
        match soak.turn(number, &mut Silent) {
            Ok(turn) => log.append(Turn {
                turn: number,
                stretch,
                began,
                ended: host::now(),
                boot: boot.trim().to_owned(),
                soaked_s: before + start.elapsed().as_secs_f64(),
                ..turn
            })?,
            Err(TurnEnd::Interrupted) => break,
            Err(TurnEnd::Broken(why)) => {
                line.show("");
                return Err(Failure::new(
                    exit::FAILED,
                    format_args!("turn {number} of the soak broke: {why}"),
                ));
            }
        }
    }
    line.show("");
    if sys::stop_signal::received().is_some() {
        note("Stopped by a signal: the turns until then are kept, and the same command goes on with them.\n");
    }
    Ok(())
}

fn show(job: &Job, line: &mut StatusLine, number: u64, soaked: f64) {
    let all = job.time.as_secs();
    if job.for_a_copy {
        note(progress::line(soaked as usize, all as usize, "soak") + "\n");
    } else {
        line.show(&format!("turn {number}, {soaked:.0} of {all} s"));
    }
}

/// Writes the page and the table; returns the exit status.
fn present(log: &Log, folder: &Path) -> CommandResult {
    let soak = log.read()?;
    let judged = judge(&soak);
    let page = folder.join(PAGE);
    let written = render::html(&soak, &judged)
        .map_err(|why| why.to_string())
        .and_then(|text| sys::draft::write(&page, text).map_err(|why| sys::errno::describe(&why)));
    let said = status_of(say(&render::text(&soak, &judged)));
    if let Err(why) = written {
        complain(format_args!("could not write all of the result to {}: {why}", page.display()));
        return Ok(exit::INTERNAL);
    }
    note(format_args!("A chart of each series: {}\n", page.display()));
    let is_known = |drift: &Drift| !matches!(drift, Drift::CannotTell { .. });
    Ok(match said {
        exit::FINE if soak.has_failures() || judged.iter().any(|series| series.drift.is_bad()) => {
            exit::FAILED
        }
        exit::FINE if !judged.iter().any(|series| is_known(&series.drift)) => exit::UNABLE,
        said => said,
    })
}

/// Observes nothing: a turn is short.
struct Silent;

impl bench::run::Observer for Silent {}
