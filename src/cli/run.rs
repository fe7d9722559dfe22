//! Room: `run`: everything that matters after one another, a summary on one screen, a report in a folder; on
//! this machine's driver, on the embedded one, or in a guest.
//! Not here: which tests those are (`lab::suite`), what a report says (`record::render::report`), the guest
//! (`lab::vm`).

mod guest;
mod keep;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab::doctor::{self, klog};
use lab::suite::{self, Ask, Depth, Ended, Part, Watcher};
use record::checkup::Checkup;
use record::render::report::{Grade, Trouble, verdicts};
use record::{DriverKind, Run};

use super::driver::{DriverArgs, chosen};
use super::progress::{self, StatusLine};
use super::{complain, exit, note, say};
use keep::Folder;

/// Measure everything that matters: binder and hwbinder, throughput and latency, slow calls with their causes; with a report
///
/// On this machine's driver, else on the embedded one. Ctrl-C keeps what was measured until then. The summary is on
/// stdout; the folder holds a record of each test, what the doctor found, a recording of slow calls, and report.html.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Under a minute, for a first look
    #[arg(long)]
    quick: bool,

    /// Several repetitions and long tests, for results to compare with
    #[arg(long, conflicts_with = "quick")]
    thorough: bool,

    /// Folder for records, recordings and the report [default: binderperf-run-TIME]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,

    /// Fail if the kernel warned, or its binder driver complained, meanwhile
    #[arg(long)]
    klog_check: bool,

    /// Leave out the recording of slow calls
    #[arg(long)]
    no_trace: bool,

    /// On the driver of a real kernel, in a VM: bzImage, .deb, or a name such as 6.12
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = HERE)]
    vm: Option<String>,

    /// Say on stderr how far it is, for another copy of this program
    #[arg(long, hide = true)]
    progress: bool,

    #[command(flatten)]
    driver: DriverArgs,
}

/// Flags about the driver of this machine.
const HERE: [&str; 6] = ["driver", "device", "context_dir", "inherit", "wait", "lanes"];

/// The way to a kernel's driver that always works.
const IN_A_VM: &str = "binderperf run --vm measures the driver of a real kernel, in a VM.\n";

/// Runs it.
pub(crate) fn run(args: &RunArgs) -> u8 {
    let mut folder = match Folder::make(args.out.clone()) {
        Ok(folder) => folder,
        Err((status, why)) => {
            complain(why);
            return status;
        }
    };
    let measured = match &args.vm {
        Some(kernel) => guest::run(args, kernel, &mut folder),
        None => here(args, &mut folder),
    };
    match measured {
        Ok(()) => present(&mut folder),
        Err(code) => {
            folder.remove_if_empty();
            code
        }
    }
}

impl RunArgs {
    fn depth(&self) -> Depth {
        match (self.quick, self.thorough) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Thorough,
            _ => Depth::Usual,
        }
    }
}

/// On this machine: its own driver or the embedded one.
fn here(args: &RunArgs, folder: &mut Folder) -> Result<(), u8> {
    let wanted = args.driver.wanted().map_err(|why| {
        complain(why);
        exit::USAGE
    })?;
    let ask = Ask {
        depth: args.depth(),
        wanted,
        inherits_as_told: args.driver.inherit().is_some(),
        recording: (!args.no_trace).then(|| folder.recording()),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    let watch = args.klog_check.then(klog::Watch::begin).transpose().map_err(|why| {
        complain(why);
        exit::UNABLE
    })?;
    let mut line = StatusLine::new();
    line.show("looking at the machine");
    let checkup = Some(doctor::examine_here());
    let mut teller = Teller { line, for_a_copy: args.progress, folder, checkup };
    let ended = suite::execute(&ask, &mut teller);
    teller.line.show("");
    if !matches!(ended, Ended::NoDriver(_)) {
        watch.into_iter().for_each(|watch| folder.keep_complaints(watch.end()));
    }
    match ended {
        Ended::Whole => Ok(()),
        Ended::Interrupted => {
            note("Stopped by a signal: what was measured until then is kept.\n");
            Ok(())
        }
        Ended::NoDriver(error) => {
            complain(error);
            note(IN_A_VM);
            Err(exit::UNABLE)
        }
    }
}

/// Tells how far it is, and keeps each result as soon as there is one.
struct Teller<'f> {
    line: StatusLine,
    for_a_copy: bool,
    folder: &'f mut Folder,
    /// What the doctor found before the first test; kept once there is one.
    checkup: Option<Checkup>,
}

impl Watcher for Teller<'_> {
    fn begins(&mut self, run: &Run) {
        if let Some(checkup) = self.checkup.take() {
            self.folder.keep_checkup(checkup);
        }
        self.line.show("");
        note(chosen(run).unwrap_or_default());
        let by_itself = run.driver.as_ref().filter(|driver| driver.choice == "auto");
        if by_itself.is_some_and(|driver| driver.kind == DriverKind::Embedded) {
            note(IN_A_VM);
        }
    }

    fn advanced(&mut self, part: Part, done: u64, all: u64, left: Duration) {
        let (name, seconds) = (part.name(), left.as_secs());
        if self.for_a_copy {
            note(progress::line(done as usize, all as usize, name) + "\n");
        } else {
            self.line.show(&format!("{name} {done}/{all}, about {seconds} s left"));
        }
    }

    fn kept(&mut self, part: Part, run: Run) {
        self.folder.keep(part.name(), run);
    }

    fn missing(&mut self, part: Part, why: String) {
        let trouble = match part {
            // No result needs it.
            Part::Recorded(_) => Trouble::not_here(part.name(), why),
            Part::Throughput | Part::Latency(_) => Trouble::not_run(part.name(), why),
        };
        self.folder.bundle.troubles.push(trouble);
    }
}

/// The report, the summary, and what they come to.
fn present(folder: &mut Folder) -> u8 {
    folder.explain();
    let report = folder.report();
    let printed = say(&folder.summary(report.as_deref()));
    let troubles = folder.troubles();
    troubles.iter().for_each(complain);
    let bad = verdicts(&folder.bundle).iter().any(|line| line.grade == Grade::Bad);
    if !troubles.is_empty() || printed != exit::FINE {
        exit::INTERNAL
    } else if folder.bundle.runs.is_empty() {
        exit::UNABLE
    } else if bad {
        exit::FAILED
    } else {
        exit::FINE
    }
}
