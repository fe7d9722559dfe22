//! What a child writes into a pipe, which ends with the child even if a program that it left behind holds the pipe open.
//! Not here: the child (`std::process`).
//! Facts: `pipe(7)`: a reader sees the end only when the last writer has closed; `adb` starts a server that keeps its outputs.
//! What a process wrote before its end is in the pipe when the process can be waited for.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errno::check;

/// Interval in ms at which a silent pipe's owner is looked after.
const GLANCE_MS: i32 = 20;
/// Most bytes that are read after the child's end: the largest pipe of an ordinary user.
const MOST_LEFT: usize = 1 << 20;

/// Tells readers that a child has ended: set it when the child was waited for.
#[derive(Clone, Debug, Default)]
pub struct Ended(Arc<AtomicBool>);

impl Ended {
    /// The child has ended.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The reading end.
#[derive(Debug)]
pub struct ChildOutput {
    pipe: File,
    ended: Ended,
    /// Bytes that may still be read once the child has ended.
    left: usize,
}

impl ChildOutput {
    /// Reads from a pipe until its end or that of the child.
    #[must_use]
    pub fn of(pipe: impl Into<OwnedFd>, ended: &Ended) -> Self {
        Self { pipe: File::from(pipe.into()), ended: ended.clone(), left: MOST_LEFT }
    }

    /// Waits this long for something to read.
    fn is_ready(&self, timeout_ms: i32) -> io::Result<bool> {
        let mut entry = libc::pollfd { fd: self.pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `entry` is one live pollfd.
        let ready = unsafe { libc::poll(&raw mut entry, 1, timeout_ms) };
        match check(ready) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            other => other.map(|()| ready > 0),
        }
    }
}

impl Read for ChildOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // In this order: what was written before the end is seen after it.
            let has_ended = self.ended.0.load(Ordering::Acquire);
            if self.is_ready(if has_ended { 0 } else { GLANCE_MS })? {
                let most = if has_ended { self.left.min(buffer.len()) } else { buffer.len() };
                let got = self.pipe.read(&mut buffer[..most])?;
                if has_ended {
                    self.left -= got;
                }
                return Ok(got);
            }
            if has_ended {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn started(text: &str) -> (Child, ChildOutput, Ended) {
        let mut child =
            Command::new("sh").args(["-c", text]).stdout(Stdio::piped()).spawn().expect("sh starts");
        let ended = Ended::default();
        let output = ChildOutput::of(child.stdout.take().expect("piped"), &ended);
        (child, output, ended)
    }

    #[test]
    fn all_of_a_childs_words_are_read_whoever_holds_the_pipe() {
        // Another program holds the pipe for longer than any test may take; this one kills it by its number.
        let (mut child, mut output, ended) =
            started("sleep 1000 & echo $!; head -c 50000 /dev/zero | tr '\\0' x; exit 0");
        let waiting = std::thread::spawn(move || {
            child.wait().expect("it ends");
            ended.set();
        });
        let mut text = String::new();
        output.read_to_string(&mut text).expect("it ends");
        waiting.join().expect("no panic");
        let (pid, rest) = text.split_once('\n').expect("two parts");
        assert!(rest.len() == 50_000 && Command::new("kill").arg(pid).status().expect("kill").success());
    }

    #[test]
    fn one_who_goes_on_writing_is_not_heard_for_ever() {
        // The shell writes nothing: it would wait for room in the pipe, which nobody reads before it has ended.
        let (mut child, mut output, ended) = started("yes & exit 0");
        child.wait().expect("it ends");
        assert!(output.is_ready(-1).expect("a pipe"), "the other program writes");
        ended.set();
        let mut text = Vec::new();
        output.read_to_end(&mut text).expect("it ends");
        // The reader's end closes with `output`, and `yes` ends by that.
        assert!(!text.is_empty() && text.len() <= MOST_LEFT, "{}", text.len());
    }
}
