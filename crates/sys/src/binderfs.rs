//! A private binderfs instance without a mount point.
//! Not here: which device to open in it (`driver::kernel`).
//! Facts: contract FS-01, FS-02; `fsopen(2)`, `fsmount(2)` (Linux 5.2); `linux/android/binderfs.h`.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use abi::codes::ioctl;
use abi::layout::BinderfsDevice;

use crate::errno::{check, new_descriptor};

const FSCONFIG_SET_STRING: libc::c_int = 1;
const FSCONFIG_CMD_CREATE: libc::c_int = 6;
const FSCONFIG_CMD_RECONFIGURE: libc::c_int = 7;

/// A detached mount of binderfs: reachable only through this descriptor, so nothing collides with
/// the system's own devices and nothing is left behind when the process ends in any way.
#[derive(Debug)]
pub struct PrivateBinderfs {
    root: OwnedFd,
}

/// One `fsconfig(2)`: an option, or a command without one.
fn configure(context: &OwnedFd, command: libc::c_int, option: Option<(&CStr, &CStr)>) -> io::Result<()> {
    let null = std::ptr::null();
    let (key, value) = option.map_or((null, null), |(key, value)| (key.as_ptr(), value.as_ptr()));
    let context = context.as_raw_fd();
    // SAFETY: key and value are NUL-terminated and outlive the call, or null, which commands take.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, context, command, key, value, 0) })
}

fn set_options(context: &OwnedFd, options: &[(&str, &str)]) -> io::Result<()> {
    let c_string = |text: &str| CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    for (key, value) in options {
        let (key, value) = (c_string(key)?, c_string(value)?);
        configure(context, FSCONFIG_SET_STRING, Some((&key, &value)))?;
    }
    Ok(())
}

impl PrivateBinderfs {
    /// Makes a new instance with contexts of its own.
    ///
    /// # Errors
    /// `ENODEV`: the kernel has no binderfs. `EPERM`: needs `CAP_SYS_ADMIN` in the mount's user
    /// namespace. `ENOSYS`: older than Linux 5.2.
    pub fn new() -> io::Result<Self> {
        Self::with_options(&[])
    }

    /// [`Self::new`] with mount options, as `("max", "16")` or `("stats", "global")`.
    ///
    /// # Errors
    /// See [`Self::new`]; `EINVAL`: an option or value that binderfs refuses; `ENOSPC`: `max` is below
    /// the number of devices that each instance starts with.
    pub fn with_options(options: &[(&str, &str)]) -> io::Result<Self> {
        let kind: &CStr = c"binder";
        // SAFETY: `kind` is NUL-terminated and outlives the call; the rest are integers.
        let opened = unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1) };
        // SAFETY: the result of fsopen.
        let context = unsafe { new_descriptor(opened) }?;
        set_options(&context, options)?;
        configure(&context, FSCONFIG_CMD_CREATE, None)?;
        // SAFETY: integers only; 1 is FSMOUNT_CLOEXEC.
        let mounted = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) };
        // SAFETY: the result of fsmount.
        let root = unsafe { new_descriptor(mounted) }?;
        Ok(Self { root })
    }

    /// Asks to change the options of this instance, as a remount does.
    ///
    /// # Errors
    /// `EINVAL`: an option that cannot be changed.
    pub fn reconfigure(&self, options: &[(&str, &str)]) -> io::Result<()> {
        const EMPTY_PATH_AND_CLOEXEC: libc::c_int = 8 | 1;
        let here: &CStr = c"";
        let root = self.root.as_raw_fd();
        // SAFETY: `here` is NUL-terminated and outlives the call; the rest are integers.
        let picked = unsafe { libc::syscall(libc::SYS_fspick, root, here.as_ptr(), EMPTY_PATH_AND_CLOEXEC) };
        // SAFETY: the result of fspick.
        let context = unsafe { new_descriptor(picked) }?;
        set_options(&context, options)?;
        configure(&context, FSCONFIG_CMD_RECONFIGURE, None)
    }

    /// Attaches the instance to a folder of this process's list of mounts. It can be reached there until it is unmounted.
    ///
    /// # Errors
    /// See `move_mount(2)`; `ENOSYS`: older than Linux 5.2.
    pub fn attach(&self, folder: &Path) -> io::Result<()> {
        const FROM_DESCRIPTOR: libc::c_uint = 4;
        let folder =
            CString::new(folder.as_os_str().as_encoded_bytes()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let here: &CStr = c"";
        let root = self.root.as_raw_fd();
        // SAFETY: both paths are NUL-terminated and outlive the call; the rest are integers.
        check(unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                root,
                here.as_ptr(),
                libc::AT_FDCWD,
                folder.as_ptr(),
                FROM_DESCRIPTOR,
            )
        })
    }

    /// What `fstatfs(2)` calls the type of the file system.
    ///
    /// # Errors
    /// None in normal work.
    pub fn magic(&self) -> io::Result<u64> {
        // SAFETY: a statfs is integers, for which all-zero bytes are a value.
        let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: `facts` is live and of the type that the call stores.
        let result = unsafe { libc::fstatfs(self.root.as_raw_fd(), &raw mut facts) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(facts.f_type as u64) }
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
    /// See [`add_device`].
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
    check(unsafe { libc::ioctl(control.as_raw_fd(), ioctl::CTL_ADD as _, argument) })
}
