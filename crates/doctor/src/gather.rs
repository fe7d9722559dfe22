//! Collects the facts about this machine that are in no file and need no measurement.
//! Not here: measuring (`measure`), files (`snapshot`).

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backend::locate;
use ftrace::instances::{self, Owner};
use ftrace::tracefs::Tracefs;

use super::facts::{Device, Facts};
use super::probes::users::STATS;
use backend::state::{self, StateError, StateFile};

/// Collects facts. With `of_kernel` the kernel driver's devices are opened and its stats read; otherwise they are not
/// touched.
#[must_use]
pub fn gather(of_kernel: bool) -> Facts {
    let mut facts = Facts {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        debug_build: Some(cfg!(debug_assertions)),
        class: Some(host::class()),
        usable_cpus: Some(sys::sched::usable_cpus()),
        recorders: recorders(),
        ..Facts::new()
    };
    properties(&mut facts);
    if of_kernel {
        facts.devices = Some(devices());
        stats(&mut facts);
    }
    facts
}

/// Trace instances of this program's recorders, with whether the recorder runs.
fn recorders() -> Option<BTreeMap<String, bool>> {
    let tracefs = Tracefs::mounted().ok()?;
    let ours = instances::list(&tracefs).into_iter().filter_map(|found| match found.owner {
        Owner::Running { .. } => Some((found.name, true)),
        Owner::Killed { .. } => Some((found.name, false)),
        Owner::Other => None,
    });
    Some(ours.collect())
}

/// Android's build properties and its account of the battery, on Android.
fn properties(facts: &mut Facts) {
    if let Some(text) = said("getprop", &[]) {
        // Other properties identify the phone and its network; they are not needed.
        let builds: Vec<&str> = text
            .lines()
            .filter(|line| {
                ["[ro.build.", "[ro.debuggable", "[ro.soc."].iter().any(|start| line.starts_with(start))
            })
            .collect();
        facts.texts.insert("getprop.txt".to_owned(), builds.join("\n"));
    }
    if let Some(text) = said("dumpsys", &["-t", "2", "battery"]) {
        facts.texts.insert("dumpsys-battery.txt".to_owned(), text);
    }
}

/// The output of a program of Android; `None` elsewhere.
fn said(program: &str, words: &[&str]) -> Option<String> {
    let program = Path::new("/system/bin").join(program);
    if !program.exists() {
        return None;
    }
    let mut command = Command::new(program);
    let output = command.args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned()).filter(|text| !text.is_empty())
}

/// Binder devices in `/dev`, and in the binderfs instance that Android and Waydroid mount.
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
    // A link from /dev into binderfs is kept under the name that programs use.
    let found = fs::metadata(path).ok().filter(|found| found.file_type().is_char_device())?;
    let opened = OpenOptions::new().read(true).write(true).open(path);
    Some(Device {
        path: path.display().to_string(),
        mode: found.mode() & 0o7777,
        uid: found.uid(),
        refused: opened.err().map(|error| sys::errno::describe(&error)),
    })
}

/// The driver's stats, from wherever it provides them.
fn stats(facts: &mut Facts) {
    match state::of_device(&locate::Device::Auto, StateFile::Stats) {
        Ok(text) => {
            facts.texts.insert(STATS.to_owned(), text);
        }
        Err(StateError::NoDriver { .. }) => {}
        Err(trouble) => {
            facts.unreadable.insert(STATS.to_owned(), trouble.to_string());
        }
    }
}
