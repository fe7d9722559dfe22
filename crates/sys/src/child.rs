//! Room: asking a child process to end, to pause and to go on.
//! Not here: starting one, waiting for it (`std::process`), one that ends with its parent (`tied_child`).
//! Facts: `kill(2)`.

use std::io;
use std::process::Child;

/// Sends SIGTERM to a child that has not ended, as far as this process knows.
///
/// # Errors
/// `EPERM`: it has become another user's.
pub fn ask_to_end(child: &mut Child) -> io::Result<()> {
    signal(child, libc::SIGTERM)
}

/// Stops a child that has not ended, until [`go_on`] (SIGSTOP).
///
/// # Errors
/// As [`ask_to_end`].
pub fn pause(child: &mut Child) -> io::Result<()> {
    signal(child, libc::SIGSTOP)
}

/// Lets a stopped child go on (SIGCONT).
///
/// # Errors
/// As [`ask_to_end`].
pub fn go_on(child: &mut Child) -> io::Result<()> {
    signal(child, libc::SIGCONT)
}

/// The child's number is still its own if it has not ended: nobody else can have waited for it.
fn signal(child: &mut Child, number: libc::c_int) -> io::Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    // A number above i32::MAX is no process id, and a negative one would mean a group.
    let pid = i32::try_from(child.id()).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: kill(2) takes integers; `pid` is a child that was not waited for, see above.
    let result = unsafe { libc::kill(pid, number) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

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
}
