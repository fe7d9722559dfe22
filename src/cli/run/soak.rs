//! `run --soak`: turns of tests, each stored at once, until the time is over; then a table and a page with the verdicts.
//! Not here: a turn (`bench::soak`), the verdicts (`record::soak`), the table and the page (`record::render::soak`).

use std::time::{Duration, Instant};

use bench::soak::{Soak, SoakOptions, TurnEnd};
use fleet::guest::run as guest;
use record::render::soak as render;
use record::soak::Turn;
use record::soak::judge::{Drift, judge};
use store::lock::FolderLock;
use store::run::unnamed;
use store::soak::Log;

use super::RunArgs;
use super::fault::{of_soak, of_tests};
use crate::cli::progress::{self, StatusLine};
use crate::cli::{CommandResult, Failure, OrExit, command_line, complain, exit, note, say, status_of, tell};
use conduct::measure::chosen;

/// The load without `--load`.
const USUAL_LOAD: &str = "cpu:1:batch";
/// The page.
const PAGE: &str = "soak.html";

/// Soaks, and shows what came of it.
pub(super) fn run(args: &RunArgs, time: Duration) -> CommandResult {
    let folder = args.out.clone().unwrap_or_else(unnamed);
    let is_new = !folder.exists();
    let _lock = FolderLock::take(&folder, tell)?;
    let mut log = Log::open(&folder)?;
    let ended = match &args.vm {
        _ if is_over(args, time, log.last()) => Ok(()),
        Some(kernels) => {
            let ended = guest::soak(kernels, args.words_there(), time, log.path());
            log = Log::open(&folder)?;
            ended
        }
        None => soak(args, time, &mut log),
    };
    if log.last().is_none() {
        log.remove_if_empty();
        if is_new {
            // Fails on purpose if the folder has contents.
            let _ = std::fs::remove_dir(&folder);
        }
        ended?;
        return Err(Failure::new(exit::UNABLE, "no turn was whole, so there is nothing to judge"));
    }
    let lost = ended.err().map(|failure| status_of(Err(failure)));
    let shown = present(&log, &folder)?;
    Ok(lost.unwrap_or(shown))
}

/// Whether the soak needs no further turn.
fn is_over(args: &RunArgs, time: Duration, last: Option<&Turn>) -> bool {
    last.is_some_and(|turn| {
        turn.soaked_s >= time.as_secs_f64() || args.turns.is_some_and(|turns| turn.turn >= turns)
    })
}

/// Makes turns until the time is over or a signal comes. What a turn found is in the log before the next begins.
fn soak(args: &RunArgs, time: Duration, log: &mut Log) -> Result<(), Failure> {
    let mut line = StatusLine::default();
    line.show("starting the driver, the load and a service");
    let begun = Soak::begin(options(args)?, log.last());
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
    while !is_over(args, time, log.last()) {
        let number = log.last().map_or(1, |turn| turn.turn + 1);
        let soaked = before + start.elapsed().as_secs_f64();
        show(args, &mut line, number, (soaked, time));
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

fn show(args: &RunArgs, line: &mut StatusLine, number: u64, (soaked, time): (f64, Duration)) {
    if args.progress {
        note(progress::line(soaked as usize, time.as_secs() as usize, "soak") + "\n");
    } else {
        line.show(&format!("turn {number}, {soaked:.0} of {} s", time.as_secs()));
    }
}

fn options(args: &RunArgs) -> Result<SoakOptions, Failure> {
    let loads = if args.load.is_empty() {
        vec![USUAL_LOAD.parse().or_exit(exit::INTERNAL)?]
    } else {
        args.load.clone()
    };
    Ok(SoakOptions {
        wanted: args.driver.wanted().or_exit(exit::USAGE)?,
        inherits_as_told: args.driver.inherit().is_some(),
        loads,
        injected: of_tests(&args.inject).collect(),
        faults: of_soak(&args.inject).collect(),
        patience_s: args.patience,
        tiny: args.tiny,
        command_line: command_line(),
    })
}

/// Writes the page and the table; returns the exit status.
fn present(log: &Log, folder: &std::path::Path) -> CommandResult {
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
