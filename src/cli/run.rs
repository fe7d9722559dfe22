//! Room: `run`: the whole test with sensible settings, on this machine's driver, on the embedded one or
//! in a guest, with a table at the end and a record in a file.
//! Not here: single cases and Google Benchmark's flags (`super::throughput`), the guest (`lab::vm`).

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;
use lab::plan::{Controls, Device, Family, MinTime, Plan};
use lab::run::{Observer, RunError};
use lab::vm::{Options, Sinks, kernel::Choice};
use record::render::summary::summary;
use record::{DriverKind, Run};

use super::driver::{DriverArgs, chosen};
use super::output::Sink;
use super::progress::{Listener, StatusLine};
use super::{complain, exit, note};

/// Measure binder and hwbinder throughput beside pipe, socket, futex and spinning: on this machine's driver, else on the embedded one
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// A quarter of the time, for a first look
    #[arg(long)]
    quick: bool,

    /// Folder for the record
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,

    /// On the driver of a real kernel, in a VM: bzImage, .deb, or a name such as 6.12
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = HERE)]
    vm: Option<String>,

    #[command(flatten)]
    driver: DriverArgs,
}

/// Flags about the driver of this machine.
const HERE: [&str; 6] = ["driver", "device", "context_dir", "inherit", "wait", "lanes"];

/// Least time of a case in seconds: with it, all cases take a minute or so in an emulated guest.
const MIN_TIME_S: f64 = 0.2;
const QUICK_MIN_TIME_S: f64 = 0.05;
/// The record's name inside a guest.
const GUEST_RECORD: &str = "record.json";

/// Runs it.
pub(crate) fn run(args: &RunArgs) -> u8 {
    if let Err(error) = std::fs::create_dir_all(&args.out) {
        complain(format_args!("cannot write to {}: {}", args.out.display(), lab::describe_errno(&error)));
        return exit::USAGE;
    }
    let mut line = StatusLine::new();
    let measured = match &args.vm {
        Some(kernel) => in_guest(args, kernel, &mut line),
        None => here(args, &mut line),
    };
    line.show("");
    match measured {
        Ok(run) => present(&run, &args.out),
        Err(code) => code,
    }
}

/// On this machine: its own driver or the embedded one.
fn here(args: &RunArgs, line: &mut StatusLine) -> Result<Run, u8> {
    let wanted = args.driver.wanted().map_err(|why| {
        complain(why);
        exit::USAGE
    })?;
    let plan = Plan {
        test: "throughput all".to_owned(),
        tests: tests(&wanted.device),
        controls: Controls::default_set(),
        min_time: MinTime::Seconds(args.min_time()),
        wanted,
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..Plan::default()
    };
    match lab::run::execute(&plan, &mut OnLine(line)) {
        Ok(run) => Ok(run),
        Err(error) => {
            line.show("");
            complain(&error);
            if !matches!(error, RunError::NoDriver(_)) {
                return Err(exit::INTERNAL);
            }
            note(IN_A_VM);
            Err(exit::UNABLE)
        }
    }
}

/// What is measured: both flavours and no IPC; in a context that was named, what is spoken there.
fn tests(device: &Device) -> Vec<Family> {
    let name = match device {
        Device::Auto | Device::Private => return Family::TESTS.to_vec(),
        Device::Named(name) => name.clone(),
        Device::Path(path) => path.display().to_string(),
    };
    match name.contains("hwbinder") {
        true => vec![Family::Binderize, Family::Passthrough],
        false => vec![Family::Binder],
    }
}

/// The way to a kernel's driver that always works.
const IN_A_VM: &str = "binderperf run --vm measures the driver of a real kernel, in a VM.\n";

struct OnLine<'l>(&'l mut StatusLine);

impl Observer for OnLine<'_> {
    fn begins(&mut self, run: &Run) {
        let Some(driver) = &run.driver else { return };
        note(chosen(run).unwrap_or_default());
        if driver.kind == DriverKind::Embedded && driver.choice == "auto" {
            note(IN_A_VM);
        }
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        self.0.step(done, all, &run.cases[case].name);
    }
}

/// The same in a guest: the same command there, and its record brought back.
fn in_guest(args: &RunArgs, kernel: &str, line: &mut StatusLine) -> Result<Run, u8> {
    // Not in the folder that the user named: when that cannot be written, the table shall still come.
    let folder = std::env::temp_dir().join(format!("binderperf-guest-{}", std::process::id()));
    if let Err(error) = DirBuilder::new().mode(0o700).create(&folder) {
        complain(format_args!("making {}: {}", folder.display(), lab::describe_errno(&error)));
        return Err(exit::INTERNAL);
    }
    let result = boot(args, kernel, &folder, line);
    // What is worth keeping of it was read.
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn boot(args: &RunArgs, kernel: &str, folder: &Path, line: &mut StatusLine) -> Result<Run, u8> {
    let unable = |why: String| {
        complain(why);
        exit::INTERNAL
    };
    let binary = std::env::current_exe().map_err(|error| unable(format!("finding this program: {error}")))?;
    let min_time = format!("--benchmark_min_time={}s", args.min_time());
    let words = ["throughput", "all", "--driver=kernel", "--progress", "--benchmark_format=json", &min_time];
    let record = format!("--record={GUEST_RECORD}");
    let words = words.into_iter().chain([record.as_str()]).map(str::to_owned).collect();
    let given = if kernel.is_empty() { Vec::new() } else { vec![kernel.to_owned()] };
    let options = Options {
        kernel: Choice { given, ..Choice::default() },
        out: Some(folder.to_owned()),
        ..Options::new(binary, words)
    };
    let mut booting = StatusLine::new();
    let mut listener = Listener::new(line);
    let mut sinks = Sinks {
        stdout: &mut std::io::sink(),
        stderr: &mut listener,
        progress: &mut |text| booting.show(text),
    };
    let outcome = lab::vm::run(&options, &mut sinks).map_err(|error| {
        booting.show("");
        complain(&error);
        error.exit_code()
    })?;
    let said = listener.said;
    line.show("");
    let record = folder.join(GUEST_RECORD);
    let run = File::open(&record).map_err(|_| "it left no record".to_owned());
    let run = run.and_then(|file| Run::read(file).map_err(|error| error.to_string()));
    run.map_err(|why| {
        note(said);
        unable(format!("the run in the guest ended with status {}: {why}", outcome.status.exit_code()))
    })
}

impl RunArgs {
    fn min_time(&self) -> f64 {
        if self.quick { QUICK_MIN_TIME_S } else { MIN_TIME_S }
    }
}

/// Stores the record, prints the table, says what next.
fn present(run: &Run, out: &Path) -> u8 {
    let digits: String = run.started.chars().take(19).filter(char::is_ascii_digit).collect();
    let path = out.join(format!("binderperf-{digits}.json"));
    let path = path.strip_prefix(".").map_or(path.clone(), Path::to_path_buf);
    let mut file = Sink::file(&path);
    file.put(&run.to_json());
    let trouble = file.trouble();
    let next = match trouble {
        Some(_) => String::new(),
        None => {
            let path = path.display();
            format!("Record: {path}. Next: binderperf show {path} [--format gbench-json]")
        }
    };
    let mut stdout = Sink::stdout();
    stdout.put(&summary(run, &next));
    let troubles: Vec<String> = trouble.into_iter().chain(stdout.trouble()).collect();
    troubles.iter().for_each(complain);
    if !troubles.is_empty() {
        exit::INTERNAL
    } else if run.any_failed() || !run.complete {
        exit::FAILED
    } else {
        exit::FINE
    }
}
