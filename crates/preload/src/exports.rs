//! C library's functions as the program calls them: device or not, then the driver or the C library's own function.
//!
//! The logic is elsewhere ([`crate::calls`] and its neighbours). A function here owns nothing while it calls the C
//! library's: a cancelled thread ends inside of it.
//! Facts: the manual pages of each; `pthreads(7)`, "Cancellation points".

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use embedded::device_path;
use libc::{
    epoll_event, fd_set, mode_t, nfds_t, off_t, off64_t, pollfd, sigset_t, size_t, timespec, timeval,
};
use sys::errno::EIO;
use sys::own_memory::ArgumentMemory;

use crate::calls::{self, Closing};
use crate::next::{self, errno, set_errno};
use crate::polling::{self, Wait};
use crate::select::{self, Sets, Word};
use crate::{epoll, ioctl, owner, table, watches};

/// Runs the library's code, with the outcome that a system call would have: a negative `failed` with `errno`, else its
/// result and `errno` as it was. A defect of the library is `EIO`, and not the end of the program. The thread is not cancelled
/// meanwhile, as it would not be in an ioctl, although the driver waits by calls that are cancellation points.
pub(crate) fn outcome<T>(failed: T, run: impl FnOnce() -> io::Result<T>) -> T {
    let before = errno();
    let cancelled = next::hold_cancellation();
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(io::Error::from_raw_os_error(EIO)));
    next::restore_cancellation(cancelled);
    match result {
        Ok(value) => {
            set_errno(before);
            value
        }
        Err(error) => {
            set_errno(sys::errno::number(&error).unwrap_or(EIO));
            failed
        }
    }
}

/// Runs the library's code without an outcome of its own; `errno` stays.
fn beside<T: Default>(run: impl FnOnce() -> T) -> T {
    outcome(T::default(), || Ok(run()))
}

/// Before the program's first instruction: the table is this process's, and hears of forks.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    owner::take();
    let (before, parent, child) = (table::before_fork, table::after_fork, table::after_fork_in_child);
    // SAFETY: the handlers live as long as the library, which is never unloaded (`-z nodelete`).
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

/// Opens the device that a path names; `None` if it names another file.
///
/// # Safety
/// `path` is null or ends with a NUL.
unsafe fn open_device(path: *const c_char, flags: c_int) -> Option<c_int> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if !device_path::may_be_device(path) {
        return None;
    }
    outcome(Some(-1), || calls::open(path, flags).transpose())
}

/// Declares the functions that open a path: those in a directory, too, as a device's path is absolute.
macro_rules! opens {
    ($($name:ident, $next:ident($($folder:ident)?) $($mode:ident)?;)*) => {$(
        #[doc = concat!("See `", stringify!($next), "(2)`.")]
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            $($folder: c_int,)? path: *const c_char, flags: c_int $(, $mode: mode_t)?
        ) -> c_int {
            // SAFETY: the caller passes a path.
            if let Some(fd) = unsafe { open_device(path, flags) } {
                return fd;
            }
            #[allow(unused_mut, unused_assignments)]
            let mut permissions: mode_t = 0;
            $(permissions = $mode;)?
            // SAFETY: the program's own arguments.
            unsafe { next::$next($($folder,)? path, flags, permissions) }
        }
    )*};
}

opens! {
    open, open() mode;
    open64, open64() mode;
    openat, openat(folder) mode;
    openat64, openat64(folder) mode;
    __open_2, open();
    __open64_2, open64();
    __openat_2, openat(folder);
    __openat64_2, openat64(folder);
}

/// See `close(2)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn close(fd: c_int) -> c_int {
    let closing = if table::has(fd) || watches::has(fd) { beside(|| calls::closing(fd..=fd)) } else { None };
    match closing {
        // SAFETY: the program's own arguments.
        None => unsafe { next::close(fd) },
        Some(closing) => {
            // The system call itself: nothing is left behind by a cancelled thread.
            // SAFETY: close takes an integer, which is the program's to close.
            let result = unsafe { libc::syscall(libc::SYS_close, fd) as c_int };
            beside(|| closing.finish());
            result
        }
    }
}

/// Entries that closing a range of descriptors takes out of the table.
fn closing_from(first: c_uint, last: c_uint) -> Option<Closing> {
    let last = c_int::try_from(last).unwrap_or(c_int::MAX);
    let first = c_int::try_from(first).ok().filter(|first| *first <= last)?;
    beside(|| calls::closing(first..=last))
}

/// See `close_range(2)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    const CLOSES: c_int = 0;
    // With a flag they are closed on exec, or in a table of the calling thread's own.
    let closing = if flags == CLOSES { closing_from(first, last) } else { None };
    // First: the driver closes its own descriptors, which may be in the range, before their numbers can be used again.
    if let Some(closing) = closing {
        beside(|| closing.finish());
    }
    // SAFETY: the program's own arguments.
    unsafe { next::close_range(first, last, flags) }
}

/// See `closefrom(3)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn closefrom(first: c_int) {
    close_range(first.max(0) as c_uint, c_uint::MAX, 0);
}

/// See `ioctl(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // Requests of the file system's, for any open file.
    const FIOCLEX: u32 = 0x5451;
    const FIONCLEX: u32 = 0x5450;
    const FIONBIO: u32 = 0x5421;
    // The kernel looks at 32 bits.
    let request_word = request as u32;
    let Some(file) = beside(|| table::find(fd)) else {
        // SAFETY: the program's own arguments.
        return unsafe { next::ioctl(fd, request, argument) };
    };
    if matches!(request_word, FIOCLEX | FIONCLEX) {
        outcome((), || {
            table::release(file);
            Ok(())
        });
        // SAFETY: the program's own arguments.
        return unsafe { next::ioctl(fd, request, argument) };
    }
    if request_word == FIONBIO {
        // SAFETY: the program's own arguments; the file in the device's place takes the request, too.
        let result = unsafe { next::ioctl(fd, request, argument) };
        if result == 0 {
            // SAFETY: the kernel has just read the number there.
            let on = unsafe { argument.cast::<c_int>().read_unaligned() } != 0;
            beside(|| calls::flags_set(fd, if on { libc::O_NONBLOCK } else { 0 }));
        }
        beside(|| table::release(file));
        return result;
    }
    outcome(-1, || {
        // SAFETY: the program named these ranges to the kernel's driver, to be stored into.
        let memory = unsafe { ArgumentMemory::of_this_call() };
        let result = ioctl::carry_out(&file, &memory, request_word, argument.expose_provenance() as u64);
        table::release(file);
        result.map(|()| 0)
    })
}

/// See `mmap(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap(
    address: *mut c_void,
    len: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { mmap64(address, len, protection, flags, fd, off64_t::from(offset)) }
}

/// See `mmap(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mmap64(
    address: *mut c_void,
    len: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off64_t,
) -> *mut c_void {
    if table::has(fd) {
        let mapped = outcome(Some(u64::MAX), || calls::map(fd, len, protection, flags, offset).transpose());
        if let Some(base) = mapped {
            return std::ptr::with_exposed_provenance_mut(base as usize);
        }
    }
    // SAFETY: the program's own arguments.
    unsafe { next::mmap(address, len, protection, flags, fd, offset) }
}

/// See `munmap(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn munmap(address: *mut c_void, len: size_t) -> c_int {
    let unmapped = table::has_mapped()
        .then(|| outcome(Some(-1), || Ok(calls::unmap(address.addr() as u64, len)?.then_some(0))))
        .flatten();
    match unmapped {
        Some(result) => result,
        // SAFETY: the program's own arguments.
        None => unsafe { next::munmap(address, len) },
    }
}

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

/// After a duplicate was made: lets it name the same device; a number that cannot is closed again.
fn duplicated(old: c_int, new: c_int) -> c_int {
    if new < 0 {
        return new;
    }
    let result = outcome(-1, || calls::duplicated(old, new).map(|()| new));
    if result < 0 {
        // SAFETY: the number was made by this call.
        unsafe { libc::syscall(libc::SYS_close, new) };
    }
    result
}

/// See `dup(2)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dup(fd: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    duplicated(fd, unsafe { next::dup(fd) })
}

/// See `dup2(2)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    duplicated(old, unsafe { next::dup2(old, new) })
}

/// See `dup3(2)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    duplicated(old, unsafe { next::dup3(old, new, flags) })
}

/// After `fcntl`: a duplicate, or flags.
fn controlled(fd: c_int, command: c_int, argument: size_t, result: c_int) -> c_int {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC if table::has(fd) => duplicated(fd, result),
        libc::F_SETFL if result == 0 && table::has(fd) => {
            beside(|| calls::flags_set(fd, argument as c_int));
            result
        }
        _ => result,
    }
}

/// See `fcntl(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: size_t) -> c_int {
    // SAFETY: the program's own arguments.
    controlled(fd, command, argument, unsafe { next::fcntl(fd, command, argument) })
}

/// See `fcntl(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: size_t) -> c_int {
    // SAFETY: the program's own arguments.
    controlled(fd, command, argument, unsafe { next::fcntl64(fd, command, argument) })
}

/// Declares the functions that change a thread's scheduling, which the driver hears of: a caller's priority counts from
/// the next call on.
macro_rules! schedules {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("See `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> c_int {
            // SAFETY: the program's own arguments.
            let result = unsafe { next::$name($($arg),*) };
            sys::sched::was_changed();
            result
        }
    )*};
}

schedules! {
    setpriority(which: c_uint, who: c_uint, nice: c_int);
    nice(more: c_int);
    sched_setscheduler(thread: c_int, policy: c_int, parameters: *const c_void);
    sched_setparam(thread: c_int, parameters: *const c_void);
    pthread_setschedparam(thread: c_ulong, policy: c_int, parameters: *const c_void);
}
