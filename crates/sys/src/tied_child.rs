//! Room: a child process that cannot outlive the one that started it.
//! Not here: what is started (`lab`).

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel send SIGKILL to the child when the *thread* that spawns it ends, however it ends
/// (`PR_SET_PDEATHSIG`): so spawn from a thread that lives as long as the child is wanted.
pub fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: prctl with PR_SET_PDEATHSIG takes integers only.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } < 0 {
            return Err(io::Error::last_os_error());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    }
}
