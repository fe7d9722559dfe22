//! The command `fleet lava`: its options.
//! Not here: the job and its files (`fleet::lava`), what runs in the job (`super::lava_case`).

use std::path::PathBuf;

use clap::Args;
use fleet::lava::{Device, Job};
use vm::Arch;

use super::lava_case;
use crate::cli::choice::{self, Table};
use crate::cli::program::Program;
use crate::cli::progress::StatusLine;
use crate::cli::{CommandResult, OrExit, applet, exit, say};

/// Write a job for LAVA, and the files that it needs
///
/// DIR gets job.yaml and, for QEMU, a guest whose first process is this program, for boards and phones a test definition
/// with this program in a tarball. The results are LAVA's test cases and measurements; the records are in the job's log,
/// where convert --from lava-log finds them.
#[derive(Debug, Args)]
pub(super) struct LavaArgs {
    /// Folder for the job, which is created if missing
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,

    /// Kind of device
    #[arg(long, value_parser = choice::table(&DEVICES), value_name = "KIND", default_value = "qemu")]
    device: Device,

    /// LAVA's name of the device type [default: the kind]
    #[arg(long, value_name = "NAME")]
    device_type: Option<String>,

    /// URL at which LAVA's dispatcher finds DIR [default: DIR as a file on its own machine]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// This program for the devices; may be repeated, one for each architecture [default: this program]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    binary: Vec<PathBuf>,

    /// Time limit of the command in minutes
    #[arg(long, value_name = "M", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: u32,

    /// Kernel image, package or name, as vm --kernel
    #[arg(help_heading = "QEMU", long, value_name = "X")]
    kernel: Vec<String>,

    /// Guest CPUs' architecture, as vm --arch
    #[arg(help_heading = "QEMU", long, value_name = "ARCH", value_parser = choice::of(Arch::ALL))]
    arch: Option<Arch>,

    /// Guest CPUs
    #[arg(help_heading = "QEMU", long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=255))]
    smp: u32,

    /// Guest memory in MiB
    #[arg(help_heading = "QEMU", long, value_name = "M", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(128..))]
    memory: u32,

    /// The lab's QEMU devices have KVM
    #[arg(help_heading = "QEMU", long)]
    kvm: bool,

    /// Image that fastboot flashes before, as boot=URL; may be repeated
    #[arg(help_heading = "fastboot", long, value_name = "PARTITION=URL")]
    image: Vec<String>,

    /// Container image with adb and fastboot, in which LAVA runs both and this program
    #[arg(help_heading = "fastboot", long, value_name = "IMAGE")]
    docker: Option<String>,

    /// The command whose results are wanted [default: run --quick]
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<String>,
}

/// Kinds of devices.
const DEVICES: Table<Device, 3> = [
    (Device::Qemu, "qemu", "A guest that LAVA boots"),
    (Device::Ssh, "ssh", "A board that LAVA reaches by ssh"),
    (Device::Fastboot, "fastboot", "A phone that LAVA flashes by fastboot and reaches by adb"),
];

/// Writes the job.
pub(super) fn run(args: &LavaArgs, program: &Program) -> CommandResult {
    let mut words = args.command.clone();
    if words.is_empty() {
        words.extend(["run", "--quick"].map(str::to_owned));
    }
    if args.device == Device::Fastboot {
        words.extend(["--on", "adb"].map(str::to_owned));
    }
    (program.understood)(&words).or_exit(exit::USAGE)?;
    lava_case::check(&words, program)?;
    let job = Job {
        out: args.out.clone(),
        device: args.device,
        device_type: args.device_type.clone(),
        url: args.url.clone(),
        program: std::env::current_exe().or_exit(exit::INTERNAL)?,
        binaries: args.binary.clone(),
        minutes: args.minutes,
        kernel: args.kernel.clone(),
        arch: args.arch,
        smp: args.smp,
        memory: args.memory,
        kvm: args.kvm,
        images: args.image.clone(),
        docker: args.docker.clone(),
        names: applet::names(),
        words,
    };
    let mut line = StatusLine::default();
    let written = job.write(&mut |text| line.show(text));
    line.show("");
    say(&format!("{}\n", written?.display()))
}
