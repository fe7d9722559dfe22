//! C library's functions that open and close a stream: they open and close descriptors without its other functions.
//! Facts: `fopen(3)`, `fclose(3)`, `freopen(3)`.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};

use super::paths::{Changes, opens, text};
use super::{beside, closing};
use crate::next::{self, Outcome};
use crate::table;

/// Flags of `open(2)` for a mode of `fopen(3)`.
fn flags_of(mode: &[u8]) -> c_int {
    let mode = mode.split(|letter| *letter == b',').next().unwrap_or_default();
    let if_has = |letter: u8, flag| if mode.contains(&letter) { flag } else { 0 };
    let access = match mode.first() {
        _ if mode.contains(&b'+') => libc::O_RDWR,
        Some(b'r') => libc::O_RDONLY,
        _ => libc::O_WRONLY,
    };
    let makes = if_has(b'w', libc::O_CREAT | libc::O_TRUNC) | if_has(b'a', libc::O_CREAT);
    access | makes | if_has(b'x', libc::O_EXCL) | if_has(b'e', libc::O_CLOEXEC)
}

/// Makes a stream of a device's new descriptor, or null of -1.
///
/// # Safety
/// `mode` ends with a NUL.
unsafe fn stream_of(fd: c_int, mode: *const c_char) -> *mut c_void {
    if fd < 0 {
        return Outcome::FAILED;
    }
    // SAFETY: the caller's promise.
    let stream: *mut c_void = unsafe { next::fdopen(fd, mode) };
    if stream.is_null() {
        super::close(fd);
    }
    stream
}

/// Declares the functions that open a stream.
macro_rules! streams {
    ($($name:ident;)*) => {$(
        /// See `fopen(3)`.
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, mode: *const c_char) -> *mut c_void {
            // SAFETY: the program's own arguments.
            let flags = flags_of(unsafe { text(mode) }.to_bytes());
            // SAFETY: the program's own arguments, or a path in the place of one of them.
            let pass = |path| unsafe { next::$name(path, mode) };
            // SAFETY: the program's mode.
            let device = |fd| unsafe { stream_of(fd, mode) };
            // SAFETY: the caller passes a path.
            unsafe { opens((libc::AT_FDCWD, path, flags), Changes::Nothing, pass, device) }
        }
    )*};
}

streams! {
    fopen;
    fopen64;
}

/// The descriptor of a stream.
///
/// # Safety
/// The stream is open.
unsafe fn number_of(stream: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    beside(|| unsafe { libc::fileno(stream.cast()) })
}

/// Calls `run`, which closes a stream's descriptor.
///
/// # Safety
/// The stream is open.
unsafe fn closes<T>(stream: *mut c_void, run: impl FnOnce() -> T) -> T {
    // SAFETY: the caller's promise.
    let Some(closing) = closing(unsafe { number_of(stream) }) else { return run() };
    // A thread that was cancelled in there would leave the content open.
    let cancelled = next::hold_cancellation();
    let result = run();
    beside(|| closing.finish());
    next::restore_cancellation(cancelled);
    result
}

/// See `fclose(3)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fclose(stream: *mut c_void) -> c_int {
    // SAFETY: the program's own arguments.
    let run = || unsafe { next::fclose(stream) };
    // SAFETY: the caller's stream is open.
    unsafe { closes(stream, run) }
}

/// Opens a stream anew by `reopen`, which closes what the stream had open, whatever comes of it.
///
/// # Safety
/// `path` is null or ends with a NUL, `mode` ends with one, and the stream is open.
unsafe fn reopens(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut c_void,
    reopen: impl Fn(*const c_char) -> *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let flags = flags_of(unsafe { text(mode) }.to_bytes());
    // SAFETY: the caller's promise.
    let number = unsafe { number_of(stream) };
    // Without a path, its own file.
    let own = (path.is_null() && table::has(number)).then(|| format!("/proc/self/fd/{number}\0"));
    let path = own.as_ref().map_or(path, |own| own.as_ptr().cast());
    let is_closed = Cell::new(false);
    let pass = |path| {
        is_closed.set(true);
        // SAFETY: the caller's promise.
        unsafe { closes(stream, || reopen(path)) }
    };
    // No function gives a stream a descriptor: it gets a file, whose number then names the device.
    let device = |fd| {
        let mut result = if fd < 0 { Outcome::FAILED } else { pass(c"/dev/null".as_ptr()) };
        // SAFETY: the stream was opened anew.
        if !result.is_null() && super::dup3(fd, unsafe { number_of(result) }, flags & libc::O_CLOEXEC) < 0 {
            result = Outcome::FAILED;
        }
        if fd >= 0 {
            beside(|| super::close(fd));
        }
        result
    };
    // SAFETY: the caller's promise.
    let result = unsafe { opens((libc::AT_FDCWD, path, flags), Changes::Closes, pass, device) };
    if result.is_null() && !is_closed.get() {
        // A file that is nowhere.
        beside(|| pass(c"".as_ptr()).is_null());
    }
    result
}

/// Declares the functions that open a stream anew.
macro_rules! reopens {
    ($($name:ident;)*) => {$(
        /// See `freopen(3)`.
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            path: *const c_char, mode: *const c_char, stream: *mut c_void
        ) -> *mut c_void {
            // SAFETY: the program's own arguments, or a path in the place of one of them.
            let reopen = |path| unsafe { next::$name(path, mode, stream) };
            // SAFETY: the program's own arguments.
            unsafe { reopens(path, mode, stream, reopen) }
        }
    )*};
}

reopens! {
    freopen;
    freopen64;
}
