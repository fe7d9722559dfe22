//! Namespaces of the calling thread's own, and of its process if that has one thread: of mounts, and of users.
//! Facts: `unshare(2)`, `mount_namespaces(7)`, `user_namespaces(7)`.

use std::io;

use crate::errno::check;

/// Gives the calling thread a list of mounts of its own: what it mounts from now on no other process sees, and it goes with the
/// thread and what it starts.
///
/// # Errors
/// `EPERM`: needs `CAP_SYS_ADMIN`.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: unshare takes an integer; CLONE_NEWNS changes only which mounts the calling thread sees.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (none, root) = (c"none", c"/");
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: both texts are NUL-terminated and outlive the call; these flags change only how the calling thread's own list
    // of mounts, made above, takes part in that of others. The type and the data may be null with them.
    check(unsafe { libc::mount(none.as_ptr(), root.as_ptr(), std::ptr::null(), flags, std::ptr::null()) })
}

/// Gives this process a user namespace of its own, with all capabilities in it and an empty map of ids, and in that a list of
/// mounts. The process must have one thread.
///
/// # Errors
/// `EPERM`: the machine forbids it. `EINVAL`: more threads than one, or a kernel without such namespaces. `ENOSPC`: too many.
pub fn own_users() -> io::Result<()> {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
    // SAFETY: unshare takes an integer; these flags change only what this process may do and sees.
    check(unsafe { libc::unshare(flags) })
}
