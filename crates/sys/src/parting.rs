//! Parting from a process that answers no more: is it stopped, killing it, ending the connections to it.
//! Not here: noticing the end of one (`other_process`), children (`child`).
//! Facts: `proc_pid_stat(5)`: state `T` is stopped by a signal, `t` by a debugger; `unix(7)` `SO_PEERCRED`; `shutdown(2)`.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::errno::check;

/// Whether a process was stopped by a signal and not continued; one that is gone is not.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may hold any character.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Kills a process, even one that is stopped.
///
/// # Errors
/// `ESRCH`, `EPERM`.
pub fn kill(pid: u32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0);
    let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(crate::errno::ESRCH))?;
    // SAFETY: kill takes integers; a positive number names one process.
    check(unsafe { libc::kill(pid, libc::SIGKILL) })
}

/// Kills all children of this process.
pub fn kill_children() {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
            // One that has ended needs no more.
            let _ = kill(child);
        }
    }
}

/// Ends this process's connections to the sockets of a process, as its end would do. Returns their number.
pub fn end_connections_to(pid: u32) -> usize {
    let names = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let is_to = |number: &i32| {
        let copy = crate::descriptor::duplicate(*number).ok()?;
        let peer = crate::seqpacket::peer(copy.as_fd()).ok()?;
        (peer.pid == pid).then(|| UnixStream::from(copy).shutdown(Shutdown::Both).ok())?
    };
    numbers.iter().filter_map(is_to).count()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stopped_process_is_known_and_killed() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("started");
        assert!(!is_stopped(child.id()));
        let stop = Command::new("kill").args(["-STOP", &child.id().to_string()]).status();
        assert!(stop.is_ok_and(|status| status.success()));
        while !is_stopped(child.id()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        kill(child.id()).expect("its child");
        child.wait().expect("it ends");
        assert!(!is_stopped(child.id()));
        assert_eq!(kill(0).expect_err("a group is meant by 0").raw_os_error(), Some(crate::errno::ESRCH));
    }

    #[test]
    fn connections_to_a_process_end() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let (file, _) = std::io::pipe().expect("a pipe");
        // Both ends are this process's, so both are ended; other files are not.
        assert!(end_connections_to(std::process::id()) >= 2);
        assert_eq!(std::io::Read::read(&mut &one, &mut [0]).expect("its end"), 0);
        drop((other, file));
    }
}
