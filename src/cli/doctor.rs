//! Room: `binderperf doctor`: what on a machine affects the numbers.
//! Not here: the probes (`lab::doctor`), how a checkup is shown (`record::render::checkup`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::doctor::{self, Facts, Snapshot, klog};
use record::checkup::{Checkup, Verdict};
use record::render::checkup::text;

use super::{complain, exit, note, say};

/// Say what on this machine affects the numbers, and what to do about it
///
/// Looks at how the kernel was built and runs, the binder driver and who uses it, scheduler, CPUs, other work,
/// temperature, memory and rights; measures how late sleepers are woken, what the clock costs and what a
/// hypervisor takes. Serious findings come first.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Look at a snapshot of another machine instead: a folder made by --save, or of files copied by hand
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with_all = ["save", "klog_check"])]
    from: Option<PathBuf>,

    /// Also copy everything that was looked at into this empty or new folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    save: Option<PathBuf>,

    /// Show everything: what is fine, what could not be told, evidence, and commands that show it
    #[arg(long)]
    all: bool,

    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Exit 1 for warnings, too
    #[arg(long)]
    strict: bool,

    /// Exit 1 if the kernel warned, or the binder driver complained, while this looked and measured
    #[arg(long)]
    klog_check: bool,

    /// Do not measure anything
    #[arg(long)]
    no_measure: bool,
}

/// Forms of a checkup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// The document
    Json,
}

/// Looks; the result is the exit status.
pub(crate) fn run(args: &DoctorArgs) -> u8 {
    match &args.from {
        Some(folder) => match Snapshot::open(folder) {
            Ok(snapshot) => shown(args, &doctor::examine(&snapshot)),
            Err(why) => {
                complain(why);
                exit::USAGE
            }
        },
        None => here(args),
    }
}

/// Looks at this machine, while the kernel's log is watched if that was asked for.
fn here(args: &DoctorArgs) -> u8 {
    let watch = match args.klog_check.then(klog::Watch::begin).transpose() {
        Ok(watch) => watch,
        Err(why) => {
            complain(why);
            return exit::UNABLE;
        }
    };
    let mut facts = doctor::gather(true);
    if !args.no_measure {
        facts = Facts { measured: doctor::measure(), ..facts };
    }
    let snapshot = Snapshot::live(facts);
    let checkup = doctor::examine(&snapshot);
    let account = match watch.map(klog::Watch::end).transpose() {
        Ok(account) => account,
        Err(why) => {
            complain(why);
            return exit::UNABLE;
        }
    };
    if let Some(folder) = &args.save {
        match doctor::save(&snapshot, folder) {
            Ok(count) => note(format_args!("{count} files in {}\n", folder.display())),
            Err(why) => {
                complain(&why);
                return match why {
                    doctor::SaveError::NotEmpty(_) => exit::USAGE,
                    _ => exit::INTERNAL,
                };
            }
        }
    }
    let status = shown(args, &checkup);
    match account.filter(|account| !account.is_clean()) {
        Some(account) => {
            complain(format_args!("the kernel complained meanwhile:\n{account}"));
            status.max(exit::FAILED)
        }
        None => status,
    }
}

/// Shows it, and judges.
fn shown(args: &DoctorArgs, checkup: &Checkup) -> u8 {
    let status = say(&match args.format {
        Format::Text => text(checkup, args.all),
        Format::Json => checkup.to_json(),
    });
    let worst = if args.strict { Verdict::Warning } else { Verdict::Error };
    match status {
        exit::FINE if checkup.worst() >= worst => exit::FAILED,
        status => status,
    }
}
