//! Room: asking a child process to end.
//! Not here: starting one, waiting for it (`std::process`), one that ends with its parent (`tied_child`).
//! Facts: `kill(2)`.

use std::io;
use std::process::Child;

/// Sends SIGTERM to a child that has not ended, as far as this process knows: its number is still its own,
/// because nobody else can have waited for it.
///
/// # Errors
/// `EPERM`: it has become another user's.
pub fn ask_to_end(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    // A number above i32::MAX is no process id, and a negative one would mean a group.
    let pid = i32::try_from(child.id()).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: kill(2) takes integers; `pid` is a child that was not waited for, see above.
    let result = unsafe { libc::kill(pid, libc::SIGTERM) };
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
}
