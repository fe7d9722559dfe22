//! Extracts a kernel, its modules and its configuration from Debian packages.
//! Not here: downloading packages (`apt`), storing the files (`cache`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::VmError;
use crate::qemu::last_line;

use super::{Kernel, files_below, image, modules};

/// Files to extract, out of some hundred megabytes.
const WANTED: [&str; 8] = [
    "*/vmlinuz*",
    "*/boot/config-*",
    "*/lib/modules/*/config",
    "*/binder_linux.ko*",
    "*/rust_binder.ko*",
    "*/drivers/*/virtio*.ko*",
    "*/net_failover.ko*",
    "*/failover.ko*",
];

/// Whether the file is a Debian package.
pub(super) fn is_package(path: &Path) -> bool {
    let mut magic = [0u8; 8];
    let read =
        std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
    read.is_ok() && &magic == b"!<arch>\n"
}

/// Unpacks the packages of one kernel into an empty folder; returns the kernel and its configuration.
///
/// # Errors
/// [`VmError::Tool`], [`VmError::Host`]; [`VmError::BadKernel`]: no kernel in the packages.
pub(super) fn unpack(packages: &[PathBuf], into: &Path) -> Result<(Kernel, Option<PathBuf>), VmError> {
    std::fs::create_dir_all(into).map_err(VmError::host(format!("making {}", into.display())))?;
    packages.iter().try_for_each(|package| extract(package, into))?;
    let names: Vec<_> = packages.iter().map(|path| path.display().to_string()).collect();
    let bad = |why: &str| VmError::BadKernel { given: names.join(" "), why: why.into() };
    let files = files_below(into)?;
    let starts = |path: &PathBuf, start: &str| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(start))
    };
    let vmlinuz = files.iter().find(|path| starts(path, "vmlinuz")).ok_or_else(|| {
        bad("there is no vmlinuz in it; give linux-image-*.deb, or both linux-binary-*.deb and linux-modules-*.deb")
    })?;
    let image::Facts { arch, release } = image::facts(&image::read(vmlinuz)?).map_err(|why| bad(&why))?;
    let folders = ["lib/modules", "usr/lib/modules"].map(|place| into.join(place).join(&release));
    let modules = match folders.iter().find(|folder| folder.join("kernel").is_dir()) {
        Some(folder) => modules::wanted(folder)?,
        None => Vec::new(),
    };
    let config = files.iter().find(|path| starts(path, "config")).cloned();
    Ok((Kernel { image: vmlinuz.clone(), release, arch, modules }, config))
}

/// `dpkg-deb --fsys-tarfile PACKAGE | tar -x WANTED`.
fn extract(package: &Path, into: &Path) -> Result<(), VmError> {
    let unpacking = || format!("dpkg-deb --fsys-tarfile {}", package.display());
    let failed = |why: String| VmError::Tool { command: unpacking(), why };
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--fsys-tarfile")
        .arg(package)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut dpkg =
        dpkg.spawn().map_err(|error| failed(format!("{error}; install it: apt-get install dpkg")))?;
    let stream = dpkg.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let tar = Command::new("tar")
        .args(["-x", "--no-same-owner", "--wildcards", "-C"])
        .arg(into)
        .args(WANTED)
        .stdin(stream)
        .output();
    // tar fails for each pattern without a match, which is normal; missing files are detected later. A damaged
    // package makes dpkg-deb fail.
    let tar = tar.map_err(|error| VmError::Tool { command: "tar -x".into(), why: error.to_string() });
    let dpkg = dpkg.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let tar = tar?;
    if !dpkg.status.success() {
        return Err(failed(last_line(&dpkg.stderr)));
    }
    let complaint = String::from_utf8_lossy(&tar.stderr);
    let real = complaint
        .lines()
        .find(|line| !line.contains("Not found in archive") && !line.contains("Exiting with"));
    match real {
        Some(line) if !tar.status.success() => {
            Err(VmError::Tool { command: "tar -x".into(), why: line.into() })
        }
        _ => Ok(()),
    }
}
