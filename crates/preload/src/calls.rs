//! Calls on descriptors and mappings of devices: open, close, duplicates, flags, map, unmap.
//!
//! The C library's function itself is called by `exports`, before or after these.
//! Facts: contract OPN-01 to OPN-11, EXT-06, EXT-07; `open(2)`, `dup(2)`, `fcntl(2)`, `mmap(2)`.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use driver::connection::Connection;
use embedded::OwnNumbers;
use sys::errno::{EEXIST, EINVAL, EMFILE, ENOTDIR, EPERM};

use crate::file::{OpenFile, Place};
use crate::table::{self, Mapped};
use crate::watches::{self, Watch};
use crate::{members, owner};

fn errno<T>(number: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(number))
}

/// Opens a device, with flags of `open(2)`.
///
/// # Errors
/// `ENOTDIR`, `EEXIST`: flags that no device has. `EIO`: the driver cannot be reached, with the reason on standard error. `EMFILE`,
/// `ENFILE`.
pub fn open(device: &Place<'_>, flags: i32) -> io::Result<RawFd> {
    if flags & libc::O_DIRECTORY != 0 {
        return errno(ENOTDIR);
    }
    let create = libc::O_CREAT | libc::O_EXCL;
    if flags & create == create {
        return errno(EEXIST);
    }
    // A number that is a device here names nothing in another process.
    let own = OwnNumbers { is_bound: table::has };
    let file = OpenFile::open(device, flags, own)?;
    let number = sys::descriptor::placeholder(flags)?;
    enter(number, file)
}

/// Lets a new descriptor name a device.
fn enter(descriptor: OwnedFd, file: Arc<OpenFile>) -> io::Result<RawFd> {
    if descriptor.as_raw_fd() >= members::LIMIT {
        return errno(EMFILE);
    }
    let number = descriptor.into_raw_fd();
    let stale = table::write().insert(number, file);
    stale.into_iter().for_each(table::release);
    Ok(number)
}

/// Content of a closed descriptor, to be given up once the number is closed.
#[derive(Debug, Default)]
pub struct Closing {
    files: Vec<Arc<OpenFile>>,
    watches: Vec<Watch>,
}

impl Closing {
    /// Wakes blocked reads, and releases devices that nothing names any more.
    pub fn finish(self) {
        drop(self.watches);
        for file in self.files {
            file.wake_readers();
            table::release(file);
        }
    }
}

/// Takes descriptors out that are about to be closed; `None` if none of them concerns a device.
#[must_use]
pub fn closing(range: RangeInclusive<RawFd>) -> Option<Closing> {
    let known = match (range.start(), range.end()) {
        (first, last) if first == last => table::has(*first) || watches::has(*first),
        _ => true,
    };
    if !known || !owner::is_own() {
        return None;
    }
    let mut table = table::write();
    let mut closing = Closing { watches: table.watches.of_sets(&range), ..Closing::default() };
    for fd in table.within(range) {
        closing.watches.extend(table.watches.of_device(fd));
        closing.files.extend(table.remove(fd));
    }
    Some(closing)
}

/// After a descriptor was duplicated: `new` names what `old` names. What `new` named before was closed with the call.
pub fn duplicated(old: RawFd, new: RawFd) -> io::Result<()> {
    let concerned = table::has(old) || table::has(new) || watches::has(new);
    if old == new || !concerned || !owner::is_own() {
        return Ok(());
    }
    if let Some(closing) = closing(new..=new) {
        closing.finish();
    }
    match table::find(old) {
        Some(_) if new >= members::LIMIT => errno(EMFILE),
        Some(file) => {
            let stale = table::write().insert(new, file);
            stale.into_iter().for_each(table::release);
            Ok(())
        }
        None => Ok(()),
    }
}

/// The flags of an open file, whose stand-in has these.
#[must_use]
pub fn flags(fd: RawFd, of_stand_in: i32) -> i32 {
    let Some(file) = table::find(fd) else { return of_stand_in };
    let flags = of_stand_in & !libc::O_ACCMODE | file.access();
    table::release(file);
    flags
}

/// After the flags of an open file were set.
pub fn flags_set(fd: RawFd, flags: i32) {
    if let Some(file) = table::find(fd)
        && let Ok(connection) = file.connection()
    {
        // Cannot fail: a flag of the connection's own.
        let _ = connection.set_nonblocking(flags & libc::O_NONBLOCK != 0);
    }
}

/// Maps a device's receiving area, with the arguments of `mmap(2)`; `None` if the descriptor names no device.
pub fn map(fd: RawFd, len: usize, protection: i32, flags: i32, offset: i64) -> Option<io::Result<u64>> {
    if flags & libc::MAP_ANONYMOUS != 0 {
        return None;
    }
    Some(map_file(table::find(fd)?, len, protection, flags, offset))
}

fn map_file(file: Arc<OpenFile>, len: usize, protection: i32, flags: i32, offset: i64) -> io::Result<u64> {
    let connection = file.connection()?;
    if protection & libc::PROT_WRITE != 0 {
        return errno(EPERM);
    }
    // The area lies where the driver's half in this process put it.
    let fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0;
    let page = sys::page::size();
    if len == 0 || fixed || offset < 0 || !(offset as usize).is_multiple_of(page) {
        return errno(EINVAL);
    }
    let len = len.checked_next_multiple_of(page).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
    connection.map(len)?;
    let Some(base) = connection.map_base() else { return errno(EINVAL) };
    table::write().add_mapped(Mapped { base, len: len as u64, file });
    Ok(base)
}

/// Unmaps a receiving area; `false` if none is there. Its memory stays until the device is released.
///
/// # Errors
/// `EINVAL`: the range is a part of an area, or has one as a part: the driver's half in this process writes there.
pub fn unmap(address: u64, len: usize) -> io::Result<bool> {
    if !table::has_mapped() || !owner::is_own() {
        return Ok(false);
    }
    let len = (len as u64).checked_next_multiple_of(sys::page::size() as u64).unwrap_or(u64::MAX);
    let exactly = |mapped: &Mapped| mapped.base == address && len == mapped.len;
    let mut table = table::write();
    let Some(Mapped { file, .. }) = table.take_mapped(exactly) else {
        let end = address.saturating_add(len);
        let touches = |mapped: &Mapped| address < mapped.base + mapped.len && mapped.base < end;
        return if table.mapped.iter().any(touches) { errno(EINVAL) } else { Ok(false) };
    };
    drop(table);
    if let Ok(connection) = file.connection() {
        connection.unmap();
    }
    table::release(file);
    Ok(true)
}
