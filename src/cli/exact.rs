//! Output and exit statuses as those of Android's tools: when they are wanted, and the statuses of their latency tests.
//! Not here: their formats (`record::render`).
//! Facts: libhwbinder's `Latency.cpp` and `schd-dbg.cpp`. Both return minus the number of calls without inheritance, of
//! which the system keeps eight bits. Where that number comes from exit statuses of children, it is a multiple of 256.

use clap::{Args, ValueEnum};
use record::Run;
use record::render::latency::aosp::{Tool, is_broken, not_inherited, stopped};

use super::{exit, note, terminal};

/// The flag of all commands that are also tools of Android's.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ExactArgs {
    /// Print and exit exactly as Android's tool; under Android's name that is the default where the output is no
    /// terminal, unless --format or --expect asks for more
    #[arg(help_heading = "Output", long, value_name = "on|off", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    aosp_compat: Option<Exact>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Exact {
    On,
    Off,
}

impl ExactArgs {
    /// Whether Android's output is wanted. `applet`: called by Android's name. `ours`: a flag whose effect that output
    /// cannot show.
    pub(super) fn is_wanted(self, applet: bool, ours: Option<&str>) -> Result<bool, String> {
        match (self.aosp_compat, ours) {
            (Some(Exact::On), Some(flag)) => {
                Err(format!("{flag} has no effect on Android's output: leave it out, or --aosp-compat"))
            }
            (Some(chosen), _) => Ok(chosen == Exact::On),
            (None, ours) => Ok(applet && ours.is_none() && !terminal::is_terminal()),
        }
    }
}

/// Says that a word after `-m` means no IPC only if it is `PASSTHROUGH`, as in Android's tools.
pub(super) fn note_mode(word: &str) {
    note(format_args!("-m {word}: as in Android's tool, any word but PASSTHROUGH means BINDERIZE\n"));
}

/// Output of the tool after a miss that stopped the trace, on its standard output.
pub(super) fn stop_words(run: &Run, tool: Tool) -> String {
    let is_stopped = run.latency().is_some_and(|test| test.stopped_at.is_some());
    if tool == Tool::Hwbinder || !is_stopped {
        return String::new();
    }
    let log = bench::latency::trace_log();
    stopped(&log.map(|log| log.display().to_string()).unwrap_or_default())
}

/// The tool's exit status, on a run without a failure of its own.
pub(super) fn status(run: &Run, tool: Tool) -> u8 {
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
pub(super) fn no_trace(tool: Tool, switch: &std::path::Path) -> (String, bool, u8) {
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
    fn a_flag_decides_and_else_the_name_and_the_reader() {
        let flag = |aosp_compat| ExactArgs { aosp_compat };
        assert_eq!(flag(Some(Exact::On)).is_wanted(false, None), Ok(true));
        assert_eq!(flag(Some(Exact::Off)).is_wanted(true, None), Ok(false));
        assert!(flag(Some(Exact::On)).is_wanted(true, Some("--format")).is_err());
        assert_eq!(flag(None).is_wanted(true, Some("--format")), Ok(false));
        assert_eq!(flag(None).is_wanted(false, None), Ok(false));
    }
}
