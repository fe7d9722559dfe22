//! Options that select calls of a trace.
//! Not here: their analysis (`trace::verdict`).

use std::path::Path;

use clap::Args;
use store::StoreError;
use store::traces::answer;
use trace::verdict::{Analysis, AnalysisOptions, By, Filter};

use crate::cli::{choice, tell};

/// Which calls.
#[derive(Clone, Debug, Args)]
pub(super) struct FilterArgs {
    /// Only calls from or to this thread or process; may be repeated
    #[arg(long, value_name = "N")]
    pid: Vec<i32>,

    /// Only calls from or to threads with this in their name, or in that of their process
    #[arg(long, value_name = "TEXT")]
    comm: Option<String>,

    /// Only calls that a test of binderperf marked
    #[arg(long)]
    own: bool,

    /// Only calls with this text in their mark, such as class=fifo or setting=off
    #[arg(long, value_name = "TEXT")]
    mark: Option<String>,

    /// Also calls of binderperf's own inheritance scenes, which sleep on purpose
    #[arg(long)]
    scenes: bool,

    /// Only calls by the first thread of a process, whose waiting a user sees
    #[arg(long)]
    main_thread: bool,
}

impl FilterArgs {
    pub(super) fn filter(&self) -> Filter {
        Filter {
            pids: self.pid.clone(),
            comm: self.comm.clone(),
            own: self.own,
            mark: self.mark.clone(),
            scenes: self.scenes,
            main_thread: self.main_thread,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct AskArgs {
    /// Show every call that took longer than this
    #[arg(long, value_name = "N")]
    deadline_us: Option<u64>,

    /// Show the slowest N calls
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    worst: u32,

    #[command(flatten)]
    filter: FilterArgs,

    /// A table of calls: by calling and called process, by interface, or by method [default: by method, if the trace names any or has many]
    #[arg(long, value_name = "WHAT", value_parser = choice::of(By::ALL))]
    by: Option<By>,
}

impl AskArgs {
    /// Whether any option was given.
    pub(super) fn is_particular(&self) -> bool {
        let AnalysisOptions { deadline_ns, filter, .. } = self.question();
        deadline_ns.is_some() || filter != Filter::default()
    }

    /// Whether no call is left out but those of scenes.
    pub(super) fn selects_all(&self) -> bool {
        self.filter.filter() == Filter { scenes: self.filter.scenes, ..Filter::default() }
    }

    /// Reads a trace to its end and answers, on the way writing a file for Perfetto, if one is asked for.
    pub(super) fn analyse(&self, trace: &Path, perfetto: Option<&Path>) -> Result<Analysis, StoreError> {
        answer(self.question(), trace, perfetto, tell)
    }

    /// The question to the trace.
    pub(super) fn question(&self) -> AnalysisOptions {
        AnalysisOptions {
            deadline_ns: self.deadline_us.map(|us| us.saturating_mul(1000)),
            worst: self.worst as usize,
            filter: self.filter.filter(),
            by: self.by,
        }
    }
}
