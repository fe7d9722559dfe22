//! Tests of single calls, also with the output and the exit statuses of Android's tools.
//! Not here: measuring and judging (`bench::latency`), the outputs (`record::render::latency`).
//! Facts: libhwbinder's `Latency.cpp` and `schd-dbg.cpp`. Both return minus the number of calls without inheritance, of
//! which the system keeps eight bits. Where that number comes from exit statuses of children, it is a multiple of 256.

use std::path::Path;

use bench::constraints::Wanted;
use bench::latency::LatencyOptions;
use bench::latency::verdict::{Expected, Status, judge, remark, trouble};
use bench::run::Observer;
use console::output::Sink;
use console::{CommandResult, exit, note};
use record::Run;
use record::render::latency::aosp::{Tool, aosp, is_broken, not_inherited, stopped};
use record::render::latency::roles;

use crate::measure::measure;
use crate::verdict::{latency_status, print};

/// A test that is asked for.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Its options, or what is wrong with them.
    pub options: Result<LatencyOptions, String>,
    /// Its constraints.
    pub constraints: Wanted,
    /// File of the record.
    pub record: Option<&'a Path>,
    /// Whether each participant is printed with its CPU and priority.
    pub verbose: bool,
}

impl Asked<'_> {
    /// Measures pairs; the exit status is 1 if inheritance is not as expected.
    ///
    /// # Errors
    /// The options are wrong, or it could not be measured.
    pub fn pairs(self, expected: Expected, text: impl FnOnce(&Run) -> String) -> CommandResult {
        self.shown(text, |run| judge(run, expected, &mut print))
    }

    /// Measures pings; the exit status is 1 if a client failed or the first miss ended the test.
    ///
    /// # Errors
    /// Those of [`Self::pairs`].
    pub fn pings(self, text: impl FnOnce(&Run) -> String) -> CommandResult {
        self.shown(text, |run| {
            remark(run, &mut print);
            trouble(run, &mut print)
        })
    }

    fn shown(self, text: impl FnOnce(&Run) -> String, verdict: impl FnOnce(&Run) -> Status) -> CommandResult {
        let verbose = self.verbose;
        let print = |run: &Run| {
            if verbose {
                note(roles(run));
            }
            text(run)
        };
        self.measure(print, |run| latency_status(verdict(run)))
    }

    /// Measures pairs, with the output and the exit status of Android's tool.
    ///
    /// # Errors
    /// Those of [`Self::pairs`].
    pub fn exactly(self, tool: Tool, raw: bool) -> CommandResult {
        let is_traced = self.options.as_ref().is_ok_and(|options| options.trace);
        if is_traced && let Err(switch) = bench::latency::tracing_is_on() {
            let (words, on_stdout, status) = no_trace(tool, &switch);
            if on_stdout {
                Sink::stdout().deliver(&words)?;
            } else {
                note(words);
            }
            return Ok(status);
        }
        let verbose = self.verbose;
        self.measure(
            |run| aosp(run, tool, verbose, raw) + &stop_words(run, tool),
            |run| latency_status(trouble(run, &mut print)).max(exact_status(run, tool)),
        )
    }

    fn measure(self, print: impl FnOnce(&Run) -> String, verdict: impl FnOnce(&Run) -> u8) -> CommandResult {
        let execute = |options: &LatencyOptions, observer: &mut dyn Observer| {
            self.constraints.held(|| bench::latency::execute(options, observer))
        };
        measure(self.options, self.record, execute, print, verdict)
    }
}

/// Says that a word after `-m` means no IPC only if it is `PASSTHROUGH`, as in Android's tools.
pub fn note_mode(word: &str) {
    note(format_args!("-m {word}: as in Android's tool, any word but PASSTHROUGH means BINDERIZE\n"));
}

/// Output of the tool after a miss that stopped the trace, on its standard output.
fn stop_words(run: &Run, tool: Tool) -> String {
    let is_stopped = run.latency().is_some_and(|test| test.stopped_at.is_some());
    if tool == Tool::Hwbinder || !is_stopped {
        return String::new();
    }
    let log = bench::latency::trace_log();
    stopped(&log.map(|log| log.display().to_string()).unwrap_or_default())
}

/// The tool's exit status, on a run without a failure of its own.
fn exact_status(run: &Run, tool: Tool) -> u8 {
    if is_broken(run) {
        return exit::FAILED;
    }
    if run.latency().is_none_or(|test| test.realtime.is_none()) {
        return exit::UNABLE;
    }
    match tool {
        Tool::Hwbinder => (not_inherited(run) as u8).wrapping_neg(),
        Tool::Hwbinder8 | Tool::Binder => exit::FINE,
    }
}

/// Words and exit status of a test whose miss would stop a trace that is not running; on the standard output if the
/// flag is true.
fn no_trace(tool: Tool, switch: &Path) -> (String, bool, u8) {
    let words = format!("trace is not running\ncheck {}\nuse atrace --async_start first\n", switch.display());
    match tool {
        Tool::Hwbinder => (words, false, 1),
        // exit(-1)
        Tool::Hwbinder8 | Tool::Binder => (words, true, 255),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_trace_each_tool_has_its_own_end() {
        let of = |tool| {
            let (words, on_stdout, status) = no_trace(tool, Path::new("/x"));
            assert!(words.contains("check /x\n"), "{words}");
            (on_stdout, status)
        };
        assert_eq!(of(Tool::Hwbinder), (false, 1));
        assert_eq!((of(Tool::Hwbinder8), of(Tool::Binder)), ((true, 255), (true, 255)));
    }
}
