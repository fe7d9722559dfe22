//! Room: a private binderfs instance without a mount point.
//! Not here: which device to open in it (`driver::kernel`).
//! Facts: contract FS-01, FS-02; `fsopen(2)`, `fsmount(2)` (Linux 5.2); `linux/android/binderfs.h`.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use abi::codes::ioctl;
use abi::layout::BinderfsDevice;

const FSCONFIG_CMD_CREATE: libc::c_int = 6;

/// A detached mount of binderfs: reachable only through this descriptor, so nothing collides with
/// the system's own devices and nothing is left behind when the process ends in any way.
#[derive(Debug)]
pub struct PrivateBinderfs {
    root: OwnedFd,
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a non-negative result of fsopen/fsmount is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })
}

impl PrivateBinderfs {
    /// Makes a new instance with contexts of its own.
    ///
    /// # Errors
    /// `ENODEV`: the kernel has no binderfs. `EPERM`: needs `CAP_SYS_ADMIN` in the mount's user
    /// namespace. `ENOSYS`: older than Linux 5.2.
    pub fn new() -> io::Result<Self> {
        let kind: &CStr = c"binder";
        // SAFETY: `kind` is NUL-terminated and outlives the call; the rest are integers.
        let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1) })?;
        let null = std::ptr::null::<u8>();
        // SAFETY: FSCONFIG_CMD_CREATE takes null key and value.
        let created = unsafe {
            libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, null, null, 0)
        };
        if created < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: integers only; 1 is FSMOUNT_CLOEXEC.
        let root = owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })?;
        Ok(Self { root })
    }

    /// Path of an entry, valid in every process that may look into this one's `/proc` entry, for as
    /// long as this value lives.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}/{name}", std::process::id(), self.root.as_raw_fd()))
    }

    /// Allocates a device and returns its path.
    ///
    /// # Errors
    /// As [`add_device`].
    pub fn add_device(&self, name: &str) -> io::Result<PathBuf> {
        add_device(&self.path("binder-control"), name)?;
        Ok(self.path(name))
    }
}

/// `BINDER_CTL_ADD`: allocates a device in the binderfs instance of this `binder-control`.
///
/// # Errors
/// `EEXIST`: the name is taken. `EACCES`: a name binderfs refuses. `ENOSPC`: over the instance's
/// limit. `EINVAL`: the name is too long. As `open(2)` for the control file.
pub fn add_device(control: &Path, name: &str) -> io::Result<()> {
    let mut device = BinderfsDevice::named(name).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let control = File::options().read(true).write(true).open(control)?;
    let argument: *mut BinderfsDevice = &raw mut device;
    // SAFETY: `argument` is valid for the 264 bytes that the request's size field declares.
    let result = unsafe { libc::ioctl(control.as_raw_fd(), ioctl::CTL_ADD as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
