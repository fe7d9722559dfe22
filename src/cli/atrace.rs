//! Android's `atrace`: its flags.
//! Not here: what it does (`conduct::atrace`).

use std::path::PathBuf;

use clap::Parser;
use conduct::atrace::{Job, Mode, list};

use super::{A_YEAR_S, CommandResult, parse};

/// The flags of Android's tool.
#[derive(Debug, Parser)]
#[command(
    disable_version_flag = true,
    about = "Record the kernel's trace events in the buffer that all share, and put everything back; Android's atrace",
    long_about = "Record the kernel's trace events in the buffer that all share, and put everything back; Android's atrace\n\n\
        What was changed is kept in $XDG_RUNTIME_DIR or /tmp until --async_stop has put it back; after a crash, \
        `binderperf trace restore` does."
)]
pub(super) struct Words {
    /// Applications whose sections to record; Android switches them by system properties, which this program ignores
    #[arg(short = 'a', value_name = "APP,...")]
    applications: Option<String>,

    /// Size of each CPU's buffer in KB
    #[arg(short = 'b', value_name = "KB", default_value_t = 2048, allow_negative_numbers = true)]
    buffer_kb: u64,

    /// Keep the newest events when the buffer is full
    #[arg(short = 'c')]
    circular: bool,

    /// Read further categories from a file
    #[arg(short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,

    /// Kernel functions whose calls to record
    #[arg(short = 'k', value_name = "NAME,...", value_delimiter = ',')]
    functions: Vec<String>,

    /// Let signals end the program at once; `binderperf trace restore` then restores the settings
    #[arg(short = 'n')]
    no_signals: bool,

    /// Seconds to wait before recording
    #[arg(short = 's', value_name = "SEC", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=A_YEAR_S))]
    sleep: u64,

    /// Seconds to record
    #[arg(short = 't', value_name = "SEC", default_value_t = 5, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=A_YEAR_S))]
    time: u64,

    /// Compress the output with zlib
    #[arg(help_heading = "Output", short = 'z')]
    compress: bool,

    /// Write to a file instead of the standard output
    #[arg(help_heading = "Output", short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Start recording and return
    #[arg(help_heading = "Mode", long = "async_start", group = "mode")]
    async_start: bool,

    /// Print the recording so far
    #[arg(help_heading = "Mode", long = "async_dump", group = "mode")]
    async_dump: bool,

    /// Stop, print the recording, and restore the settings
    #[arg(help_heading = "Mode", long = "async_stop", group = "mode")]
    async_stop: bool,

    /// Print events as they occur, until a signal
    #[arg(help_heading = "Mode", long, group = "mode")]
    stream: bool,

    /// List the categories that can be recorded here
    #[arg(help_heading = "Mode", long = "list_categories", group = "mode")]
    list_categories: bool,

    /// Do not record the kernel's events
    #[arg(long = "only_userspace")]
    only_userspace: bool,

    /// Categories of events
    categories: Vec<String>,
}

/// Runs the tool.
pub(crate) fn run(name: &str, words: Vec<String>) -> CommandResult {
    let words = parse::<Words>(name, words)?;
    if words.list_categories { list() } else { words.job().run() }
}

impl Words {
    fn job(self) -> Job {
        let mode = match (self.stream, self.async_start, self.async_dump, self.async_stop) {
            (true, ..) => Mode::Stream,
            (_, true, ..) => Mode::Start,
            (_, _, true, _) => Mode::Dump,
            (.., true) => Mode::Stop,
            _ => Mode::Record,
        };
        Job {
            mode,
            categories: self.categories,
            file: self.file,
            applications: self.applications.is_some(),
            functions: self.functions,
            buffer_kb: self.buffer_kb,
            circular: self.circular,
            no_signals: self.no_signals,
            sleep: self.sleep,
            time: self.time,
            compress: self.compress,
            output: self.output,
            only_userspace: self.only_userspace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftrace::categories::known;

    #[test]
    fn androids_flags_are_understood() {
        let words = "x --async_start -b 8000 -c sched idle workq binder_driver sync freq";
        let words = Words::try_parse_from(words.split(' ')).expect("the documented call");
        assert!(words.async_start && words.circular && words.buffer_kb == 8000);
        let (kernel, userspace) = known(&words.categories).expect("known");
        assert_eq!((kernel.len(), userspace.len()), (6, 0));
        let words = "x -z -n -s 1 -t 2 -k a,b -a app -f file -o out --only_userspace view";
        let words = Words::try_parse_from(words.split(' ')).expect("all others");
        assert_eq!((words.sleep, words.time, words.functions.len()), (1, 2, 2));
        assert!(words.compress && words.only_userspace && words.no_signals);
        for bad in
            ["x -b -1", "x -b x", "x -t -1", "x --async_start --async_stop", "x --stream --list_categories"]
        {
            assert!(Words::try_parse_from(bad.split(' ')).is_err(), "{bad}");
        }
    }
}
