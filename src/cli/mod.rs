//! Room: the command line's parts, one per subcommand: typed words in, plans out.

pub(crate) mod applet;
pub(crate) mod conformance;
mod output;
mod progress;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod throughput;
pub(crate) mod vm;

/// Exit codes, the same for every command.
pub(crate) mod exit {
    /// All is well.
    pub(crate) const FINE: u8 = 0;
    /// It ran, and its verdict is a failure.
    pub(crate) const FAILED: u8 = 1;
    /// It was called wrongly, or with input that makes no sense.
    pub(crate) const USAGE: u8 = 2;
    /// The environment cannot run it.
    pub(crate) const UNABLE: u8 = 3;
    /// Something of our own went wrong, such as writing the result.
    pub(crate) const INTERNAL: u8 = 4;
}

/// Says what went wrong, on stderr.
fn complain(what: impl std::fmt::Display) {
    eprintln!("binderperf: {what}");
}
