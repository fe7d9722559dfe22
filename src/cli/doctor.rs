//! The command `doctor`: reports what on a machine affects measurements.
//! Not here: the probes (`doctor`), how a checkup is shown (`record::render::checkup`).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use doctor::{self, Facts, Snapshot};
use host::klog;
use record::checkup::{Checkup, Verdict};
use record::render::{self, checkup::text};
use store::input;
use store::lock::FolderLock;

use super::{CommandResult, Failure, OrExit, complain, exit, note, say, tell};

/// Report what this machine allows and what on it affects measurements, and what to do about it
///
/// Tries what the tests need, and says first which of them can run. Then it examines the kernel's configuration, the
/// binder driver and its users, scheduler, CPUs, other load, temperature, memory and rights; measures wake-up latency,
/// the cost of the clock and the time taken by a hypervisor. Serious findings come first.
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

    /// Tell only what this machine allows, which tests can run, and what to run in place of the others
    #[arg(long, conflicts_with_all = ["save", "klog_check", "strict", "all"])]
    allows: bool,

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

    /// Skip the measurements and the trials
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
    if args.allows {
        return allowed(args);
    }
    match &args.from {
        Some(folder) => {
            let snapshot = opened(folder)?;
            shown(args, &snapshot, &doctor::examine(&snapshot))
        }
        None => here(args),
    }
}

/// Opens a snapshot.
fn opened(place: &Path) -> Result<Snapshot, Failure> {
    let _notice = input::Notice::of(place, tell);
    Snapshot::open(place).or_exit(exit::USAGE)
}

/// Tells what a machine allows, or a snapshot with what was tried there.
fn allowed(args: &DoctorArgs) -> CommandResult {
    let snapshot = match &args.from {
        Some(folder) => opened(folder)?,
        None => {
            let tried = Some(bench::permission::try_all());
            let measured = doctor::measure();
            Snapshot::live(Facts { measured, tried, ..doctor::gather(false) })
        }
    };
    let permissions = doctor::allows(&snapshot);
    say(&match args.format {
        Format::Text => render::permissions::text(&permissions),
        Format::Json => permissions.to_json(),
    })
}

/// Examines this machine, watching the kernel's log if requested.
fn here(args: &DoctorArgs) -> CommandResult {
    // Before anything is measured, which a private driver of the trials would be part of; and before the kernel's log is
    // watched, which a driver writes to when a context that is tried has no manager.
    let tried = (!args.no_measure).then(bench::permission::try_all);
    let watch = args.klog_check.then(klog::Watch::begin).transpose().or_exit(exit::UNABLE)?;
    let mut facts = Facts { tried, ..doctor::gather(true) };
    if !args.no_measure {
        facts.measured = doctor::measure();
    }
    let snapshot = Snapshot::live(facts);
    let checkup = doctor::examine(&snapshot);
    let account = watch.map(klog::Watch::end).transpose().or_exit(exit::UNABLE)?;
    if let Some(folder) = &args.save {
        let _lock = FolderLock::take(folder, tell)?;
        let count = doctor::save(&snapshot, folder).map_err(|why| match why {
            doctor::SaveError::NotEmpty(_) => Failure::new(exit::USAGE, why),
            _ => Failure::new(exit::INTERNAL, why),
        })?;
        note(format_args!("{count} files in {}\n", folder.display()));
    }
    let shown = shown(args, &snapshot, &checkup);
    let Some(account) = account.filter(|account| !account.is_clean()) else { return shown };
    complain(format_args!("the kernel complained meanwhile:\n{account}"));
    Ok(shown?.max(exit::FAILED))
}

/// Prints what the machine allows, if that was tried, and the checkup; returns the exit status.
fn shown(args: &DoctorArgs, snapshot: &Snapshot, checkup: &Checkup) -> CommandResult {
    let tried = snapshot.facts().tried.is_some();
    say(&match args.format {
        Format::Text if tried => {
            render::permissions::text(&doctor::allows(snapshot)) + "\n" + &text(checkup, args.all)
        }
        Format::Text => text(checkup, args.all),
        Format::Json => checkup.to_json(),
    })?;
    let worst = if args.strict { Verdict::Warning } else { Verdict::Error };
    Ok(if checkup.worst() >= worst { exit::FAILED } else { exit::FINE })
}
