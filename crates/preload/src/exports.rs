//! C library's functions as the program calls them: device or not, then the driver or the C library's own function.
//!
//! A function owns nothing while it calls the C library's: a cancelled thread ends inside of it.
//! Not here: the logic ([`crate::calls`] and its neighbours), functions with paths (`paths`, `links`, `streams`), waiting (`waiting`).
//! Facts: the manual pages of each; `pthreads(7)`, "Cancellation points".

pub mod links;
pub mod paths;
pub mod streams;
pub mod waiting;

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::codes;
use libc::{off_t, off64_t, size_t};
use sys::errno::EIO;
use sys::own_memory::ArgumentMemory;

use crate::calls::{self, Closing};
use crate::next::{self, errno, set_errno};
use crate::{ioctl, lookup, owner, table, watches};

/// Runs the library's code, with the outcome that a system call would have: a negative `failed` with `errno`, else its
/// result and `errno` as it was. A defect of the library is `EIO`, and not the end of the program. The thread is not cancelled
/// meanwhile, as it would not be in an ioctl, although the driver waits by calls that are cancellation points.
pub(crate) fn outcome<T>(failed: T, run: impl FnOnce() -> io::Result<T>) -> T {
    let inside = lookup::INSIDE.replace(true);
    let result = waits(failed, run);
    lookup::INSIDE.set(inside);
    result
}

/// An [`outcome`] of code that waits and names no file of the driver's: a signal handler that runs meanwhile finds them.
fn waits<T>(failed: T, run: impl FnOnce() -> io::Result<T>) -> T {
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

/// Runs the library's code, which has no outcome, and preserves `errno`.
fn beside<T: Default>(run: impl FnOnce() -> T) -> T {
    outcome(T::default(), || Ok(run()))
}

/// Before the program's first instruction, binds the table to this process and registers the handlers of forks.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    owner::take();
    let (before, parent, child) = (table::before_fork, table::after_fork, table::after_fork_in_child);
    // SAFETY: the handlers live as long as the library, which is never unloaded (`-z nodelete`).
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    beside(lookup::begin);
}

/// Entries that closing a descriptor takes out of the table.
fn closing(fd: c_int) -> Option<Closing> {
    if table::has(fd) || watches::has(fd) { beside(|| calls::closing(fd..=fd)) } else { None }
}

/// See `close(2)`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn close(fd: c_int) -> c_int {
    match closing(fd) {
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
        if request_word == codes::ioctl::CTL_ADD && beside(|| lookup::is_control(fd)) {
            return outcome(-1, || {
                // SAFETY: the program named this range to the kernel's driver, to be stored into.
                let memory = unsafe { ArgumentMemory::of_this_call() };
                lookup::add_device(&memory, argument.expose_provenance() as u64).map(|()| 0)
            });
        }
        // SAFETY: the program's own arguments.
        return unsafe { next::ioctl(fd, request, argument) };
    };
    if matches!(request_word, FIOCLEX | FIONCLEX) {
        beside(|| table::release(file));
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
    waits(-1, || {
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
        libc::F_GETFL if result >= 0 && table::has(fd) => beside(|| calls::flags(fd, result)),
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
