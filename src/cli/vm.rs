//! Room: `binderperf vm` and what a guest runs to be looked at: typed words to `lab::vm::Options`.
//! Not here: the lane itself (`lab::vm`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab::trace::switch::{FOLDER_VARIABLE, LOG_VARIABLE};
use lab::vm::{Accel, CLASS_VARIABLE, Options, Sinks, VmError, kernel::Choice};

use super::choice;
use super::progress::StatusLine;
use super::{A_YEAR_S, exit, note, say};

/// Variables that reach the guest's command: ours, the settings of the tools that we stand in for,
/// and Rust's own.
const PASSED_ON: [&str; 3] = ["BINDERPERF_", "BENCHMARK_", "RUST_"];

/// The class is the guest's own, and a recording of this machine is none of the guest.
const NOT_OURS_THERE: [&str; 3] = [CLASS_VARIABLE, FOLDER_VARIABLE, LOG_VARIABLE];

/// Boot a real kernel with this binary as its first process, and run a command there
#[derive(Clone, Debug, Args)]
pub(crate) struct VmArgs {
    /// bzImage, Debian kernel package (.deb, may be repeated), or a name to fetch with apt: 6.1, 6.12, 7.2, rt
    #[arg(help_heading = "Kernel", long, value_name = "X")]
    kernel: Vec<String>,

    /// Folder with the modules of a bzImage [default: lib/modules/RELEASE near it]
    #[arg(help_heading = "Kernel", long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    modules: Option<PathBuf>,

    /// Look for a newer kernel of that name than the cached one
    #[arg(help_heading = "Kernel", long)]
    refresh: bool,

    /// Guest CPUs [default: this machine's, at most 4]
    #[arg(help_heading = "Guest", long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=255))]
    smp: Option<u32>,

    /// Guest memory in MiB
    #[arg(help_heading = "Guest", long, value_name = "M", default_value_t = 1024, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(128..))]
    memory: u32,

    /// Words added to the guest kernel's command line
    #[arg(help_heading = "Guest", long, value_name = "WORDS", allow_hyphen_values = true)]
    append: Vec<String>,

    /// Longest time in seconds that the command may take, and that the boot before it may take
    #[arg(long, value_name = "S", default_value_t = 600, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    timeout: u64,

    /// Count guest instructions instead of time: one CPU, 1 ns of the guest's clock is one instruction
    #[arg(help_heading = "Guest", long)]
    icount: bool,

    /// KVM, emulation, or KVM where it works
    #[arg(help_heading = "Guest", long, value_name = "WHICH", default_value = "auto", value_parser = choice::of([Accel::Auto, Accel::Kvm, Accel::Tcg]))]
    accel: Accel,

    /// Bring the files that the command leaves in its working folder back into DIR
    #[arg(help_heading = "Output", long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,

    /// Keep the guest's whole kernel log in FILE
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    klog: Option<PathBuf>,

    /// Run another statically linked program instead of binderperf; all words after FILE are its own
    #[arg(long, value_name = "FILE [ARGS]", num_args = 1.., allow_hyphen_values = true, conflicts_with = "command")]
    exec: Vec<String>,

    /// The binderperf command to run in the guest
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "exec")]
    command: Vec<String>,
}

/// Looks around in a guest: release, devices, clock, as JSON; and does what a test of the lane needs
#[derive(Clone, Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Say this on standard error too
    #[arg(long, value_name = "TEXT")]
    stderr: Option<String>,

    /// Leave a file of this text in the working folder
    #[arg(long, value_name = "NAME=TEXT")]
    file: Vec<String>,

    /// Sleep before the end
    #[arg(long, value_name = "S", default_value_t = 0)]
    sleep: u64,

    /// Have the guest's kernel panic
    #[arg(long)]
    panic: bool,

    /// Exit with this code
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    exit: u8,
}

/// Runs a command in a guest. The result is the exit status: the command's own, or 2, 3, 4 with the
/// reason on standard error.
pub(crate) fn run(args: VmArgs) -> u8 {
    let options = match options(args) {
        Ok(options) => options,
        Err(why) => {
            super::complain(why);
            return exit::UNABLE;
        }
    };
    let mut status_line = StatusLine::new();
    let outcome = lab::vm::run(
        &options,
        &mut Sinks {
            stdout: &mut std::io::stdout().lock(),
            stderr: &mut std::io::stderr(),
            progress: &mut |text| status_line.show(text),
        },
    );
    status_line.show("");
    match outcome {
        Ok(outcome) => outcome.status.exit_code(),
        Err(error) => complain(&error),
    }
}

fn complain(error: &VmError) -> u8 {
    // A reader that has gone, as `head` does, had enough.
    if error.is_reader_gone() {
        return exit::FINE;
    }
    super::complain(error);
    error.exit_code()
}

fn options(args: VmArgs) -> Result<Options, String> {
    let binary = std::env::current_exe().map_err(|error| format!("finding this binary: {error}"))?;
    let mut words = args.exec.into_iter();
    let exec = words.next().map(PathBuf::from);
    let mut command: Vec<String> = words.chain(args.command).collect();
    // `--exec FILE -- ARGS` and `--exec FILE ARGS` (a cargo runner) mean the same.
    if exec.is_some() && command.first().is_some_and(|word| word == "--") {
        command.remove(0);
    }
    Ok(Options {
        kernel: Choice { given: args.kernel, modules: args.modules, refresh: args.refresh },
        exec,
        env: passed_on(),
        smp: args.smp,
        memory_mib: args.memory,
        append: args.append,
        timeout: Duration::from_secs(args.timeout),
        icount: args.icount,
        accel: args.accel,
        out: args.out,
        klog: args.klog,
        ..Options::new(binary, command)
    })
}

/// The part of the environment that goes into the guest.
fn passed_on() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            !NOT_OURS_THERE.contains(&name.as_str())
                && PASSED_ON.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect()
}

/// Runs `guest-probe`; the result is the exit status.
pub(crate) fn probe(args: &ProbeArgs) -> u8 {
    match try_probe(args) {
        Ok(()) => args.exit,
        Err(why) => {
            super::complain(why);
            exit::UNABLE
        }
    }
}

fn try_probe(args: &ProbeArgs) -> Result<(), String> {
    say(&format!("{}\n", lab::vm::guest::probe::look().to_json()));
    if let Some(text) = &args.stderr {
        note(format_args!("{text}\n"));
    }
    for file in &args.file {
        let (name, text) =
            file.split_once('=').ok_or_else(|| format!("--file {file}: it must be NAME=TEXT"))?;
        std::fs::write(name, text).map_err(|error| format!("writing {name}: {error}"))?;
    }
    std::thread::sleep(Duration::from_secs(args.sleep));
    if args.panic {
        lab::vm::guest::probe::panic_the_kernel().map_err(|error| error.to_string())?;
    }
    Ok(())
}
