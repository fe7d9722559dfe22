//! System calls of a machine's first process: reap any child, end one or all processes, power off.
//! Not here: the guest's life around it (`vm::guest`).

use std::io;

use crate::errno::check;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It called `exit` with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// Waits until any child ends and reaps it, orphans that were handed to the first process included.
///
/// # Errors
/// `ECHILD`: there is no child left. `EINTR` is retried.
pub fn reap_any() -> io::Result<(u32, Ending)> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a live c_int that waitpid stores into.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if pid < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        let ending = if libc::WIFSIGNALED(status) {
            Ending::Signal(libc::WTERMSIG(status))
        } else {
            Ending::Code(libc::WEXITSTATUS(status))
        };
        return Ok((pid.unsigned_abs(), ending));
    }
}

/// Sends SIGKILL to every process but the caller. Refused unless the caller is process 1, because
/// anywhere else it would end the user's whole session.
///
/// # Errors
/// `EPERM`: the caller is not process 1. `ESRCH`: nobody else is alive.
pub fn kill_everyone_else() -> io::Result<()> {
    only_as_pid_one()?;
    // SAFETY: kill(2) takes integers; process 1 is exempt from its own broadcast.
    check(unsafe { libc::kill(-1, libc::SIGKILL) })
}

/// Sends SIGTERM to a process. Refused unless the caller is process 1.
///
/// # Errors
/// `EPERM`: the caller is not process 1. `ESRCH`: there is no such process.
pub fn terminate(pid: u32) -> io::Result<()> {
    only_as_pid_one()?;
    // A number above i32::MAX is no process id, and a negative one would mean a group.
    let pid = i32::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: kill(2) takes integers; this one process is meant.
    check(unsafe { libc::kill(pid, libc::SIGTERM) })
}

/// Switches the machine off. Refused unless the caller is process 1.
///
/// # Errors
/// `EPERM`: the caller is not process 1. Returns only on failure.
pub fn power_off() -> io::Result<()> {
    only_as_pid_one()?;
    // SAFETY: reboot(2) takes an integer command; nothing on disk is at stake in process 1's guest.
    check(unsafe { libc::reboot(libc::RB_POWER_OFF) })
}

fn only_as_pid_one() -> io::Result<()> {
    if std::process::id() == 1 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_but_process_one_ends_the_machine() {
        assert_eq!(kill_everyone_else().expect_err("not process 1").raw_os_error(), Some(libc::EPERM));
        assert_eq!(terminate(1).expect_err("not process 1").raw_os_error(), Some(libc::EPERM));
        assert_eq!(power_off().expect_err("not process 1").raw_os_error(), Some(libc::EPERM));
    }
}
