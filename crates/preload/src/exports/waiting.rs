//! C library's functions that wait for descriptors, among them devices.
//! Not here: the logic ([`crate::polling`], [`crate::select`], [`crate::epoll`]).
//! Facts: `poll(2)`, `select(2)`, `epoll_ctl(2)`.

use std::ffi::c_int;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};

use super::{beside, outcome};
use crate::next::{self, set_errno};
use crate::polling::{self, Wait};
use crate::select::{self, Sets, Word};
use crate::{epoll, table};

/// Begins a wait for a list with devices; `None` if there are no devices in it.
///
/// # Safety
/// `list` is null or has `count` entries.
unsafe fn begin_wait(list: *const pollfd, count: nfds_t) -> Option<Wait> {
    if list.is_null() || count == 0 {
        return None;
    }
    // SAFETY: the caller's promise.
    let list = unsafe { std::slice::from_raw_parts(list, count as usize) };
    polling::has_device(list).then(|| beside(|| Some(polling::begin(list.to_vec())))).flatten()
}

/// Ends the wait and stores the answers; `result` is the C library's.
///
/// # Safety
/// `list` has `count` entries.
unsafe fn end_wait(wait: Wait, list: *mut pollfd, count: nfds_t, result: c_int) -> c_int {
    let answered = beside(|| polling::end(wait));
    if result < 0 {
        return result;
    }
    // SAFETY: the caller's promise.
    let list = unsafe { std::slice::from_raw_parts_mut(list, count as usize) };
    for (entry, answered) in list.iter_mut().zip(&answered) {
        entry.revents = answered.revents;
    }
    list.iter().filter(|entry| entry.revents != 0).count() as c_int
}

/// See `poll(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn poll(list: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    let Some(wait) = (unsafe { begin_wait(list, count) }) else {
        // SAFETY: the program's own arguments.
        return unsafe { next::poll(list, count, timeout_ms) };
    };
    // SAFETY: a list of as many entries.
    let result = unsafe { next::poll(wait.list.cast(), count, timeout_ms) };
    // SAFETY: the program's own list.
    unsafe { end_wait(wait, list, count, result) }
}

/// See `poll(2)`; the size of the list's memory was checked by the compiler.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __poll_chk(
    list: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
    _: size_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { poll(list, count, timeout_ms) }
}

/// See `ppoll(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ppoll(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    let Some(wait) = (unsafe { begin_wait(list, count) }) else {
        // SAFETY: the program's own arguments.
        return unsafe { next::ppoll(list, count, timeout, signals) };
    };
    // SAFETY: a list of as many entries.
    let result = unsafe { next::ppoll(wait.list.cast(), count, timeout, signals) };
    // SAFETY: the program's own list.
    unsafe { end_wait(wait, list, count, result) }
}

/// See `ppoll(2)`; the size of the list's memory was checked by the compiler.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __ppoll_chk(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    signals: *const sigset_t,
    _: size_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { ppoll(list, count, timeout, signals) }
}

/// A `select` with devices, as a `ppoll`; `None` if there are none in the sets.
///
/// # Safety
/// Each set is null or has room for `count` descriptors; `timeout` is null or live, as `signals` is.
unsafe fn select_devices(
    count: c_int,
    sets: [*mut fd_set; 3],
    timeout: *const timespec,
    signals: *const sigset_t,
) -> Option<c_int> {
    let words = select::words(count)?;
    let mut sets: Sets<'_> = sets.map(|set| {
        // SAFETY: the caller's promise; a set is an array of longs.
        (!set.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(set.cast::<Word>(), words) })
    });
    let wait = beside(|| select::as_list(count, &sets).map(polling::begin))?;
    // SAFETY: a list of as many entries.
    let result = unsafe { next::ppoll(wait.list.cast(), wait.list.len() as nfds_t, timeout, signals) };
    let list = beside(|| polling::end(wait));
    if result < 0 {
        return Some(result);
    }
    Some(match select::answer(&list, &mut sets) {
        Some(count) => count as c_int,
        None => {
            set_errno(libc::EBADF);
            -1
        }
    })
}

/// See `select(2)`. The time left is not stored for a set with devices.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    other: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: null, or the program's own.
    let time = unsafe { timeout.as_ref() };
    // As the kernel does, more than a million of us are seconds.
    let time = time.map(|time| timespec {
        tv_sec: time.tv_sec.saturating_add(time.tv_usec / 1_000_000),
        tv_nsec: (time.tv_usec % 1_000_000 * 1000) as _,
    });
    let time_at = time.as_ref().map_or(std::ptr::null(), |time| time);
    // SAFETY: the program's own arguments.
    match unsafe { select_devices(count, [read, write, other], time_at, std::ptr::null()) } {
        Some(result) => result,
        // SAFETY: the program's own arguments.
        None => unsafe { next::select(count, read, write, other, timeout) },
    }
}

/// See `pselect(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    other: *mut fd_set,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    match unsafe { select_devices(count, [read, write, other], timeout, signals) } {
        Some(result) => result,
        // SAFETY: the program's own arguments.
        None => unsafe { next::pselect(count, read, write, other, timeout, signals) },
    }
}

/// See `epoll_ctl(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_ctl(
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if table::has(fd) {
        match outcome(Some(-1), || epoll::stand_in(set, operation, fd).transpose()) {
            Some(-1) => return -1,
            Some(stand_in) => {
                // SAFETY: the program's own arguments, and a descriptor in place of a device's.
                let result = unsafe { next::epoll_ctl(set, operation, stand_in, event) };
                beside(|| epoll::controlled(set, operation, fd, result == 0));
                return result;
            }
            None => {}
        }
    }
    // SAFETY: the program's own arguments.
    unsafe { next::epoll_ctl(set, operation, fd, event) }
}
