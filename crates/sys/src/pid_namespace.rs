//! Room: a pid namespace for children to start in.
//! Facts: `unshare(2)` `CLONE_NEWPID`, `pid_namespaces(7)`: the caller stays where it is, its next
//! child becomes process 1 of the new namespace, and all in there end with that one.

use std::io;

/// Has the calling thread's next child start in a pid namespace of its own. The thread cannot start
/// threads afterwards, so call this on one that is there for nothing else.
///
/// # Errors
/// `EPERM`: without `CAP_SYS_ADMIN`. `EINVAL`: the kernel has no pid namespaces. `ENOSPC`: too deep.
pub fn unshare_for_children() -> io::Result<()> {
    // SAFETY: unshare takes an integer; CLONE_NEWPID changes only what later children are born into.
    let result = unsafe { libc::unshare(libc::CLONE_NEWPID) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_process_one_of_its_namespace() {
        let child = std::thread::spawn(|| {
            unshare_for_children()?;
            std::process::Command::new("sh").args(["-c", "echo $$"]).output()
        });
        match child.join().expect("the thread ends") {
            Ok(output) => assert_eq!(output.stdout, b"1\n"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}"),
        }
    }
}
