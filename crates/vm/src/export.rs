//! A guest as files, for another program that boots it and reads its console.
//! Not here: booting one (`session`), jobs of test harnesses.

use std::fs;
use std::path::Path;

use record::HostClass;
use sys::draft::{self, Draft};

use super::job::{Job, cmdline};
use super::{Arch, Options, Prepared, VmError, appended, job_of};

/// Name of the kernel's file.
const KERNEL: &str = "kernel";
/// Name of the file with the root file system.
const INITRAMFS: &str = "initramfs.cpio";

/// A guest's files and how to boot them.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The kernel's file name in the folder.
    pub kernel: &'static str,
    /// The root file system's file name in the folder.
    pub initramfs: &'static str,
    /// The kernel's command line.
    pub cmdline: String,
    /// Architecture of the guest's CPUs.
    pub arch: Arch,
    /// The architecture's name in Debian.
    pub debian_arch: &'static str,
    /// The guest's `uname -r`.
    pub release: String,
    /// QEMU's machine model.
    pub machine: &'static str,
    /// QEMU's CPU model.
    pub cpu: &'static str,
}

/// Writes a guest into a folder. It runs its commands with their output on the console, then powers off. Its CPUs are of
/// this class.
///
/// # Errors
/// [`VmError`]: no kernel, no program for it, or a file that cannot be written.
pub fn export(
    options: &Options,
    class: HostClass,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Exported, VmError> {
    let prepared = Prepared::of(options, progress)?;
    let kernel = &prepared.kernel;
    let doing = || VmError::host(format!("writing the guest to {}", folder.display()));
    fs::create_dir_all(folder).map_err(doing())?;
    draft::copy(&kernel.image, &folder.join(KERNEL)).map_err(doing())?;
    let job = Job { console: true, files: false, ..job_of(options, kernel, false)? };
    let initramfs = Draft::new(&folder.join(INITRAMFS)).map_err(doing())?;
    prepared.write_initramfs(options, &job, initramfs.file().try_clone().map_err(doing())?)?;
    initramfs.commit().map_err(doing())?;
    let facts = kernel.arch.facts();
    Ok(Exported {
        kernel: KERNEL,
        initramfs: INITRAMFS,
        // All messages up to the first command: harnesses wait for the kernel's first line.
        cmdline: cmdline(kernel.arch, class, true, &appended(options, kernel)),
        arch: kernel.arch,
        debian_arch: facts.debian,
        release: kernel.release.clone(),
        machine: facts.machine,
        cpu: if class == HostClass::Kvm { "host" } else { facts.emulated_cpu },
    })
}
