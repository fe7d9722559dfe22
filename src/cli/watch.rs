//! The command `watch`: stays, and keeps what led to each thing that went wrong.
//! Not here: watching (`live::watch`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use console::failure::in_lines;
use live::action::Action;
use live::here::NoState;
use live::watch::{Observer, WatchOptions, watch};
use live::when::Condition;
use store::lock::FolderLock;

use super::choice;
use super::explain::{FailOn, GRADES};
use super::progress::StatusLine;
use super::state::Whose;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, say, tell};
use units::typed::duration;

/// Watch for days, and keep what led to each thing that goes wrong: the black box
///
/// Keeps the newest events in memory and looks at the driver's files every second. When something is wrong, it writes one folder: the
/// events, the driver's files before and after, the kernel's log, and what `explain` says of all that. A condition is caught when it
/// begins to hold, and again once it has not held.
#[derive(Clone, Debug, Args)]
pub(crate) struct WatchArgs {
    /// Catch when this holds, as in p99>5ms: a figure (p50, p99, longest, oldest, calls, failed, reports, dead,
    /// buffers, backlog, threads), one of > >= < <=, and a limit (5ms, 80%, 100; `pool` for threads); may be repeated
    #[arg(help_heading = "What to catch", long, value_name = "EXPR", value_parser = str::parse::<Condition>)]
    when: Vec<Condition>,

    /// Catch a call that takes longer than this many us
    #[arg(help_heading = "What to catch", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    deadline_us: Option<u64>,

    /// Catch a call without an answer for this many seconds
    #[arg(help_heading = "What to catch", long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    unanswered: Option<u64>,

    /// Catch a new finding of `explain` from this grade on
    #[arg(help_heading = "What to catch", long, value_parser = choice::table(&GRADES), value_name = "GRADE", default_value = "bad")]
    finding: FailOn,

    /// Action after a catch, in the given order: trace (turn tracing off in the buffer that all share), snapshot (the
    /// machine's files, as of doctor --save; always first, as a part of the catch), signal PID or PID:SIG, exec CMD
    /// (with BINDERPERF_CATCH and BINDERPERF_TRIGGER), stop or continue; may be repeated
    #[arg(help_heading = "Then", long, value_name = "ACTION", value_parser = str::parse::<Action>)]
    then: Vec<Action>,

    /// Most catches of an hour, and half of them of one kind; further ones are counted
    #[arg(help_heading = "Then", long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=3600))]
    most: u32,

    /// Folder for the catches
    #[arg(help_heading = "Where", long, value_name = "DIR", default_value = "binderperf-watch", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,

    /// Delete the oldest catches when all have more than this many MB; the newest stays
    #[arg(help_heading = "Where", long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    keep_mb: u64,

    /// End after this time, such as 90s, 30m or 8h [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    lasting: Option<Duration>,

    #[command(flatten, next_help_heading = "Which driver")]
    whose: Whose,
}

/// Watches.
pub(crate) fn run(args: &WatchArgs) -> CommandResult {
    let _lock = FolderLock::take(&args.out, tell)?;
    sys::stop_signal::catch().or_exit(exit::INTERNAL)?;
    sys::stop_signal::catch_hangup().or_exit(exit::INTERNAL)?;
    let sum = watch(args.options()?, &mut Reporter(StatusLine::default()))?;
    Ok(if sum.caught > 0 || sum.unsaved > 0 { exit::FAILED } else { exit::FINE })
}

impl WatchArgs {
    fn options(&self) -> Result<WatchOptions, Failure> {
        Ok(WatchOptions {
            when: self.when.clone(),
            deadline_us: self.deadline_us,
            unanswered_s: self.unanswered,
            finding: self.finding,
            then: self.then.clone(),
            most: self.most,
            out: self.out.clone(),
            keep_bytes: self.keep_mb << 20,
            lasting: self.lasting,
            source: self.whose.source()?,
        })
    }
}

/// Shows what happens on the terminal.
struct Reporter(StatusLine);

impl Observer for Reporter {
    fn remark(&mut self, remark: &str) {
        tell(remark);
    }

    fn waits(&mut self, why: &NoState) {
        tell(&format!("waiting for a driver to look at: {}", in_lines(why)));
    }

    fn status(&mut self, text: &str) {
        self.0.show(text);
    }

    fn caught(&mut self, what: &str, folder: &Path) -> Result<(), String> {
        let said = say(&format!("caught {what}: {}\n", folder.display()));
        said.map(drop).map_err(|failure| failure.to_string())
    }
}
