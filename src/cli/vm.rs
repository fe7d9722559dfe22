//! The command `vm`, and the hidden `guest-probe` that its tests run in a guest.
//! Not here: the virtual machine (crate `vm`).

mod profile;
mod suite;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use fleet::environment::passed_on;
use fleet::guest::refused;
use intake::{Name, Place};
use store::input;
use store::lock::FolderLock;
use vm::{Accel, Added, Arch, Forward, Options, Sinks, TimeLimit, USUAL_LIMIT, kernel::Choice};

use super::applet;
use super::choice;
use super::kernels::KernelCommand;
use super::program::Program;
use super::progress::StatusLine;
use super::terminal;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, note, say, tell};

/// Longest script that is read, in bytes.
const LONGEST_SCRIPT: u64 = 16 << 20;

/// Boot a real kernel with this binary as its first process, and run a command or a script in it
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct VmArgs {
    #[command(subcommand)]
    about_kernels: Option<KernelCommand>,

    /// Kernel image, Debian kernel package (.deb, may be repeated), a name to fetch with apt (6.1, 6.12-arm64, rt, 16k-arm64), or built:NAME; as run --vm
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

    /// Write to FILE where the instructions of a call go, of each throughput case: a flame graph (.html), folded stacks (.folded), every figure (.json) or tables; the tables go to the standard output, too
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

    /// Run another program instead of binderperf: a statically linked one, or one in the tree of --root; all arguments after FILE are its own
    #[arg(long, value_name = "FILE [ARGS]", num_args = 1.., allow_hyphen_values = true, conflicts_with = "command")]
    exec: Vec<String>,

    /// Run the binderperf commands of FILE (- for stdin) in one boot: one a line, # begins a comment
    ///
    /// Each command is told before it runs, and its status behind it, on stderr. A command that could not do its work
    /// ends the script; a verdict that failed (status 1) does not. The exit status is the first that is not 0.
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
    let profile = args.profile.as_deref().map(profile::Output::open).transpose()?;
    let commands = match &args.script {
        Some(file) => Some(script(file, program)?),
        None => None,
    };
    let out = args.out.clone();
    let options = Options { names: applet::names(), ..options(args).or_exit(exit::UNABLE)? };
    let options = match commands {
        Some(commands) => Options { commands, ..options },
        None => options,
    };
    let _lock = FolderLock::of(out.as_deref(), tell)?;
    let mut status_line = StatusLine::default();
    let mut place = out.map(|root| move |name: &Name| Ok(Place::below(&root, name)));
    let mut boot = |options: &Options, stdout: &mut dyn Write| {
        vm::run(
            options,
            &mut Sinks {
                stdout,
                stderr: &mut terminal::passed_on_error(),
                place: place.as_mut().map(|place| place as _),
                progress: &mut |text| status_line.show(text),
            },
        )
    };
    let mut stdout = terminal::passed_on();
    let outcome = match suite::plan(&options) {
        Some(plan) => match suite::run(&options, plan, &mut stdout, &mut boot) {
            Ok(suite::End::InGuest(outcome)) => Ok(outcome),
            Ok(suite::End::Here(status)) => return Ok(status),
            Err(error) => Err(error),
        },
        None => boot(&options, &mut stdout),
    };
    drop(stdout);
    status_line.show("");
    match outcome {
        Ok(outcome) => {
            let left = refused(&outcome.refused);
            let told = profile.map_or(Ok(()), |output| output.deliver(&outcome.profiles));
            // The command's own failure says more.
            if outcome.status.exit_code() == exit::FINE {
                told.map(|()| left)
            } else {
                Ok(outcome.status.exit_code())
            }
        }
        // A reader that closed the pipe, as `head` does, is no error.
        Err(error) if error.is_reader_gone() => Ok(exit::FINE),
        Err(error) => Err(error.into()),
    }
}

/// Reads a script and checks each command's words, before anything is booted.
fn script(file: &Path, program: &Program) -> Result<Vec<Vec<String>>, Failure> {
    let path = if file == Path::new("-") { Path::new("/dev/stdin") } else { file };
    let text = input::text(path, LONGEST_SCRIPT, tell)
        .map_err(|error| Failure::of_file(exit::USAGE, "read", file, &error))?;
    let bad = |why: String| Failure::new(exit::USAGE, format!("the script {}: {why}", file.display()));
    let commands = vm::script::parse(&text).map_err(bad)?;
    for words in &commands {
        (program.understood)(words).map_err(|why| bad(format!("{}: {why}", words.join(" "))))?;
    }
    Ok(commands)
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
