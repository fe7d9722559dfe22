//! Room: the names of Android's tools under which this program can be called.
//! Facts: the Android page calls the binder throughput test `libbinder_benchmark`; its test harness
//! knows Google Benchmark's flags only, so a call with nothing but those means that tool, too.

use clap::Args;
use lab::plan::gbench;

use super::{complain, exit, say, throughput};

/// Android's binder throughput test.
const LIBBINDER_BENCHMARK: &str = "libbinder_benchmark";

/// Act as the tool of Android's of this name: libbinder_benchmark
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct AppletArgs {
    /// The tool's name, then its flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The applet that a call means by the program's name, or by having Google Benchmark's flags only.
pub(crate) fn meant(program: &str, words: &[String]) -> Option<&'static str> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let only_flags = !words.is_empty() && words.iter().all(|word| gbench::looks_like_one(word));
    (name == LIBBINDER_BENCHMARK || only_flags).then_some(LIBBINDER_BENCHMARK)
}

/// Runs an applet; the first word names it.
pub(crate) fn run(args: AppletArgs) -> u8 {
    let mut words = args.words.into_iter();
    match words.next().as_deref() {
        Some(LIBBINDER_BENCHMARK) => start(LIBBINDER_BENCHMARK, words.collect()),
        Some("--help" | "-h") => say(&format!(
            "Usage: binderperf applet {LIBBINDER_BENCHMARK} [FLAGS]\nIts flags: binderperf applet {LIBBINDER_BENCHMARK} --help\n"
        )),
        other => {
            let found = other.map_or("no name".to_owned(), |name| format!("{name:?}"));
            complain(format_args!("there is one applet, {LIBBINDER_BENCHMARK}; found {found}"));
            exit::USAGE
        }
    }
}

/// Runs this applet with its flags. It has no controls unless asked: a harness expects its names.
pub(crate) fn start(name: &str, words: Vec<String>) -> u8 {
    throughput::binder(name, words, "none")
}
