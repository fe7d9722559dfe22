//! The command `vm`, and the hidden `guest-probe` that its tests run in a guest.
//! Not here: the virtual machine (crate `vm`), what runs in it (`fleet::guest`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser};
use fleet::environment::passed_on;
use fleet::guest::suite::Plan;
use fleet::guest::{self, script};
use store::input;
use vm::{Accel, Added, Arch, Forward, Options, TimeLimit, USUAL_LIMIT, kernel::Choice};

use super::applet;
use super::choice;
use super::conformance::ConformanceArgs;
use super::kernels::KernelCommand;
use super::program::Program;
use super::{A_YEAR_S, CommandResult, OrExit, exit, note, say};

/// Boot a real kernel with this binary as its first process, and run a command or a script in it
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct VmArgs {
    #[command(subcommand)]
    about_kernels: Option<KernelCommand>,

    /// Kernel image, Debian kernel package (.deb, may be repeated), a name to fetch with apt (6.1, 6.12-arm64, rt,
    /// 16k-arm64), or built:NAME; as run --vm
    #[arg(help_heading = "Kernel", long, value_name = "X")]
    kernel: Vec<String>,

    /// Guest CPUs' architecture [default: the kernel's; of a name without one this machine's]
    #[arg(help_heading = "Kernel", long, value_name = "ARCH", value_parser = choice::of(Arch::ALL))]
    arch: Option<Arch>,

    /// Folder with the modules of a kernel image [default: lib/modules/RELEASE near it]
    #[arg(help_heading = "Kernel", long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    modules: Option<PathBuf>,

    /// Module of the driver in place of the kernel's own, as vm build-driver makes it for that kernel
    #[arg(help_heading = "Kernel", long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    driver_module: Option<PathBuf>,

    /// Check for a newer kernel of that name than the cached one
    #[arg(help_heading = "Kernel", long)]
    refresh: bool,

    /// Guest CPUs [default: this machine's, at most 4]
    #[arg(help_heading = "Guest", long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=255))]
    smp: Option<u32>,

    /// Guest memory in MiB
    #[arg(help_heading = "Guest", long, value_name = "M", default_value_t = 1024, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(128..))]
    memory: u32,

    /// Copy a file or folder into the guest, to PATH [default: /NAME]; may be repeated
    #[arg(help_heading = "Guest", long, value_name = "FILE[:PATH]", value_parser = Added::parse)]
    add: Vec<Added>,

    /// A file tree that is the guest's root, with its dynamic programs: a folder, or a tar archive. --exec then names a program in it
    #[arg(help_heading = "Guest", long, value_name = "DIR|TAR", value_hint = clap::ValueHint::AnyPath)]
    root: Option<PathBuf>,

    /// Lead a port of this machine's loopback interface to a port of the guest; may be repeated
    #[arg(help_heading = "Guest", long, value_name = "HOSTPORT:GUESTPORT", value_parser = Forward::parse)]
    forward: Vec<Forward>,

    /// Text added to the guest kernel's command line
    #[arg(help_heading = "Guest", long, value_name = "WORDS", allow_hyphen_values = true)]
    append: Vec<String>,

    /// Time limit of the command or the script in seconds, and of the boot before it [default: 600, and more on a busy machine]
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    timeout: Option<u64>,

    /// Count guest instructions instead of time: one CPU; 1 ns of the guest's clock is one instruction
    #[arg(help_heading = "Guest", long)]
    icount: bool,

    /// Write to FILE where the instructions of a call go, of each throughput case: a flame graph (.html), folded stacks
    /// (.folded), every figure (.json) or tables; the tables go to the standard output, too
    #[arg(help_heading = "Output", long, value_name = "FILE", requires = "icount", value_hint = clap::ValueHint::FilePath)]
    profile: Option<PathBuf>,

    /// KVM, emulation, or auto: KVM if it works
    #[arg(help_heading = "Guest", long, value_name = "WHICH", default_value = "auto", value_parser = choice::of([Accel::Auto, Accel::Kvm, Accel::Tcg]))]
    accel: Accel,

    /// Copy the files that the command leaves in its working folder to DIR
    #[arg(help_heading = "Output", long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,

    /// Write the guest's whole kernel log to FILE
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    klog: Option<PathBuf>,

    /// This program for the guest's architecture [default: for another than this machine's, binderperf-ARCH beside it, or cargo's build]
    #[arg(help_heading = "Guest", long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    binary: Option<PathBuf>,

    /// Run another program instead of binderperf: a statically linked one, or one in the tree of --root; all arguments
    /// after FILE are its own
    #[arg(long, value_name = "FILE [ARGS]", num_args = 1.., allow_hyphen_values = true, conflicts_with = "command")]
    exec: Vec<String>,

    /// Run the binderperf commands of FILE (- for stdin) in one boot: one a line, # begins a comment
    ///
    /// Prints each command to stderr before it runs, and its status after. A command that could not do its work ends
    /// the script; a verdict that failed (status 1) does not. The exit status is the first that is not 0.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["command", "exec"])]
    script: Option<PathBuf>,

    /// Run a script to its end, whatever fails
    #[arg(long, requires = "script", conflicts_with_all = ["command", "exec"])]
    keep_going: bool,

    /// The binderperf command to run in the guest
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["exec", "script"])]
    command: Vec<String>,
}

/// Print release, devices and clock of a guest as JSON, and misbehave as a test asks
#[derive(Clone, Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Also write this to standard error
    #[arg(long, value_name = "TEXT")]
    stderr: Option<String>,

    /// Write a file with this text into the working folder
    #[arg(long, value_name = "NAME=TEXT")]
    file: Vec<String>,

    /// Sleep before exiting
    #[arg(long, value_name = "S", default_value_t = 0)]
    sleep: u64,

    /// Make the guest's kernel panic
    #[arg(long)]
    panic: bool,

    /// Exit with this code
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    exit: u8,
}

/// Runs a command in a guest; returns its exit status, or 2, 3, 4 with the reason on standard error.
pub(crate) fn run(args: VmArgs, program: &Program) -> CommandResult {
    if let Some(command) = args.about_kernels {
        return command.run();
    }
    let kernels = args.kernel.iter().map(Path::new);
    kernels
        .chain(args.binary.as_deref())
        .chain(args.driver_module.as_deref())
        .chain(args.exec.first().map(Path::new))
        .try_for_each(input::whole)?;
    let commands = args.script.as_deref().map(|file| script(file, program.understood)).transpose()?;
    let (out, profile) = (args.out.clone(), args.profile.clone());
    let options = Options { names: applet::names(), ..options(args).or_exit(exit::UNABLE)? };
    let options = Options { commands: commands.unwrap_or(options.commands), ..options };
    let suite = suite(&options);
    guest::run(guest::Job { options, out, profile, suite })
}

/// Words of the suite, parsed as in the guest.
#[derive(Debug, Parser)]
struct Suite {
    #[command(flatten)]
    args: ConformanceArgs,
}

/// The suite that a guest's only command runs.
fn suite(options: &Options) -> Option<Plan> {
    let [words] = &options.commands[..] else { return None };
    let is_suite = options.exec.is_none() && words.first().is_some_and(|word| word == "conformance");
    let args = Suite::try_parse_from(words).ok().filter(|_| is_suite)?.args;
    let plan = Plan { items: args.items(), stops_at_failure: args.stops_at_failure() };
    (!args.is_list()).then_some(plan)
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
        init: args.binary,
        kernel: Choice {
            given: args.kernel,
            arch: args.arch,
            modules: args.modules,
            driver: args.driver_module,
            refresh: args.refresh,
        },
        exec,
        keep_going: args.keep_going,
        env: passed_on(),
        // Instructions are counted on one.
        smp: if args.icount { Some(1) } else { args.smp },
        memory_mib: args.memory,
        append: args.append,
        root: args.root,
        added: args.add,
        forward: args.forward,
        limit: args.timeout.map_or(USUAL_LIMIT, |seconds| TimeLimit::Exact(Duration::from_secs(seconds))),
        icount: args.icount,
        profile: args.profile.is_some(),
        accel: args.accel,
        klog: args.klog,
        ..Options::new(binary, command)
    })
}

/// Runs `guest-probe`.
pub(crate) fn probe(args: &ProbeArgs) -> CommandResult {
    say(&format!("{}\n", vm::guest::probe::look().to_json()))?;
    if let Some(text) = &args.stderr {
        note(format_args!("{text}\n"));
    }
    for file in &args.file {
        let strange = || format!("--file {file}: it must be NAME=TEXT");
        let (name, text) = file.split_once('=').ok_or_else(strange).or_exit(exit::UNABLE)?;
        sys::draft::write(Path::new(name), text).or_exit(exit::UNABLE)?;
    }
    std::thread::sleep(Duration::from_secs(args.sleep));
    if args.panic {
        vm::guest::probe::panic_the_kernel().or_exit(exit::UNABLE)?;
    }
    Ok(args.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_of_the_suite_is_followed() {
        let plan = |line: &str| {
            let words = line.split(' ').map(str::to_owned).collect();
            suite(&Options::new(PathBuf::from("binderperf"), words))
        };
        assert_eq!(plan("conformance --filter WR-01").expect("the suite").items.len(), 1);
        for words in ["chaos", "conformance --list", "conformance --no-such"] {
            assert!(plan(words).is_none(), "{words}");
        }
    }
}
