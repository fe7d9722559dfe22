//! Jobs for LAVA: a guest under LAVA's QEMU, whose console a monitor reads, and a test definition for boards and phones.
//! Not here: what runs in the job (`case`), its signals (`record::formats::convert`), its log
//! (`record::lava`).
//! Facts: LAVA 2023.01, `lava_common/schemas` (what a job and a definition may have), `lava_dispatcher/actions/test`
//! (`monitor.py`, `shell.py`), `UrlRepoAction` (a definition from a tarball), device type `qemu.jinja2`. A JSON string is
//! a YAML string.

pub mod case;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use record::HostClass;
use record::lava::PATTERN;
use serde::Serialize;
use store::StoreError;
use sys::draft::{self, Draft};
use vm::kernel::Choice;
use vm::{Arch, Options};

use case::{BEGINS, ENDS};

use crate::FleetError;
use crate::program_files::{architecture, write};

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A guest that LAVA boots.
    Qemu,
    /// A board that LAVA reaches by ssh.
    Ssh,
    /// A phone that LAVA flashes by fastboot and reaches by adb.
    Fastboot,
}

impl Device {
    /// Its word, and LAVA's usual name of such a device type.
    fn word(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Ssh => "ssh",
            Self::Fastboot => "fastboot",
        }
    }
}

/// A job that is to be written.
#[derive(Clone, Debug)]
pub struct Job {
    /// Folder for the job, which is created if missing.
    pub out: PathBuf,
    /// Kind of device.
    pub device: Device,
    /// LAVA's name of the device type; else the kind.
    pub device_type: Option<String>,
    /// URL at which LAVA's dispatcher finds the folder; else the folder on its own machine.
    pub url: Option<String>,
    /// This program.
    pub program: PathBuf,
    /// It for the devices, one for each architecture; none for this one.
    pub binaries: Vec<PathBuf>,
    /// Time limit of the command in minutes.
    pub minutes: u32,
    /// Kernel of a guest, as `vm --kernel` takes it.
    pub kernel: Vec<String>,
    /// Architecture of a guest.
    pub arch: Option<Arch>,
    /// CPUs of a guest.
    pub smp: u32,
    /// Memory of a guest in MiB.
    pub memory: u32,
    /// Whether the lab's QEMU devices have KVM.
    pub kvm: bool,
    /// Images that fastboot flashes before, as PARTITION=URL.
    pub images: Vec<String>,
    /// Container image with adb and fastboot.
    pub docker: Option<String>,
    /// Names by which the program acts as another tool.
    pub names: Vec<String>,
    /// The command whose results are wanted.
    pub words: Vec<String>,
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

impl Job {
    /// Writes the job and the files that it needs; returns the job's path.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn write(&self, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, FleetError> {
        self.check()?;
        fs::create_dir_all(&self.out).map_err(|error| StoreError::unwritten("make", &self.out, error))?;
        let url = self.url()?;
        let case = [&["fleet", "lava-case", "--"].map(str::to_owned)[..], &self.words].concat();
        let template = match self.device {
            Device::Qemu => include_str!("lava/qemu.yaml"),
            Device::Ssh => include_str!("lava/ssh.yaml"),
            Device::Fastboot => include_str!("lava/fastboot.yaml"),
        };
        let kind = self.device.word().to_owned();
        let line = case.iter().map(|word| remote::quoted(word)).collect::<Vec<_>>().join(" ");
        let values = Values {
            name: quoted(
                &format!("binderperf {}", self.words.join(" ")).chars().take(200).collect::<String>(),
            ),
            device_type: quoted(self.device_type.as_ref().unwrap_or(&kind)),
            minutes: self.minutes,
            more_minutes: self.minutes + 15,
            tarball: quoted(&format!("{url}/{TARBALL}")),
            line: quoted(&format!("./binderperf-$(uname -m | sed 's/^armv.*/armv7/') {line}")),
            docker: quoted(self.docker.as_deref().unwrap_or_default()),
            images: self.images.iter().filter_map(|image| image.split_once('=')).map(pair).collect(),
            guest: if self.device == Device::Qemu { Some(self.guest(case, &url, progress)?) } else { None },
            start: quoted(BEGINS),
            end: quoted(ENDS),
            pattern: quoted(PATTERN),
        };
        if self.device != Device::Qemu {
            self.tests(&values)?;
        }
        let job = self.out.join("job.yaml");
        let text = page::render(template, &values).map_err(template_error)? + "\n";
        write(&self.out, &job, |path| draft::write(path, &text))?;
        Ok(job)
    }

    /// Checks options that go with one kind of device.
    fn check(&self) -> Result<(), FleetError> {
        let bad = |why: &str| Err(FleetError::Unusable(why.to_owned()));
        let for_qemu = !self.kernel.is_empty() || self.arch.is_some() || self.kvm;
        let for_fastboot = !self.images.is_empty() || self.docker.is_some();
        match self.device {
            Device::Qemu if self.binaries.len() > 1 => bad("a guest has one --binary"),
            Device::Qemu | Device::Ssh if for_fastboot => {
                bad("--image and --docker go with --device fastboot")
            }
            Device::Ssh | Device::Fastboot if for_qemu => {
                bad("--kernel, --arch and --kvm go with --device qemu")
            }
            Device::Fastboot if self.images.is_empty() || self.docker.is_none() => bad(
                "--device fastboot needs --image PARTITION=URL, which LAVA flashes, and --docker IMAGE, which has adb and fastboot",
            ),
            _ => {
                match self.images.iter().find(|image| {
                    image.split_once('=').is_none_or(|(name, url)| name.is_empty() || url.is_empty())
                }) {
                    Some(image) => bad(&format!("--image {image}: it must be PARTITION=URL")),
                    None => Ok(()),
                }
            }
        }
    }

    /// The URL of the folder, without a slash at its end.
    fn url(&self) -> Result<String, StoreError> {
        if let Some(url) = &self.url {
            return Ok(url.trim_end_matches('/').to_owned());
        }
        let full =
            fs::canonicalize(&self.out).map_err(|error| StoreError::unwritten("find", &self.out, error))?;
        Ok(format!("file://{}", full.display()))
    }

    /// Writes the guest.
    fn guest(
        &self,
        case: Vec<String>,
        url: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Guest, FleetError> {
        let options = Options {
            kernel: Choice { given: self.kernel.clone(), arch: self.arch, ..Choice::default() },
            init: self.binaries.first().cloned(),
            names: self.names.clone(),
            ..Options::new(self.program.clone(), case)
        };
        let class = if self.kvm { HostClass::Kvm } else { HostClass::Tcg };
        let guest = vm::export(&options, class, &self.out, progress).map_err(FleetError::Guest)?;
        let mut extra = vec![quoted(&format!("-smp {}", self.smp))];
        // LAVA's device type has these for arm64 only.
        let models = match guest.arch {
            Arch::Arm => Some((quoted(guest.machine), quoted(guest.cpu))),
            Arch::X86 => None,
        };
        if models.is_none() && !self.kvm {
            extra.push(quoted(&format!("-cpu {}", guest.cpu)));
        }
        Ok(Guest {
            arch: quoted(guest.debian_arch),
            memory: self.memory,
            no_kvm: !self.kvm,
            models,
            extra,
            kernel: quoted(&format!("{url}/{}", guest.kernel)),
            kernel_arg: quoted(&format!("-kernel {{kernel}} --append \"{}\"", guest.cmdline)),
            ramdisk: quoted(&format!("{url}/{}", guest.initramfs)),
        })
    }

    /// Writes the definition and the programs, and packs both.
    fn tests(&self, values: &Values) -> Result<(), FleetError> {
        let own = || vec![self.program.clone()];
        let programs = if self.binaries.is_empty() { own() } else { self.binaries.clone() };
        let folder = self.out.join(TESTS);
        let text = page::render(include_str!("lava/definition.yaml"), values).map_err(template_error)? + "\n";
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
        pack(&folder, &names, &self.out.join(TARBALL))
    }
}

/// Packs files of a folder.
fn pack(folder: &Path, names: &[String], tarball: &Path) -> Result<(), FleetError> {
    let unwritten = |error| FleetError::File(StoreError::unwritten("write", tarball, error));
    let draft = Draft::new(tarball).map_err(unwritten)?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).args(["--owner=0", "--group=0", "-cz"]).args(names);
    tar.stdout(draft.file().try_clone().map_err(unwritten)?);
    let ended = tar.output().map_err(FleetError::NoTar)?;
    if ended.status.success() {
        return draft.commit().map_err(unwritten);
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(FleetError::NotPacked(format!("tar could not pack {}: {}", folder.display(), said.trim())))
}

fn template_error(error: page::TemplateError) -> FleetError {
    FleetError::Template(error.to_string())
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn pair((name, url): (&str, &str)) -> (String, String) {
    (quoted(name), quoted(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(device: Device) -> Job {
        Job {
            out: PathBuf::from("jobs"),
            device,
            device_type: None,
            url: Some("http://lab/jobs/".to_owned()),
            program: PathBuf::from("binderperf"),
            binaries: Vec::new(),
            minutes: 30,
            kernel: Vec::new(),
            arch: None,
            smp: 2,
            memory: 1024,
            kvm: false,
            images: Vec::new(),
            docker: None,
            names: Vec::new(),
            words: vec!["run".to_owned()],
        }
    }

    #[test]
    fn options_of_another_kind_of_device_are_refused_before_anything_is_written() {
        let phone = Job { docker: Some("image".to_owned()), ..job(Device::Fastboot) };
        for (job, says) in [
            (Job { kvm: true, ..job(Device::Ssh) }, "--device qemu"),
            (Job { docker: Some("x".to_owned()), ..job(Device::Qemu) }, "--device fastboot"),
            (Job { binaries: vec!["a".into(), "b".into()], ..job(Device::Qemu) }, "one --binary"),
            (phone.clone(), "needs --image"),
            (Job { images: vec!["boot=".to_owned()], ..phone.clone() }, "PARTITION=URL"),
        ] {
            let why = job.write(&mut |_| {}).expect_err("refused").to_string();
            assert!(why.contains(says), "{why}");
        }
        assert!(Job { images: vec!["boot=http://x".to_owned()], ..phone }.check().is_ok());
        assert_eq!(job(Device::Ssh).url().expect("given"), "http://lab/jobs");
    }
}
