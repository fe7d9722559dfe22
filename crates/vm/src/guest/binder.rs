//! Binder devices under the names that Android programs use.
//! Not here: loading the module (`machine`), opening a device (`driver`).
//! Facts: contract OPN-12, FS-01, FS-02; Android's init mounts binderfs on `/dev/binderfs` with
//! `stats=global` and links `/dev/binder` and the others into it.

use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use sys::kernel::mount;

/// The contexts of an Android device.
pub(super) const DEVICES: [&str; 3] = ["binder", "hwbinder", "vndbinder"];

const FOLDER: &str = "/dev/binderfs";

/// Mounts binderfs if the kernel has it, with access for everybody, as Android does. The error says what was looked
/// for.
pub(super) fn bring_up() -> Result<(), String> {
    if filesystem_known() {
        mount_binderfs().map_err(|error| format!("mounting binderfs: {}", sys::errno::describe(&error)))?;
        for name in DEVICES {
            provide(name).map_err(|error| format!("{FOLDER}/{name}: {}", sys::errno::describe(&error)))?;
        }
    }
    let present: Vec<_> =
        DEVICES.iter().map(|name| Path::new("/dev").join(name)).filter(|p| p.exists()).collect();
    if present.is_empty() {
        return Err("neither binderfs nor /dev/binder, /dev/hwbinder or /dev/vndbinder".into());
    }
    for path in present {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))
            .map_err(|error| format!("chmod of {}: {}", path.display(), sys::errno::describe(&error)))?;
    }
    Ok(())
}

fn filesystem_known() -> bool {
    std::fs::read_to_string("/proc/filesystems")
        .is_ok_and(|list| list.lines().any(|line| line.split_whitespace().next_back() == Some("binder")))
}

/// `stats=global` enables the driver's log files; kernels before about 5.13 do not support it.
fn mount_binderfs() -> io::Result<()> {
    std::fs::create_dir_all(FOLDER)?;
    mount("binder", Path::new(FOLDER), "stats=global").or_else(|_| mount("binder", Path::new(FOLDER), ""))
}

/// Creates the device in binderfs and links it into `/dev`.
fn provide(name: &str) -> io::Result<()> {
    let device = Path::new(FOLDER).join(name);
    if !device.exists() {
        sys::binderfs::add_device(&Path::new(FOLDER).join("binder-control"), name)?;
    }
    match symlink(&device, Path::new("/dev").join(name)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
