//! C library's functions that take a path: to a file of the driver's, or to the machine's.
//!
//! Not here: the logic ([`crate::lookup`]), the texts of links and paths without them (`links`), streams (`streams`).
//! Facts: the manual pages of each; `ld.so(8)`; the C library's headers on `__xstat` and its like, which programs built before
//! version 2.33 call for `stat`.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io;
use std::sync::Arc;

use embedded::device_path::Found;
use libc::{mode_t, size_t};

use super::{beside, outcome};
use crate::file::{OpenFile, Place};
use crate::next::{self, Outcome, errno, set_errno};
use crate::{calls, lookup, table};

/// The text of a path; an empty one if there is none.
///
/// # Safety
/// `path` is null or ends with a NUL, and stays as it is while the result lives.
pub(super) unsafe fn text<'p>(path: *const c_char) -> &'p CStr {
    match path.is_null() {
        true => c"",
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(path) },
    }
}

/// A path as a call names it.
#[derive(Clone, Copy)]
pub(super) struct Named<'p> {
    pub(super) folder: c_int,
    pub(super) path: &'p CStr,
    /// The call follows a link at its end.
    pub(super) follow: bool,
}

/// The change that a call makes where it finds no file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changes {
    Nothing,
    /// It makes one.
    Makes,
    /// It closes another one, whatever it finds.
    Closes,
}

impl Named<'_> {
    /// True if the kernel finds no file there.
    fn is_missing(self) -> bool {
        let before = errno();
        // SAFETY: a path that ends with a NUL.
        let found = unsafe { next::faccessat(self.folder, self.path.as_ptr(), libc::F_OK, 0) };
        let missing = found < 0 && lookup::may_be_ours(errno());
        set_errno(before);
        missing
    }

    /// True if a link is there.
    fn is_link(self) -> bool {
        let (before, mut start) = (errno(), [0]);
        // SAFETY: a path that ends with a NUL, and a buffer of that length.
        let count =
            unsafe { next::readlinkat(self.folder, self.path.as_ptr(), start.as_mut_ptr(), start.len()) };
        set_errno(before);
        count > 0
    }

    /// True if a folder that is open may be the one in place of ours.
    fn begins_in_open_folder(self) -> bool {
        let path = self.path.to_bytes();
        !path.starts_with(b"/") || path.starts_with(b"/proc/")
    }

    /// True if the kernel finds no folder for the file.
    fn has_no_folder(self) -> bool {
        let path = self.path.to_bytes();
        let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let folder = path.get(..end).and_then(|folder| CString::new(folder).ok());
        folder.is_some_and(|folder| Named { path: &folder, ..self }.is_missing())
    }

    /// True if the kernel might change something although the file is the driver's.
    fn is_asked_first(self, changes: Changes) -> bool {
        match changes {
            Changes::Nothing => false,
            Changes::Makes => (self.begins_in_open_folder() || self.is_link()) && self.is_missing(),
            Changes::Closes => self.is_missing(),
        }
    }

    /// True if a path with which the kernel failed may be the driver's. A file that is only missing from its folder is not.
    fn may_be_ours(self, failed: c_int) -> bool {
        let is_elsewhere = || self.begins_in_open_folder() || self.is_link() || self.has_no_folder();
        lookup::may_be_ours(failed) && (failed != libc::ENOENT || is_elsewhere())
    }
}

/// Calls `ours` if a path leads to a file of the driver's, else `pass`, which is called first where that changes nothing.
pub(super) fn either<T: Outcome>(
    named: Named<'_>,
    changes: Changes,
    pass: impl FnOnce() -> T,
    ours: impl FnOnce(&Found) -> T,
) -> T {
    let Named { folder, path, follow } = named;
    let path = path.to_bytes();
    let find = || outcome(None, || Ok(lookup::find(folder, path, follow)));
    if lookup::is_likely(path) || named.is_asked_first(changes) {
        return match find() {
            Some(found) => ours(&found),
            None => pass(),
        };
    }
    let result = pass();
    if changes == Changes::Closes || result != T::FAILED || !named.may_be_ours(errno()) {
        return result;
    }
    match find() {
        Some(found) => ours(&found),
        None => result,
    }
}

/// Calls `run` with another path.
pub(super) fn with<T: Outcome>(
    path: impl FnOnce() -> io::Result<CString>,
    run: impl FnOnce(*const c_char) -> T,
) -> T {
    match outcome(None, || path().map(Some)) {
        Some(path) => run(path.as_ptr()),
        None => T::FAILED,
    }
}

/// Calls `run` with the path of what is to be looked at.
///
/// # Safety
/// `path` is null or ends with a NUL.
pub(super) unsafe fn looks<T: Outcome>(
    (folder, path, follow): (c_int, *const c_char, bool),
    run: impl Fn(*const c_char) -> T,
) -> T {
    // SAFETY: the caller's promise.
    let named = Named { folder, path: unsafe { text(path) }, follow };
    if follow
        && let Some(file) = lookup::descriptor(named.path.to_bytes())
        && let Some(result) = looks_at(file, &run)
    {
        return result;
    }
    either(named, Changes::Nothing, || run(path), |found| with(|| lookup::stand_in(found), &run))
}

/// Calls `run` with the path of what is to be looked at in place of a device; `None` if it is gone: the descriptor is still there.
fn looks_at<T: Outcome>(file: Arc<OpenFile>, run: impl FnOnce(*const c_char) -> T) -> Option<T> {
    let before = errno();
    let path = || {
        let path = sys::path::terminated(file.stand_in());
        table::release(file);
        path
    };
    let result = with(path, run);
    if result == T::FAILED && errno() == libc::ENOENT {
        set_errno(before);
        return None;
    }
    Some(result)
}

/// Opens what a path leads to, with flags of `open(2)`. `device` makes the call's result of a device's descriptor, or of -1.
///
/// # Safety
/// `path` is null or ends with a NUL.
pub(super) unsafe fn opens<T: Outcome>(
    (folder, path, flags): (c_int, *const c_char, c_int),
    changes: Changes,
    pass: impl Fn(*const c_char) -> T,
    device: impl FnOnce(c_int) -> T,
) -> T {
    let has = |flag| flags & flag != 0;
    let looks_only = has(libc::O_PATH);
    let creates = has(libc::O_CREAT) && !looks_only;
    let follow = !(has(libc::O_NOFOLLOW) || creates && has(libc::O_EXCL));
    // SAFETY: the caller's promise.
    let named = Named { folder, path: unsafe { text(path) }, follow };
    let open = |place: &Place<'_>| outcome(-1, || calls::open(place, flags));
    if follow && let Some(file) = lookup::descriptor(named.path.to_bytes()) {
        if looks_only {
            return looks_at(file, &pass).unwrap_or_else(|| pass(path));
        }
        let fd = open(&file.place());
        beside(|| table::release(file));
        return device(fd);
    }
    either(
        named,
        if creates { changes.max(Changes::Makes) } else { changes },
        || pass(path),
        |found| match found {
            Found::Device { path, name } if !looks_only => {
                device(open(&Place { directory: None, name, path }))
            }
            found => with(|| lookup::opened(found, flags), &pass),
        },
    )
}

/// Declares the functions that open a path: those in a directory, too.
macro_rules! opens {
    ($($name:ident($($folder:ident)?) $($mode:ident)?, $next:ident;)*) => {$(
        #[doc = concat!("See `", stringify!($next), "(2)`.")]
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            $($folder: c_int,)? path: *const c_char, flags: c_int $(, $mode: mode_t)?
        ) -> c_int {
            #[allow(unused_mut, unused_assignments)]
            let mut permissions: mode_t = 0;
            $(permissions = $mode;)?
            #[allow(unused_mut, unused_assignments)]
            let mut from = libc::AT_FDCWD;
            $(from = $folder;)?
            // SAFETY: the program's own arguments.
            let pass = |path| unsafe { next::$next($($folder,)? path, flags, permissions) };
            // SAFETY: the caller passes a path.
            unsafe { opens((from, path, flags), Changes::Nothing, pass, |fd| fd) }
        }
    )*};
}

opens! {
    open() mode, open;
    open64() mode, open64;
    openat(folder) mode, openat;
    openat64(folder) mode, openat64;
    __open_2(), open;
    __open64_2(), open64;
    __openat_2(folder), openat;
    __openat64_2(folder), openat64;
}

/// Declares the functions that make a file that is not there.
macro_rules! creates {
    ($($name:ident, $by_flags:ident;)*) => {$(
        /// See `creat(2)`.
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, mode: mode_t) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $by_flags(path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
        }
    )*};
}

creates! {
    creat, open;
    creat64, open64;
}

/// Declares functions that look at what a path leads to: the arguments before it, whether they follow a link at its end, those after.
macro_rules! looks {
    ($($name:ident([$($before:ident: $type_before:ty),*], path, [$($after:ident: $type:ty),*]) -> $result:ty, $folder:expr, $follow:expr;)*) => {$(
        #[doc = concat!("See `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            $($before: $type_before,)* path: *const c_char $(, $after: $type)*
        ) -> $result {
            // SAFETY: the program's own arguments, and a path in the place of one of them.
            let run = |path| unsafe { next::$name($($before,)* path $(, $after)*) };
            // SAFETY: the caller passes a path.
            unsafe { looks(($folder, path, $follow), run) }
        }
    )*};
}

looks! {
    stat([], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, true;
    stat64([], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, true;
    lstat([], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, false;
    lstat64([], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, false;
    __xstat([version: c_int], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, true;
    __xstat64([version: c_int], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, true;
    __lxstat([version: c_int], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, false;
    __lxstat64([version: c_int], path, [found: *mut c_void]) -> c_int, libc::AT_FDCWD, false;
    access([], path, [mode: c_int]) -> c_int, libc::AT_FDCWD, true;
    eaccess([], path, [mode: c_int]) -> c_int, libc::AT_FDCWD, true;
    euidaccess([], path, [mode: c_int]) -> c_int, libc::AT_FDCWD, true;
    faccessat([folder: c_int], path, [mode: c_int, flags: c_int]) -> c_int, folder, flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    opendir([], path, []) -> *mut c_void, libc::AT_FDCWD, true;
    scandir([], path, [list: *mut c_void, filter: *const c_void, order: *const c_void]) -> c_int, libc::AT_FDCWD, true;
    scandir64([], path, [list: *mut c_void, filter: *const c_void, order: *const c_void]) -> c_int, libc::AT_FDCWD, true;
    chdir([], path, []) -> c_int, libc::AT_FDCWD, true;
    getxattr([], path, [name: *const c_char, value: *mut c_void, room: size_t]) -> isize, libc::AT_FDCWD, true;
    lgetxattr([], path, [name: *const c_char, value: *mut c_void, room: size_t]) -> isize, libc::AT_FDCWD, false;
    listxattr([], path, [list: *mut c_char, room: size_t]) -> isize, libc::AT_FDCWD, true;
    llistxattr([], path, [list: *mut c_char, room: size_t]) -> isize, libc::AT_FDCWD, false;
}

/// Declares functions that look at what a descriptor names, by the function that looks at a path.
macro_rules! looks_at {
    ($($name:ident($($before:ident: $type:ty,)?), $by_path:ident;)*) => {$(
        #[doc = concat!("See `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($before: $type,)? fd: c_int, found: *mut c_void) -> c_int {
            // SAFETY: the program's own arguments, and a path.
            let by_path = |path| unsafe { next::$by_path($($before,)? path, found) };
            match table::find(fd).and_then(|file| looks_at(file, by_path)) {
                Some(result) => result,
                // SAFETY: the program's own arguments.
                None => unsafe { next::$name($($before,)? fd, found) },
            }
        }
    )*};
}

looks_at! {
    fstat(), stat;
    fstat64(), stat64;
    __fxstat(version: c_int,), __xstat;
    __fxstat64(version: c_int,), __xstat64;
}

/// Calls `run` with the path of what a folder and a path lead to, which may be the folder's descriptor itself.
///
/// # Safety
/// `path` is null or ends with a NUL.
unsafe fn looks_in(
    (folder, path, flags): (c_int, *const c_char, c_int),
    run: impl Fn(*const c_char) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let is_empty = unsafe { text(path) }.is_empty() && flags & libc::AT_EMPTY_PATH != 0;
    if is_empty
        && let Some(file) = table::find(folder)
        && let Some(result) = looks_at(file, &run)
    {
        return result;
    }
    // SAFETY: the caller's promise.
    unsafe { looks((folder, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0), run) }
}

/// Declares functions of the kind of `fstatat`.
macro_rules! looks_in {
    ($($name:ident([$($first:ident: $type_first:ty)?], folder, path, [$($before:ident: $type_before:ty)?], flags, [$($after:ident: $type:ty),*]);)*) => {$(
        #[doc = concat!("See `", stringify!($name), "(2)`.")]
        ///
        /// # Safety
        /// The arguments are what the C library's function takes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            $($first: $type_first,)? folder: c_int, path: *const c_char, $($before: $type_before,)? flags: c_int $(, $after: $type)*
        ) -> c_int {
            // SAFETY: the program's own arguments, and a path in the place of one of them.
            let run = |path| unsafe { next::$name($($first,)? folder, path, $($before,)? flags $(, $after)*) };
            // SAFETY: the caller passes a path.
            unsafe { looks_in((folder, path, flags), run) }
        }
    )*};
}

looks_in! {
    fstatat([], folder, path, [found: *mut c_void], flags, []);
    fstatat64([], folder, path, [found: *mut c_void], flags, []);
    __fxstatat([version: c_int], folder, path, [found: *mut c_void], flags, []);
    __fxstatat64([version: c_int], folder, path, [found: *mut c_void], flags, []);
    statx([], folder, path, [], flags, [mask: c_uint, found: *mut c_void]);
}
