//! Child processes: signalling one, tying one to this process, detaching one, giving one a pid namespace.
//! Not here: starting and waiting (`std::process`).
//! Facts: `kill(2)`, `prctl(2)`, `setsid(2)`, `clone(2)`, `unshare(2)`, `pid_namespaces(7)`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use crate::errno::{ESRCH, check};

/// Sends SIGTERM to a child that has not ended, as far as this process knows.
///
/// # Errors
/// `EPERM`: it has become another user's.
pub fn ask_to_end(child: &mut Child) -> io::Result<()> {
    signal(child, libc::SIGTERM)
}

/// Sends SIGTERM to the process group that a child leads (`process_group(0)`), if the child has not ended: for a program
/// that does not pass the signal on to those that it waits for.
///
/// # Errors
/// See [`ask_to_end`].
pub fn ask_group_to_end(child: &mut Child) -> io::Result<()> {
    signal_group(child, libc::SIGTERM)
}

/// Sends SIGKILL to that group, if the child has not ended.
///
/// # Errors
/// See [`ask_to_end`].
pub fn kill_group(child: &mut Child) -> io::Result<()> {
    signal_group(child, libc::SIGKILL)
}

fn signal_group(child: &mut Child, number: libc::c_int) -> io::Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    // Number 0 or 1 is nobody's child, and their negatives would mean other processes than a group's.
    let group = i32::try_from(child.id()).ok().filter(|pid| *pid > 1);
    let group = group.ok_or_else(|| io::Error::from_raw_os_error(ESRCH))?;
    // SAFETY: kill(2) takes integers; the group has the number of a child that was not waited for, so that it is no other's.
    check(unsafe { libc::kill(-group, number) })
}

/// Stops a child that has not ended, until [`go_on`] (SIGSTOP).
///
/// # Errors
/// See [`ask_to_end`].
pub fn pause(child: &mut Child) -> io::Result<()> {
    signal(child, libc::SIGSTOP)
}

/// Lets a stopped child go on (SIGCONT).
///
/// # Errors
/// See [`ask_to_end`].
pub fn go_on(child: &mut Child) -> io::Result<()> {
    signal(child, libc::SIGCONT)
}

/// The child's number is still its own if it has not ended: nobody else can have waited for it.
fn signal(child: &mut Child, number: libc::c_int) -> io::Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    // A number above i32::MAX is no process id, and a negative one would mean a group.
    let pid = i32::try_from(child.id()).map_err(|_| io::Error::from_raw_os_error(ESRCH))?;
    // SAFETY: kill(2) takes integers; `pid` is a child that was not waited for, see above.
    check(unsafe { libc::kill(pid, number) })
}

/// Has the kernel send SIGKILL to the child when the *thread* that spawns it ends, however it ends
/// (`PR_SET_PDEATHSIG`): so spawn from a thread that lives as long as the child is wanted.
pub fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: prctl with PR_SET_PDEATHSIG takes integers only.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // The parent may have died before the line above, and then no signal comes.
        if std::os::unix::process::parent_id() == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: between fork and exec `tie` makes two system calls and allocates nothing: an errno or
    // a kind in an `io::Error` lives in the value itself.
    unsafe { command.pre_exec(tie) };
}

/// Has the command run in a session of its own, as nobody's child: what `spawn` gives is a process in
/// between, which ends at once; wait for it. `spawn` still reports that the program cannot be run. It inherits no
/// descriptors but the standard ones (since Linux 5.11).
pub fn detach(command: &mut Command) {
    let leave = || {
        // Descriptors of a program that knows nothing of this one must not live on there. Older kernels keep them.
        // SAFETY: close_range takes integers, and with this flag closes nothing before exec.
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        // SAFETY: setsid takes nothing.
        check(unsafe { libc::setsid() })?;
        // SAFETY: without flags clone copies the process as fork does, and the null stack means the
        // same stack in the copy. Nothing of the C library's that notices forks runs in between: the
        // copy goes on to exec only.
        let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        match child {
            0 => Ok(()),
            // SAFETY: _exit takes an integer and runs nothing of this process's.
            1.. => unsafe { libc::_exit(0) },
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec `leave` makes system calls and allocates nothing: an errno in an
    // `io::Error` lives in the value itself.
    unsafe { command.pre_exec(leave) };
}

/// Has the calling thread's next child start in a pid namespace of its own. The thread cannot start
/// threads afterwards, so call this on one that is there for nothing else.
///
/// # Errors
/// `EPERM`: without `CAP_SYS_ADMIN`. `EINVAL`: the kernel has no pid namespaces. `ENOSPC`: too deep.
pub fn unshare_for_children() -> io::Result<()> {
    // SAFETY: unshare takes an integer; CLONE_NEWPID changes only what later children are born into.
    check(unsafe { libc::unshare(libc::CLONE_NEWPID) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    #[test]
    fn a_child_is_asked_and_one_that_ended_is_left_alone() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
        ask_to_end(&mut child).expect("ours");
        assert_eq!(child.wait().expect("ours").signal(), Some(libc::SIGTERM));
        ask_to_end(&mut child).expect("nothing to do");
    }

    #[test]
    fn a_child_that_is_paused_hears_nothing_until_it_goes_on() {
        let state = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
            stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).expect("a state")
        };
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
        pause(&mut child).expect("ours");
        while state(child.id()) != 'T' {
            std::thread::yield_now();
        }
        ask_to_end(&mut child).expect("ours");
        assert_eq!((state(child.id()), child.try_wait().expect("ours")), ('T', None), "it has not heard");
        go_on(&mut child).expect("ours");
        assert_eq!(child.wait().expect("ours").signal(), Some(libc::SIGTERM));
        pause(&mut child).expect("nothing to do");
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let mut child = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("1000");
            die_with_parent(&mut command);
            command.spawn().expect("sleep starts")
        })
        .join()
        .expect("the thread ends");
        let status = child.wait().expect("the child is ours");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn the_command_runs_as_nobodys_child_in_its_own_session() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ $PPID; cat /proc/$$/stat"]).stdout(Stdio::piped());
        detach(&mut command);
        let mut child = command.spawn().expect("sh starts");
        assert!(child.wait().expect("the one in between").success());
        let mut text = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut text).expect("output");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_ne!(words[1], std::process::id().to_string(), "not our child");
        // Fields 1 and 6 of stat: pid and session. The session is the process's in between.
        assert_ne!(words[2 + 5], words[2], "no session leader, so it gets no terminal");
        let own = std::fs::read_to_string("/proc/self/stat").expect("own");
        assert_ne!(words[2 + 5], own.split_whitespace().nth(5).expect("session"), "another session");
    }

    #[test]
    fn a_program_that_cannot_be_run_is_reported() {
        let mut command = Command::new("/nonexistent/program");
        detach(&mut command);
        assert_eq!(command.spawn().expect_err("none").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_child_is_process_one_of_its_namespace() {
        let child = std::thread::spawn(|| {
            unshare_for_children()?;
            Command::new("sh").args(["-c", "echo $$"]).output()
        });
        match child.join().expect("the thread ends") {
            Ok(output) => assert_eq!(output.stdout, b"1\n"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}"),
        }
    }
}
