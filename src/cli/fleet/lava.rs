//! Jobs for LAVA: a guest under LAVA's QEMU, whose console a monitor reads, and a test definition for boards and phones.
//! Not here: what runs in the job (`super::lava_case`), its signals (`record::formats::convert`), its log
//! (`record::lava`).
//! Facts: LAVA 2023.01, `lava_common/schemas` (what a job and a definition may have), `lava_dispatcher/actions/test`
//! (`monitor.py`, `shell.py`), `UrlRepoAction` (a definition from a tarball), device type `qemu.jinja2`. A JSON string is
//! a YAML string.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};
use record::HostClass;
use record::lava::PATTERN;
use serde::Serialize;
use sys::draft::{self, Draft};
use vm::kernel::Choice;
use vm::{Arch, Options};

use super::{architecture, lava_case, write};
use crate::cli::choice;
use crate::cli::program::Program;
use crate::cli::progress::StatusLine;
use crate::cli::{CommandResult, Failure, OrExit, applet, exit, say};

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
    #[arg(long, value_enum, value_name = "KIND", default_value = "qemu")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Device {
    /// A guest that LAVA boots
    Qemu,
    /// A board that LAVA reaches by ssh
    Ssh,
    /// A phone that LAVA flashes by fastboot and reaches by adb
    Fastboot,
}

/// Name of the tarball with the definition.
const TARBALL: &str = "binderperf-tests.tar.gz";
/// Folder with what is in it.
const TESTS: &str = "tests";

/// Values of the templates. Texts are JSON strings, with their quotes.
#[derive(Serialize)]
struct Values {
    name: String,
    device_type: String,
    minutes: u32,
    /// For all else that a job does.
    more_minutes: u32,
    /// URL of the folder's files, without quotes.
    tarball: String,
    /// The command as a shell's line.
    line: String,
    docker: String,
    /// Partitions and URLs.
    images: Vec<(String, String)>,
    guest: Option<Guest>,
    start: String,
    end: String,
    pattern: String,
}

/// A guest's values.
#[derive(Serialize)]
struct Guest {
    arch: String,
    memory: u32,
    no_kvm: bool,
    /// QEMU's machine and CPU models, where LAVA's device type has others by itself.
    models: Option<(String, String)>,
    extra: Vec<String>,
    kernel: String,
    kernel_arg: String,
    ramdisk: String,
}

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
    check(args)?;
    fs::create_dir_all(&args.out)
        .map_err(|error| Failure::of_file(exit::INTERNAL, "make", &args.out, &error))?;
    let url = url(args)?;
    let case = [&["fleet", "lava-case", "--"].map(str::to_owned)[..], &words].concat();
    let template = match args.device {
        Device::Qemu => include_str!("lava/qemu.yaml"),
        Device::Ssh => include_str!("lava/ssh.yaml"),
        Device::Fastboot => include_str!("lava/fastboot.yaml"),
    };
    let kind = args.device.to_possible_value().map_or(String::new(), |kind| kind.get_name().to_owned());
    let line = case.iter().map(|word| remote::quoted(word)).collect::<Vec<_>>().join(" ");
    let values = Values {
        name: quoted(&format!("binderperf {}", words.join(" ")).chars().take(200).collect::<String>()),
        device_type: quoted(args.device_type.as_ref().unwrap_or(&kind)),
        minutes: args.minutes,
        more_minutes: args.minutes + 15,
        tarball: quoted(&format!("{url}/{TARBALL}")),
        line: quoted(&format!("./binderperf-$(uname -m | sed 's/^armv.*/armv7/') {line}")),
        docker: quoted(args.docker.as_deref().unwrap_or_default()),
        images: args.image.iter().filter_map(|image| image.split_once('=')).map(pair).collect(),
        guest: if args.device == Device::Qemu { Some(guest(args, case, &url)?) } else { None },
        start: quoted(lava_case::BEGINS),
        end: quoted(lava_case::ENDS),
        pattern: quoted(PATTERN),
    };
    if args.device != Device::Qemu {
        tests(args, &values)?;
    }
    let job = args.out.join("job.yaml");
    let text = page::render(template, &values).or_exit(exit::INTERNAL)? + "\n";
    write(&args.out, &job, |path| draft::write(path, &text))?;
    say(&format!("{}\n", job.display()))
}

/// Checks options that go with one kind of device.
fn check(args: &LavaArgs) -> Result<(), Failure> {
    let bad = |why: &str| Err(Failure::new(exit::USAGE, why));
    let for_qemu = !args.kernel.is_empty() || args.arch.is_some() || args.kvm;
    let for_fastboot = !args.image.is_empty() || args.docker.is_some();
    match args.device {
        Device::Qemu if args.binary.len() > 1 => bad("a guest has one --binary"),
        Device::Qemu | Device::Ssh if for_fastboot => bad("--image and --docker go with --device fastboot"),
        Device::Ssh | Device::Fastboot if for_qemu => bad("--kernel, --arch and --kvm go with --device qemu"),
        Device::Fastboot if args.image.is_empty() || args.docker.is_none() => bad(
            "--device fastboot needs --image PARTITION=URL, which LAVA flashes, and --docker IMAGE, which has adb and fastboot",
        ),
        _ => {
            match args.image.iter().find(|image| {
                image.split_once('=').is_none_or(|(name, url)| name.is_empty() || url.is_empty())
            }) {
                Some(image) => bad(&format!("--image {image}: it must be PARTITION=URL")),
                None => Ok(()),
            }
        }
    }
}

/// The URL of the folder, without a slash at its end.
fn url(args: &LavaArgs) -> Result<String, Failure> {
    if let Some(url) = &args.url {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let full = fs::canonicalize(&args.out)
        .map_err(|error| Failure::of_file(exit::INTERNAL, "find", &args.out, &error))?;
    Ok(format!("file://{}", full.display()))
}

/// Writes the guest.
fn guest(args: &LavaArgs, case: Vec<String>, url: &str) -> Result<Guest, Failure> {
    let program = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let options = Options {
        kernel: Choice { given: args.kernel.clone(), arch: args.arch, ..Choice::default() },
        init: args.binary.first().cloned(),
        names: applet::names(),
        ..Options::new(program, case)
    };
    let class = if args.kvm { HostClass::Kvm } else { HostClass::Tcg };
    let mut status_line = StatusLine::new();
    let written = vm::export(&options, class, &args.out, &mut |text| status_line.show(text));
    status_line.show("");
    let guest = written.map_err(|error| Failure::new(error.exit_code(), error))?;
    let mut extra = vec![quoted(&format!("-smp {}", args.smp))];
    // LAVA's device type has these for arm64 only.
    let models = match guest.arch {
        Arch::Arm => Some((quoted(guest.machine), quoted(guest.cpu))),
        Arch::X86 => None,
    };
    if models.is_none() && !args.kvm {
        extra.push(quoted(&format!("-cpu {}", guest.cpu)));
    }
    Ok(Guest {
        arch: quoted(guest.debian_arch),
        memory: args.memory,
        no_kvm: !args.kvm,
        models,
        extra,
        kernel: quoted(&format!("{url}/{}", guest.kernel)),
        kernel_arg: quoted(&format!("-kernel {{kernel}} --append \"{}\"", guest.cmdline)),
        ramdisk: quoted(&format!("{url}/{}", guest.initramfs)),
    })
}

/// Writes the definition and the programs, and packs both.
fn tests(args: &LavaArgs, values: &Values) -> Result<(), Failure> {
    let own = || std::env::current_exe().map(|program| vec![program]).or_exit(exit::INTERNAL);
    let programs = if args.binary.is_empty() { own()? } else { args.binary.clone() };
    let folder = args.out.join(TESTS);
    let text = page::render(include_str!("lava/definition.yaml"), values).or_exit(exit::INTERNAL)? + "\n";
    write(&folder, &folder.join("binderperf.yaml"), |path| draft::write(path, &text))?;
    let mut names = vec!["binderperf.yaml".to_owned()];
    for program in &programs {
        // The names by which --on looks for the program, and `uname -m` as the definition writes it.
        let name = match architecture(program)? {
            "arm64" => "binderperf-aarch64",
            "arm" => "binderperf-armv7",
            "x86" => "binderperf-i686",
            _ => "binderperf-x86_64",
        };
        write(&folder, &folder.join(name), |path| draft::copy(program, path).map(drop))?;
        names.push(name.to_owned());
    }
    pack(&folder, &names, &args.out.join(TARBALL))
}

/// Packs files of a folder.
fn pack(folder: &Path, names: &[String], tarball: &Path) -> Result<(), Failure> {
    let unwritten = |error: std::io::Error| Failure::of_file(exit::INTERNAL, "write", tarball, &error);
    let draft = Draft::new(tarball).map_err(unwritten)?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).args(["--owner=0", "--group=0", "-cz"]).args(names);
    tar.stdout(draft.file().try_clone().map_err(unwritten)?);
    let ended = tar.output().map_err(|error| {
        Failure::new(
            exit::UNABLE,
            format_args!("the program tar, which packs the test: {}", sys::errno::describe(&error)),
        )
    })?;
    if ended.status.success() {
        return draft.commit().map_err(unwritten);
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(Failure::new(
        exit::INTERNAL,
        format_args!("tar could not pack {}: {}", folder.display(), said.trim()),
    ))
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn pair((name, url): (&str, &str)) -> (String, String) {
    (quoted(name), quoted(url))
}
