//! Room: a child process that outlives the one that started it and leaves it nothing to clean up.
//! Not here: what is started (`driver::embedded::start`).
//! Facts: `setsid(2)`, `clone(2)`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the command run in a session of its own, as nobody's child: what `spawn` gives is a process in
/// between, which ends at once; wait for it. `spawn` still reports that the program cannot be run.
pub fn detach(command: &mut Command) {
    let leave = || {
        // SAFETY: setsid takes nothing.
        if unsafe { libc::setsid() } < 0 {
            return Err(io::Error::last_os_error());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

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
}
