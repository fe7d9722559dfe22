//! The C library's own functions, for calls that pass through.
//!
//! Each is found once, by `dlsym(RTLD_NEXT)`, so that a pass-through keeps all of its properties: it is a cancellation
//! point, and other preloaded libraries see it.
//! Facts: `dlsym(3)`, `pthread_setcancelstate(3)`.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{epoll_event, fd_set, mode_t, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};

/// A function that the libraries after this one define.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null if there is none.
    fn get(&self) -> *mut c_void {
        match self.address.load(Ordering::Relaxed) {
            unknown if unknown.is_null() => self.find(),
            known => known,
        }
    }

    fn find(&self) -> *mut c_void {
        // SAFETY: the name is NUL-terminated; RTLD_NEXT may be used in a library.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Result of a function of the C library.
pub(crate) trait Outcome: Copy + PartialEq {
    /// The result of a call that failed.
    const FAILED: Self;
}

impl Outcome for c_int {
    const FAILED: Self = -1;
}

impl Outcome for isize {
    const FAILED: Self = -1;
}

impl Outcome for *mut c_void {
    const FAILED: Self = std::ptr::null_mut();
}

/// Declares functions of the C library: the name, its parameters, the result.
macro_rules! next {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// The C library's function of this name.
        ///
        /// # Safety
        /// The arguments are what that function takes.
        pub(crate) unsafe fn $name($($arg: $type),*) -> $result {
            static NEXT: Next = Next::new(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            });
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            let address = NEXT.get();
            if address.is_null() {
                set_errno(libc::ENOSYS);
                return Outcome::FAILED;
            }
            // SAFETY: the C library's function of this name has this type; a variadic one takes integers and pointers
            // in the same registers on the targets of this library.
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(address) };
            // SAFETY: the caller's promise.
            unsafe { function($($arg),*) }
        }
    )*};
}

next! {
    open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    stat(path: *const c_char, found: *mut c_void) -> c_int;
    stat64(path: *const c_char, found: *mut c_void) -> c_int;
    lstat(path: *const c_char, found: *mut c_void) -> c_int;
    lstat64(path: *const c_char, found: *mut c_void) -> c_int;
    fstat(fd: c_int, found: *mut c_void) -> c_int;
    fstat64(fd: c_int, found: *mut c_void) -> c_int;
    fstatat(folder: c_int, path: *const c_char, found: *mut c_void, flags: c_int) -> c_int;
    fstatat64(folder: c_int, path: *const c_char, found: *mut c_void, flags: c_int) -> c_int;
    __xstat(version: c_int, path: *const c_char, found: *mut c_void) -> c_int;
    __xstat64(version: c_int, path: *const c_char, found: *mut c_void) -> c_int;
    __lxstat(version: c_int, path: *const c_char, found: *mut c_void) -> c_int;
    __lxstat64(version: c_int, path: *const c_char, found: *mut c_void) -> c_int;
    __fxstat(version: c_int, fd: c_int, found: *mut c_void) -> c_int;
    __fxstat64(version: c_int, fd: c_int, found: *mut c_void) -> c_int;
    __fxstatat(version: c_int, folder: c_int, path: *const c_char, found: *mut c_void, flags: c_int) -> c_int;
    __fxstatat64(version: c_int, folder: c_int, path: *const c_char, found: *mut c_void, flags: c_int) -> c_int;
    statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, found: *mut c_void) -> c_int;
    access(path: *const c_char, mode: c_int) -> c_int;
    eaccess(path: *const c_char, mode: c_int) -> c_int;
    euidaccess(path: *const c_char, mode: c_int) -> c_int;
    faccessat(folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int;
    opendir(path: *const c_char) -> *mut c_void;
    scandir(path: *const c_char, list: *mut c_void, filter: *const c_void, order: *const c_void) -> c_int;
    scandir64(path: *const c_char, list: *mut c_void, filter: *const c_void, order: *const c_void) -> c_int;
    chdir(path: *const c_char) -> c_int;
    getxattr(path: *const c_char, name: *const c_char, value: *mut c_void, room: size_t) -> isize;
    lgetxattr(path: *const c_char, name: *const c_char, value: *mut c_void, room: size_t) -> isize;
    listxattr(path: *const c_char, list: *mut c_char, room: size_t) -> isize;
    llistxattr(path: *const c_char, list: *mut c_char, room: size_t) -> isize;
    readlink(path: *const c_char, target: *mut c_char, room: size_t) -> isize;
    readlinkat(folder: c_int, path: *const c_char, target: *mut c_char, room: size_t) -> isize;
    realpath(path: *const c_char, place: *mut c_char) -> *mut c_void;
    __realpath_chk(path: *const c_char, place: *mut c_char, room: size_t) -> *mut c_void;
    fopen(path: *const c_char, mode: *const c_char) -> *mut c_void;
    fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void;
    fdopen(fd: c_int, mode: *const c_char) -> *mut c_void;
    freopen(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void;
    freopen64(path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void;
    fclose(stream: *mut c_void) -> c_int;
    close(fd: c_int) -> c_int;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    poll(list: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int;
    ppoll(list: *mut pollfd, count: nfds_t, timeout: *const timespec, signals: *const sigset_t) -> c_int;
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, timeout: *mut timeval) -> c_int;
    pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, timeout: *const timespec, signals: *const sigset_t) -> c_int;
    epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(old: c_int, new: c_int) -> c_int;
    dup3(old: c_int, new: c_int, flags: c_int) -> c_int;
    setpriority(which: c_uint, who: c_uint, nice: c_int) -> c_int;
    nice(more: c_int) -> c_int;
    sched_setscheduler(thread: c_int, policy: c_int, parameters: *const c_void) -> c_int;
    sched_setparam(thread: c_int, parameters: *const c_void) -> c_int;
    pthread_setschedparam(thread: c_ulong, policy: c_int, parameters: *const c_void) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: size_t) -> c_int;
    fcntl64(fd: c_int, command: c_int, argument: size_t) -> c_int;
}

/// Maps memory by the system call itself: memory allocators map before `dlsym` may be called.
///
/// # Safety
/// See `mmap(2)`.
pub(crate) unsafe fn mmap(
    address: *mut c_void,
    len: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    #[cfg(target_pointer_width = "64")]
    let (number, offset) = (libc::SYS_mmap, offset as c_long);
    // In units of 4096 bytes.
    #[cfg(target_pointer_width = "32")]
    let (number, offset) = match offset % 4096 {
        0 => (libc::SYS_mmap2, (offset / 4096) as c_long),
        _ => {
            set_errno(libc::EINVAL);
            return libc::MAP_FAILED;
        }
    };
    // SAFETY: the caller's promise.
    let result = unsafe { libc::syscall(number, address, len, protection, flags, fd, offset) };
    std::ptr::with_exposed_provenance_mut(result as usize)
}

/// Unmaps memory by the system call itself.
///
/// # Safety
/// See `munmap(2)`.
pub(crate) unsafe fn munmap(address: *mut c_void, len: size_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, address, len) as c_int }
}

/// The calling thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: takes nothing; the address is the calling thread's own variable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *place }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the address is the calling thread's own variable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above; nobody else has a reference.
    unsafe { *place = errno };
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Keeps the calling thread from being cancelled. Returns the state before.
pub(crate) fn hold_cancellation() -> c_int {
    /// `PTHREAD_CANCEL_DISABLE` of the GNU C library.
    const HELD: c_int = 1;
    let mut before = 0;
    // SAFETY: the state before is stored in a variable that lives through the call.
    unsafe { pthread_setcancelstate(HELD, &raw mut before) };
    before
}

/// Restores what [`hold_cancellation`] returned.
pub(crate) fn restore_cancellation(before: c_int) {
    let mut held = 0;
    // SAFETY: as above; the state is one that the function returned.
    unsafe { pthread_setcancelstate(before, &raw mut held) };
}
