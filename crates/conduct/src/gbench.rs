//! A throughput test in Google Benchmark's way: rows as they are measured, its exit statuses.
//! Not here: its flags (`bench::plan::gbench`), what a row looks like (`record::formats::gbench`).

mod report;

use std::path::PathBuf;

use bench::constraints::Wanted;
use bench::placing::Sides;
use bench::plan::gbench::Flags;
use bench::plan::{Gate, Plan};
use bench::run::RunError;
use console::{complain, exit, note, say, status_of};
use record::Run;
use record::formats::gbench::Format;

use crate::measure::Outputs;
use report::Report;

/// How a call of the test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All is as it should be.
    Fine,
    /// No case has such a name.
    NothingMatched,
    /// A case failed.
    CaseFailed,
    /// A case costs more than a limit.
    GateFailed,
    /// A signal ended it early.
    Stopped,
    /// This machine cannot run it.
    Unable,
    /// An output could not be written.
    Unwritten,
    /// It failed itself.
    Broken,
}

impl End {
    /// The exit status.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => exit::FINE,
            Self::NothingMatched => exit::USAGE,
            Self::CaseFailed | Self::GateFailed | Self::Stopped => exit::FAILED,
            Self::Unable => exit::UNABLE,
            Self::Unwritten | Self::Broken => exit::INTERNAL,
        }
    }

    /// Google Benchmark's exit status: neither a failed case nor an empty filter is a failure.
    pub fn compatible_code(self) -> u8 {
        match self {
            Self::Fine | Self::NothingMatched | Self::CaseFailed => exit::FINE,
            Self::Unwritten | Self::Broken | Self::GateFailed | Self::Stopped => exit::FAILED,
            Self::Unable => exit::UNABLE,
        }
    }
}

/// A call of a test.
#[derive(Debug)]
pub struct Call {
    /// Google Benchmark's flags.
    pub flags: Flags,
    /// The cases and how they are measured.
    pub plan: Plan,
    /// Limits of the costs.
    pub gates: Vec<Gate>,
    /// Constraints of the test.
    pub constraints: Wanted,
    /// File of the record.
    pub record: Option<PathBuf>,
    /// Whether a bad output ends it before it begins, as Google Benchmark does.
    pub is_compatible: bool,
    /// Whether progress is reported for another copy of this program.
    pub for_a_copy: bool,
}

impl Call {
    /// Lists the cases.
    pub fn list(&self) -> End {
        let names: Vec<String> = self.plan.cases().into_iter().map(|planned| planned.case.name).collect();
        if names.is_empty() {
            return nothing_matched(&RunError::nothing_to_run(&self.plan));
        }
        answer(&report::list(&names, self.flags.format))
    }

    /// Measures. `enter` moves this process to the chosen CPUs and gives those of both sides, if any were chosen.
    pub fn measure(&self, enter: impl FnOnce() -> Result<Option<Sides>, String>) -> End {
        let mut outputs = Outputs::open(self.flags.out.as_deref(), self.record.as_deref());
        // Reported now, as it may be a typing error, and again at the end: the run is worth its
        // result on the standard output. Google Benchmark does not begin.
        if outputs.have_failed() && self.is_compatible {
            return End::Unwritten;
        }
        if !self.flags.perf_counters.is_empty() {
            note("Performance counters not supported.\n");
        }
        let sides = match enter() {
            Ok(sides) => sides,
            Err(why) => {
                complain(why);
                return End::Unable;
            }
        };
        let mut report = Report::new(self, &mut outputs);
        let plan = Plan { sides, ..self.plan.clone() };
        let run = match self.constraints.held(|| bench::run::execute(&plan, &mut report)) {
            Ok(run) => run,
            Err(error @ RunError::NothingToRun { .. }) => return nothing_matched(&error),
            Err(error @ (RunError::NoDriver(_) | RunError::Unready(_))) => {
                complain(error);
                return End::Unable;
            }
            Err(error) => {
                complain(error);
                return End::Broken;
            }
        };
        report.finish(&run);
        if let Some(memory) = run.constraints.as_ref().and_then(|held| held.memory.as_ref()) {
            note(format_args!("{}\n", memory.line()));
        }
        if !outputs.are_wanted() {
            return End::Fine;
        }
        outputs.keep(&run);
        let end = self.verdict(&run);
        if outputs.have_failed() { End::Unwritten } else { end }
    }

    fn verdict(&self, run: &Run) -> End {
        let mut end = if run.any_failed() { End::CaseFailed } else { End::Fine };
        for verdict in self.gates.iter().flat_map(|gate| gate.judge(run)) {
            note(format_args!("{verdict}\n"));
            if !verdict.is_kept() {
                end = End::GateFailed;
            }
        }
        if let Some(reason) = &run.incomplete_reason {
            complain(format_args!("{reason}; what was measured until then is kept"));
            end = End::Stopped;
        }
        end
    }
}

/// Writes an answer instead of a result.
pub fn answer(text: &str) -> End {
    if status_of(say(text)) == exit::FINE { End::Fine } else { End::Unwritten }
}

fn nothing_matched(error: &RunError) -> End {
    // Google Benchmark's exact words, which harnesses look for.
    note(format_args!("{error}\n"));
    End::NothingMatched
}

/// Whether Google Benchmark prints its context for a format.
fn has_context(format: Format) -> bool {
    format != Format::Json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn google_benchmark_calls_less_a_failure() {
        for (end, own, compatible) in [
            (End::Fine, exit::FINE, exit::FINE),
            (End::NothingMatched, exit::USAGE, exit::FINE),
            (End::CaseFailed, exit::FAILED, exit::FINE),
            (End::GateFailed, exit::FAILED, exit::FAILED),
            (End::Unable, exit::UNABLE, exit::UNABLE),
            (End::Unwritten, exit::INTERNAL, exit::FAILED),
        ] {
            assert_eq!((end.code(), end.compatible_code()), (own, compatible), "{end:?}");
        }
    }
}
