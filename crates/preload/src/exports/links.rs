//! C library's functions that read a link, or a path without links.
//! Facts: `readlink(2)`, `realpath(3)`, `canonicalize_file_name(3)`.

use std::ffi::{c_char, c_int, c_void};
use std::io;

use libc::size_t;
use sys::errno::EINVAL;
use sys::own_memory::ArgumentMemory;

use super::outcome;
use super::paths::{Changes, Named, either, looks, text};
use crate::next::{self, Outcome};
use crate::{lookup, table};

/// Stores the beginning of a text, as `readlink(2)` does. Returns how much of it.
///
/// # Safety
/// The program named `target` to be stored into.
///
/// # Errors
/// `EINVAL`: no room. `EFAULT`.
unsafe fn store(text: &[u8], target: *mut c_char, room: size_t) -> io::Result<isize> {
    // To the kernel it is an int.
    if room as c_int <= 0 {
        return Err(io::Error::from_raw_os_error(EINVAL));
    }
    let text = text.get(..room).unwrap_or(text);
    // SAFETY: the caller's promise; nothing else is stored into.
    let memory = unsafe { ArgumentMemory::of_this_call() };
    memory.write(target.expose_provenance() as u64, text)?;
    Ok(text.len() as isize)
}

/// A link's target: below `/proc`, that of a device's or a folder's descriptor.
///
/// # Safety
/// `path` is null or ends with a NUL; the program named `target` to be stored into.
unsafe fn link(
    (folder, path): (c_int, *const c_char),
    target: *mut c_char,
    room: size_t,
    run: impl Fn(*const c_char) -> isize,
) -> isize {
    // SAFETY: the caller's promise.
    let text = unsafe { text(path) }.to_bytes();
    if let Some(file) = lookup::descriptor(text) {
        return outcome(-1, || {
            // SAFETY: the caller's promise.
            let count = unsafe { store(file.place().path.as_bytes(), target, room) };
            table::release(file);
            count
        });
    }
    // SAFETY: the caller's promise.
    let count = unsafe { looks((folder, path, false), run) };
    if count <= 0 || !lookup::is_below_proc(text) {
        return count;
    }
    // SAFETY: the C library has stored so many bytes there.
    let stored = unsafe { std::slice::from_raw_parts(target.cast::<u8>(), count as usize) };
    outcome(-1, || match lookup::outward(stored) {
        // SAFETY: the caller's promise.
        Some(seen) => unsafe { store(seen.as_bytes(), target, room) },
        None => Ok(count),
    })
}

/// See `readlink(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readlink(path: *const c_char, target: *mut c_char, room: size_t) -> isize {
    // SAFETY: the program's own arguments.
    let run = |path| unsafe { next::readlink(path, target, room) };
    // SAFETY: the program's own arguments.
    unsafe { link((libc::AT_FDCWD, path), target, room, run) }
}

/// See `readlink(2)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readlinkat(
    folder: c_int,
    path: *const c_char,
    target: *mut c_char,
    room: size_t,
) -> isize {
    // SAFETY: the program's own arguments.
    let run = |path| unsafe { next::readlinkat(folder, path, target, room) };
    // SAFETY: the program's own arguments.
    unsafe { link((folder, path), target, room, run) }
}

/// See `readlink(2)`; the size of the room was checked by the compiler.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __readlink_chk(
    path: *const c_char,
    target: *mut c_char,
    room: size_t,
    _: size_t,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { readlink(path, target, room) }
}

/// See `readlink(2)`; the size of the room was checked by the compiler.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __readlinkat_chk(
    folder: c_int,
    path: *const c_char,
    target: *mut c_char,
    room: size_t,
    _: size_t,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { readlinkat(folder, path, target, room) }
}

/// See `realpath(3)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn realpath(path: *const c_char, place: *mut c_char) -> *mut c_void {
    // SAFETY: the program's own arguments.
    let named = Named { folder: libc::AT_FDCWD, path: unsafe { text(path) }, follow: true };
    // SAFETY: the program's own arguments.
    let pass = || unsafe { next::realpath(path, place) };
    either(named, Changes::Nothing, pass, |found| {
        let Some(real) = outcome(None, || lookup::real(found).map(Some)) else {
            return Outcome::FAILED;
        };
        if place.is_null() {
            // SAFETY: a text that ends with a NUL. The program frees its copy.
            return unsafe { libc::strdup(real.as_ptr()) }.cast();
        }
        // SAFETY: the program's room is that for the longest path, and this one is not longer.
        unsafe { libc::strcpy(place, real.as_ptr()) }.cast()
    })
}

/// See `realpath(3)`; the compiler knows the size of the room. What the C library does with one that is too small is its own to do.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __realpath_chk(
    path: *const c_char,
    place: *mut c_char,
    room: size_t,
) -> *mut c_void {
    if room < sys::path::LONGEST {
        // SAFETY: the program's own arguments.
        return unsafe { next::__realpath_chk(path, place, room) };
    }
    // SAFETY: the caller's promise.
    unsafe { realpath(path, place) }
}

/// See `canonicalize_file_name(3)`.
///
/// # Safety
/// The arguments are what the C library's function takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn canonicalize_file_name(path: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { realpath(path, std::ptr::null_mut()) }
}
