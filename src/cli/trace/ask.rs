//! Room: which calls of a trace are asked for: words into a question.
//! Not here: its answer (`trace::verdict`).

use std::fs::File;
use std::path::Path;

use clap::Args;
use trace::verdict::{Analysis, Analyst, Filter, Question};

use super::perfetto::Export;
use crate::cli::exit;

#[derive(Clone, Debug, Args)]
pub(super) struct AskArgs {
    /// Tell of every call that took longer than this
    #[arg(long, value_name = "N")]
    deadline_us: Option<u64>,

    /// Tell of the slowest N calls
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    worst: u32,

    /// Only calls from or to this thread or process; more than one may be given
    #[arg(long, value_name = "N")]
    pid: Vec<i32>,

    /// Only calls from or to threads with this in their name
    #[arg(long, value_name = "TEXT")]
    comm: Option<String>,

    /// Only calls that a test of binderperf's marked as its own
    #[arg(long)]
    own: bool,

    /// Only calls with this in their mark, such as class=fifo or setting=off
    #[arg(long, value_name = "TEXT")]
    mark: Option<String>,
}

impl AskArgs {
    /// Whether anything in particular is asked for.
    pub(super) fn is_particular(&self) -> bool {
        let Question { deadline_ns, filter, .. } = self.question();
        deadline_ns.is_some() || filter != Filter::default()
    }

    /// Reads a trace to its end and answers, on the way writing a file for Perfetto, if one is asked for. The error
    /// is the exit status and what to say.
    pub(super) fn analyse(&self, trace: &Path, perfetto: Option<&Path>) -> Result<Analysis, (u8, String)> {
        answer(self.question(), trace, perfetto)
    }

    fn question(&self) -> Question {
        Question {
            deadline_ns: self.deadline_us.map(|us| us.saturating_mul(1000)),
            worst: self.worst as usize,
            filter: Filter {
                pids: self.pid.clone(),
                comm: self.comm.clone(),
                own: self.own,
                mark: self.mark.clone(),
            },
        }
    }
}

/// Reads a trace to its end and answers, as [`AskArgs::analyse`].
pub(in crate::cli) fn answer(
    question: Question,
    trace: &Path,
    perfetto: Option<&Path>,
) -> Result<Analysis, (u8, String)> {
    let unreadable = |why: &dyn std::fmt::Display| (exit::USAGE, format!("{}: {why}", trace.display()));
    let file = File::open(trace).map_err(|error| unreadable(&lab::describe_errno(&error)))?;
    let mut export = perfetto.map(|path| Export::check(path, &file)).transpose()?;
    let mut reader = trace::open(file).map_err(|error| unreadable(&error))?;
    if let Some(export) = &mut export {
        export.begin(reader.head())?;
    }
    let mut analyst = Analyst::new(question);
    while let Some(event) = reader.next() {
        match &mut export {
            Some(export) => export.take(&event, &mut analyst, reader.names()),
            None => analyst.take(&event, reader.names()),
        }
    }
    if let Some(export) = export {
        export.finish(&mut analyst, reader.names())?;
    }
    Ok(analyst.finish(reader.names(), reader.report()))
}
