//! Room: the facts about this machine that no file tells and nothing needs to be measured for.
//! Not here: measuring (`measure`), the files (`snapshot`).

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use driver::kernel_state::StateError;
use driver::locate;

use super::facts::{Device, Facts};
use super::probes::users::STATS;
use crate::host;
use crate::state::{self, StateFile, Trouble};

/// Looks around. With `of_kernel` the kernel driver's devices are tried and its account is read; without,
/// they are left alone.
#[must_use]
pub fn gather(of_kernel: bool) -> Facts {
    let mut facts = Facts {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: Some(cfg!(debug_assertions)),
        class: Some(host::class()),
        usable_cpus: Some(sys::sched::usable_cpus()),
        ..Facts::new()
    };
    properties(&mut facts);
    if of_kernel {
        facts.devices = Some(devices());
        facts.features = features();
        stats(&mut facts);
    }
    facts
}

/// Android's properties, where there is somebody to ask.
fn properties(facts: &mut Facts) {
    const PROGRAM: &str = "/system/bin/getprop";
    if !Path::new(PROGRAM).exists() {
        return;
    }
    let output = Command::new(PROGRAM).stdin(Stdio::null()).stderr(Stdio::null()).output();
    if let Ok(output) = output {
        let text = String::from_utf8_lossy(&output.stdout);
        // The rest names the phone and its owner's network, which nobody needs.
        let builds: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("[ro.build.") || line.starts_with("[ro.debuggable"))
            .collect();
        facts.texts.insert("getprop.txt".to_owned(), builds.join("\n"));
    }
}

/// The binder devices in `/dev` and in the instance of binderfs that Android and Waydroid mount.
fn devices() -> Vec<Device> {
    let mut paths: Vec<PathBuf> = ["/dev", "/dev/binderfs"]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten())
        .filter(|entry| entry.file_name().to_string_lossy().ends_with("binder"))
        .map(|entry| entry.path())
        .collect();
    paths.sort_unstable();
    paths.iter().filter_map(|path| device(path)).collect()
}

fn device(path: &Path) -> Option<Device> {
    // A link in /dev into binderfs is the same device under the name that programs use.
    let found = fs::metadata(path).ok().filter(|found| found.file_type().is_char_device())?;
    let opened = OpenOptions::new().read(true).write(true).open(path);
    Some(Device {
        path: path.display().to_string(),
        mode: found.mode() & 0o7777,
        uid: found.uid(),
        refused: opened.err().map(|error| sys::errno::describe(&error)),
    })
}

fn features() -> Option<Vec<String>> {
    let entries = fs::read_dir("/dev/binderfs/features").or_else(|_| fs::read_dir("/dev/features")).ok()?;
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Some(names)
}

/// The driver's stats, by whatever way it shows them.
fn stats(facts: &mut Facts) {
    match state::of_device(&locate::Device::Auto, StateFile::Stats) {
        Ok(text) => {
            facts.texts.insert(STATS.to_owned(), text);
        }
        Err(Trouble::Files(StateError::NoDriver { .. })) => {}
        Err(trouble) => {
            facts.unreadable.insert(STATS.to_owned(), trouble.to_string());
        }
    }
}
