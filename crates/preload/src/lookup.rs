//! Paths that the program names: which of them are the driver's, and the files that are looked at in their place.
//!
//! A path that the machine has a file for is the kernel's to walk, unless it reads as one of a device. One that the kernel does not
//! find is walked here, unless a file is only missing from its folder. Before the library begins, only paths with a name of a device
//! are looked at: memory allocators look for files before they give memory.
//! Facts: `path_resolution(7)`.

use std::cell::Cell;
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use abi::layout::BinderfsDevice;
use embedded::device_path::{self, Found, Paths, RULES_VARIABLE, Whose};
use sys::errno::{EACCES, EEXIST, EINVAL, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENXIO};
use sys::own_memory::{self, ArgumentMemory};
use zerocopy::{FromZeros, IntoBytes};

use crate::context;
use crate::file::{OpenFile, say};
use crate::table;

/// The program's paths, and the directory of its contexts.
#[derive(Debug)]
struct Known {
    directory: PathBuf,
    paths: Paths,
}

thread_local! {
    /// True while the thread runs the library's code, whose paths are the machine's.
    pub(crate) static INSIDE: Cell<bool> = const { Cell::new(false) };
}

static KNOWN: OnceLock<Option<Known>> = OnceLock::new();

/// The program's paths; `None` if its starter named no directory, which is printed once.
fn known() -> Option<&'static Known> {
    let read = || {
        let rules = std::env::var(RULES_VARIABLE).unwrap_or_default();
        let directory = context::directory()?;
        Ok(Known { paths: Paths::new(&directory, &rules)?, directory })
    };
    let report = |why: String| say(format_args!("no path leads to a device: {why}"));
    KNOWN.get_or_init(|| read().map_err(report).ok()).as_ref()
}

/// Lets all paths be looked at from now on.
pub fn begin() {
    known();
}

/// True if a path reads as one of a device.
#[must_use]
pub fn is_likely(path: &[u8]) -> bool {
    if INSIDE.get() {
        return false;
    }
    match KNOWN.get() {
        Some(known) => known.as_ref().is_some_and(|known| known.paths.is_likely(path)),
        None => Paths::default().is_likely(path),
    }
}

/// True if an errno says that the kernel found no file, or one of the driver's.
#[must_use]
pub fn may_be_ours(errno: i32) -> bool {
    matches!(errno, ENOENT | ENOTDIR | ENXIO) && KNOWN.get().is_some() && !INSIDE.get()
}

/// The device that a path below `/proc/self/fd` names.
#[must_use]
pub fn descriptor(path: &[u8]) -> Option<Arc<OpenFile>> {
    // A quick look: nearly all paths are others.
    let is_possible = path.starts_with(b"/proc/") || path.starts_with(b"/dev/fd/");
    let is_possible = is_possible && !INSIDE.get();
    is_possible.then(|| device_path::descriptor(path, std::process::id()))?.and_then(table::find)
}

/// The file of the driver's that a path leads to. `follow`: also over a link at its end.
#[must_use]
pub fn find(folder: RawFd, path: &[u8], follow: bool) -> Option<Found> {
    known()?.paths.find(Whose::Own, folder, path, follow)
}

/// The file to look at in the place of one of the driver's.
///
/// # Errors
/// Those of making it.
pub fn stand_in(found: &Found) -> io::Result<CString> {
    let known = known().ok_or_else(|| io::Error::from_raw_os_error(EIO))?;
    device_path::ensure(&known.directory)?;
    sys::path::terminated(&known.paths.stand_in(found))
}

/// The path without links of a file of the driver's, which must be there. It fits where the longest path does.
///
/// # Errors
/// Those of looking at the file in its place. `ELOOP`: that is a link, which a binderfs has none of. `ENAMETOOLONG`.
pub fn real(found: &Found) -> io::Result<CString> {
    match sys::path::read_link(&stand_in(found)?) {
        // A file, and no link.
        Err(error) if error.raw_os_error() == Some(EINVAL) => {}
        Err(error) => return Err(error),
        Ok(_) => return Err(io::Error::from_raw_os_error(ELOOP)),
    }
    let path = found.path();
    match path.len() < sys::path::LONGEST {
        true => sys::path::terminated(path.as_ref()),
        false => Err(io::Error::from_raw_os_error(ENAMETOOLONG)),
    }
}

/// The file to open in the place of one of the driver's that is no device, with flags of `open(2)`: the call makes and changes none.
///
/// # Errors
/// Those of looking at it. `EACCES`: nobody makes a file there, or writes one. `EEXIST`: the call was to make it.
pub fn opened(found: &Found, flags: i32) -> io::Result<CString> {
    let stand_in = stand_in(found)?;
    let refused = |errno| Err(io::Error::from_raw_os_error(errno));
    if flags & libc::O_PATH != 0 {
        return Ok(stand_in);
    }
    let there = fs::symlink_metadata(OsStr::from_bytes(stand_in.to_bytes()));
    let creates = flags & libc::O_CREAT != 0;
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0;
    match (there, known()) {
        (Err(error), _) if creates && error.raw_os_error() == Some(ENOENT) => refused(EACCES),
        (Err(error), _) => Err(error),
        (Ok(_), _) if creates && flags & libc::O_EXCL != 0 => refused(EEXIST),
        (Ok(_), Some(known)) if *found == Found::Control => {
            sys::path::terminated(&device_path::control_file(&known.directory))
        }
        (Ok(there), _) if there.is_file() && writes => refused(EACCES),
        (Ok(_), _) => Ok(stand_in),
    }
}

/// True if the program reads a link below `/proc`, whose text may be a stand-in's.
#[must_use]
pub fn is_below_proc(path: &[u8]) -> bool {
    path.starts_with(b"/proc/") && !INSIDE.get()
}

/// The text of a link below `/proc`, as it is on a driver of the kernel's; `None` if it is that already.
#[must_use]
pub fn outward(target: &[u8]) -> Option<String> {
    known()?.paths.outward(target)
}

/// True if a descriptor is open in place of `binder-control`.
#[must_use]
pub fn is_control(fd: RawFd) -> bool {
    let own = sys::path::terminated(format!("/proc/self/fd/{fd}").as_ref());
    let opened = own.and_then(|own| sys::path::read_link(&own));
    // The file that is looked at in its place is open only by O_PATH.
    let is_used = |path: &[u8]| !path.ends_with(b"/binder-control");
    opened.is_ok_and(|path| is_used(&path) && outward(&path) == Some(Found::Control.path()))
}

/// `BINDER_CTL_ADD` of [such a descriptor](is_control).
///
/// # Errors
/// `EFAULT`; `EEXIST`, `EINVAL`: the name.
pub fn add_device(memory: &ArgumentMemory, address: u64) -> io::Result<()> {
    let mut device = BinderfsDevice::new_zeroed();
    own_memory::read(address, device.as_mut_bytes())?;
    let directory = &known().ok_or_else(|| io::Error::from_raw_os_error(EIO))?.directory;
    device_path::add_device(directory, &device.name)?;
    memory.write(address, device.as_bytes())
}
