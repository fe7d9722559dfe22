//! Numbers of system calls and of their flags, for filters (`seccomp`).
//! Facts: the kernel's tables of system calls.

use libc::c_long;

pub use libc::{
    AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, F_DUPFD, F_DUPFD_CLOEXEC, F_GETFL, MAP_ANONYMOUS,
    O_ACCMODE, O_CLOEXEC, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_PATH, O_RDWR, O_TRUNC,
    O_WRONLY, PROT_WRITE, SYS_dup as DUP, SYS_dup3 as DUP3, SYS_epoll_pwait as EPOLL_PWAIT,
    SYS_epoll_pwait2 as EPOLL_PWAIT2, SYS_faccessat as FACCESSAT, SYS_faccessat2 as FACCESSAT2,
    SYS_fcntl as FCNTL, SYS_fstat as FSTAT, SYS_getxattr as GETXATTR, SYS_ioctl as IOCTL,
    SYS_lgetxattr as LGETXATTR, SYS_listxattr as LISTXATTR, SYS_llistxattr as LLISTXATTR,
    SYS_openat as OPENAT, SYS_openat2 as OPENAT2, SYS_ppoll as PPOLL, SYS_pselect6 as PSELECT6,
    SYS_readlinkat as READLINKAT, SYS_statx as STATX,
};

/// 32-bit machines have it under another name.
#[cfg(target_pointer_width = "32")]
pub use libc::SYS_fstatat64 as NEWFSTATAT;
#[cfg(target_pointer_width = "64")]
pub use libc::SYS_newfstatat as NEWFSTATAT;

#[cfg(target_pointer_width = "64")]
pub use libc::SYS_mmap as MMAP;
/// 32-bit machines count its offset in pages.
#[cfg(target_pointer_width = "32")]
pub use libc::SYS_mmap2 as MMAP;

/// Number of a system call.
pub type Number = c_long;

/// Calls that only older kinds of machines have, with successors everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Old {
    /// `open`.
    pub open: c_long,
    /// `creat`.
    pub creat: c_long,
    /// `dup2`.
    pub dup2: c_long,
    /// `poll`.
    pub poll: c_long,
    /// `select`.
    pub select: c_long,
    /// `epoll_wait`.
    pub epoll_wait: c_long,
    /// `stat`.
    pub stat: c_long,
    /// `lstat`.
    pub lstat: c_long,
    /// `access`.
    pub access: c_long,
    /// `readlink`.
    pub readlink: c_long,
}

/// Those of this kind of machine.
#[cfg(target_arch = "x86_64")]
pub const OLD: Option<Old> = Some(Old {
    open: libc::SYS_open,
    creat: libc::SYS_creat,
    dup2: libc::SYS_dup2,
    poll: libc::SYS_poll,
    select: libc::SYS_select,
    epoll_wait: libc::SYS_epoll_wait,
    stat: libc::SYS_stat,
    lstat: libc::SYS_lstat,
    access: libc::SYS_access,
    readlink: libc::SYS_readlink,
});
/// Those of this kind of machine.
#[cfg(not(target_arch = "x86_64"))]
pub const OLD: Option<Old> = None;
