//! The effective uid of the calling thread, which may differ from other threads' of the process.
//! Not here: the uid of a process that is started (`std::os::unix::process::CommandExt::uid`).
//! Facts: `setresuid(2)`, C library/kernel differences: the system call changes the calling thread only, a
//! C library's function of that name changes all threads of the process.

use std::io;
use std::os::unix::fs::MetadataExt;

use crate::errno::check;

/// The calling thread's effective uid.
#[must_use]
pub fn effective_uid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    let uid = unsafe { libc::syscall(libc::SYS_geteuid) };
    uid as u32
}

/// The calling thread's effective gid.
#[must_use]
pub fn effective_gid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    let gid = unsafe { libc::syscall(libc::SYS_getegid) };
    gid as u32
}

/// Leaves an uid as it is.
const KEEP: libc::uid_t = libc::uid_t::MAX;

/// Changes the calling thread's effective uid. The saved one stays, so the thread can go back.
///
/// # Errors
/// `EPERM`: the thread is not privileged, and `uid` is none of its own three.
pub fn set_effective_uid(uid: u32) -> io::Result<()> {
    // SAFETY: setresuid takes three integers and touches no memory of this process. Rights that the
    // thread loses make later system calls fail, which is no matter of memory safety.
    check(unsafe { libc::syscall(libc::SYS_setresuid, KEEP, uid, KEEP) })
}

/// The effective uid of a process, as the owner of its directory in procfs: root's if it may not be looked into.
///
/// # Errors
/// `ENOENT`: there is no such process.
pub fn owner_of(pid: u32) -> io::Result<u32> {
    std::fs::metadata(format!("/proc/{pid}")).map(|found| found.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_uid_is_the_owner_of_the_process() {
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("procfs"));
        assert_eq!(effective_uid(), owner);
    }

    /// The calling thread's real, effective and saved uid.
    fn uids() -> Vec<u32> {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("own status");
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("the uids");
        line.split_whitespace().take(3).map(|uid| uid.parse().expect("an uid")).collect()
    }

    #[test]
    fn only_the_calling_thread_changes() {
        let before = uids();
        let other = std::thread::spawn(|| {
            let own = uids();
            // Without privileges only the own uids are allowed.
            let wanted = if own[1] == 0 { 65534 } else { own[0] };
            set_effective_uid(wanted).expect("another effective uid");
            let changed = uids();
            set_effective_uid(own[1]).expect("the saved uid may come back");
            (own, wanted, changed, uids())
        });
        let (own, wanted, changed, after) = other.join().expect("the thread ends");
        assert_eq!(changed, [own[0], wanted, own[2]]);
        assert_eq!((&after, &uids()), (&own, &before));
    }
}
