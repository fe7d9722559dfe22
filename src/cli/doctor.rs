//! The command `doctor`: reports what on a machine affects measurements.
//! Not here: the probes (`doctor`), how a checkup is shown (`record::render::checkup`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use doctor::{self, Facts, Snapshot, klog};
use record::checkup::{Checkup, Verdict};
use record::render::checkup::text;

use super::folder::FolderLock;
use super::{CommandResult, Failure, OrExit, complain, exit, note, say};

/// Report what on this machine affects measurements, and what to do about it
///
/// Examines the kernel's configuration, the binder driver and its users, scheduler, CPUs, other load,
/// temperature, memory and rights; measures wake-up latency, the cost of the clock and the time taken by a
/// hypervisor. Serious findings come first.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Examine a snapshot of another machine instead: the archive that the script of --collect printed, a folder made
    /// by --save, or one of files copied by hand
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath, conflicts_with_all = ["save", "klog_check"])]
    from: Option<PathBuf>,

    /// Also copy everything that was examined into this empty or new folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    save: Option<PathBuf>,

    /// Print a shell script that collects a machine's files without binderperf there: pipe it to `adb shell sh` or
    /// `ssh HOST sh`, whose output is an archive for --from
    #[arg(long, exclusive = true)]
    collect: bool,

    /// Show everything: passed and undecidable checks, evidence, and commands that show it
    #[arg(long)]
    all: bool,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Exit with 1 for warnings, too
    #[arg(long)]
    strict: bool,

    /// Exit with 1 if the kernel or its binder driver logged a problem during the examination
    #[arg(long)]
    klog_check: bool,

    /// Skip the measurements
    #[arg(long)]
    no_measure: bool,
}

/// Output formats of a checkup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text
    Text,
    /// JSON
    Json,
}

/// Examines the machine or a snapshot.
pub(crate) fn run(args: &DoctorArgs) -> CommandResult {
    if args.collect {
        return say(&doctor::script());
    }
    match &args.from {
        Some(folder) => shown(args, &doctor::examine(&Snapshot::open(folder).or_exit(exit::USAGE)?)),
        None => here(args),
    }
}

/// Examines this machine, watching the kernel's log if requested.
fn here(args: &DoctorArgs) -> CommandResult {
    let watch = args.klog_check.then(klog::Watch::begin).transpose().or_exit(exit::UNABLE)?;
    let mut facts = doctor::gather(true);
    if !args.no_measure {
        facts = Facts { measured: doctor::measure(), ..facts };
    }
    let snapshot = Snapshot::live(facts);
    let checkup = doctor::examine(&snapshot);
    let account = watch.map(klog::Watch::end).transpose().or_exit(exit::UNABLE)?;
    if let Some(folder) = &args.save {
        let _lock = FolderLock::take(folder)?;
        let count = doctor::save(&snapshot, folder).map_err(|why| match why {
            doctor::SaveError::NotEmpty(_) => Failure::new(exit::USAGE, why),
            _ => Failure::new(exit::INTERNAL, why),
        })?;
        note(format_args!("{count} files in {}\n", folder.display()));
    }
    let shown = shown(args, &checkup);
    let Some(account) = account.filter(|account| !account.is_clean()) else { return shown };
    complain(format_args!("the kernel complained meanwhile:\n{account}"));
    Ok(shown?.max(exit::FAILED))
}

/// Prints the checkup; returns the exit status.
fn shown(args: &DoctorArgs, checkup: &Checkup) -> CommandResult {
    say(&match args.format {
        Format::Text => text(checkup, args.all),
        Format::Json => checkup.to_json(),
    })?;
    let worst = if args.strict { Verdict::Warning } else { Verdict::Error };
    Ok(if checkup.worst() >= worst { exit::FAILED } else { exit::FINE })
}
