//! The command `shim`: its options.
//! Not here: running a program on the embedded driver (`serve::shim`).

use std::ffi::OsString;
use std::path::PathBuf;

use bench::plan::Inherit;
use clap::Args;
use serve::shim::{Job, device_rule};

use super::{CommandResult, choice};

/// Run a program that uses /dev/binder on the embedded driver, unmodified
#[derive(Clone, Debug, Args)]
pub(crate) struct ShimArgs {
    /// Priorities that a callee inherits
    #[arg(long, value_name = "MODE", default_value_t, value_parser = choice::of([Inherit::None, Inherit::Nice, Inherit::Rt]))]
    inherit: Inherit,

    /// The directory that the programs share: each of its device names is one context [default: the user's]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    context_dir: Option<PathBuf>,

    /// A path that is a device of a context, too, as /dev/my-binder=binder; may be given several times
    #[arg(long, value_name = "PATH=NAME", value_parser = device_rule)]
    device_path: Vec<String>,

    /// The library to preload [default: libbinderperf.so beside this program, or in ../lib/binderperf]
    #[arg(long, value_name = "FILE", env = "BINDERPERF_PRELOAD", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    library: Option<PathBuf>,

    /// Answer the program's system calls from another process (seccomp user notification): for programs that make them
    /// without the C library; static ones are always run so
    #[arg(long, conflicts_with = "library")]
    supervise: bool,

    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

/// Runs the program.
pub(crate) fn run(args: &ShimArgs) -> CommandResult {
    serve::shim::run(&Job {
        program: args.program.clone(),
        inherit: args.inherit,
        context_dir: args.context_dir.clone(),
        device_paths: args.device_path.clone(),
        library: args.library.clone(),
        supervise: args.supervise,
    })
}
