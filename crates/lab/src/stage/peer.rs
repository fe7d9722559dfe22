//! Room: one process that this one started.
//! Not here: what it does (`role`), noticing that it hangs (`watch`).

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// To be done once when the process has ended.
pub(crate) type OnEnd = Box<dyn FnOnce() + Send>;

/// What a process reads and writes.
pub(crate) struct Streams {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

fn all_of(stream: Option<impl Read>) -> String {
    /// More than any reason.
    const MOST: u64 = 4096;
    let mut said = Vec::new();
    if let Some(stream) = stream {
        // What cannot be read was not said.
        let _ = stream.take(MOST).read_to_end(&mut said);
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// A started process; ended and reaped on drop.
pub(crate) struct Peer {
    child: Mutex<Started>,
}

struct Started {
    child: Child,
    end: Option<ExitStatus>,
    on_end: Option<OnEnd>,
}

impl Peer {
    /// Starts `program` with these words; it complains where this process does.
    pub(crate) fn spawn(
        program: &Path,
        words: &[String],
        stdin: Stdio,
        stdout: Stdio,
        on_end: Option<OnEnd>,
    ) -> io::Result<Self> {
        Self::spawn_with(program, words, Streams { stdin, stdout, stderr: Stdio::inherit() }, on_end)
    }

    /// Starts `program` with these words. It gets a process group of its own, so that a Ctrl-C in
    /// the terminal reaches only the one that measures and decides.
    pub(crate) fn spawn_with(
        program: &Path,
        words: &[String],
        Streams { stdin, stdout, stderr }: Streams,
        on_end: Option<OnEnd>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(words).stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
        sys::tied_child::die_with_parent(&mut command);
        let child = command.spawn()?;
        Ok(Self { child: Mutex::new(Started { child, end: None, on_end }) })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.lock().child.id()
    }

    fn lock(&self) -> MutexGuard<'_, Started> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if it has.
    pub(crate) fn end(&self) -> Option<ExitStatus> {
        let mut started = self.lock();
        if started.end.is_none() {
            started.end = started.child.try_wait().ok().flatten();
            if started.end.is_some()
                && let Some(on_end) = started.on_end.take()
            {
                on_end();
            }
        }
        started.end
    }

    /// How it ended, if it has or does so within this time.
    pub(crate) fn end_within(&self, time: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            let end = self.end();
            if end.is_some() || start.elapsed() >= time {
                return end;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it, if it has not.
    pub(crate) fn kill(&self) {
        // An error means that it has ended already.
        let _ = self.lock().child.kill();
    }

    /// Ends it, if it has not, and returns what it said that nobody read.
    pub(crate) fn last_words(&self) -> String {
        self.kill();
        let stdout = self.lock().child.stdout.take();
        all_of(stdout)
    }

    /// Ends it, if it has not, and returns what it said on its standard error, if that is kept.
    pub(crate) fn complaints(&self) -> String {
        self.kill();
        let stderr = self.lock().child.stderr.take();
        all_of(stderr)
    }

    /// The first line of what it says, without its end; empty if it ends before. What follows is lost.
    ///
    /// # Errors
    /// It says nothing in this time, or its output cannot be read.
    pub(crate) fn first_line(&self, time: Duration) -> Result<String, String> {
        let (start, mut said) = (Instant::now(), Vec::new());
        let stdout = self.lock().child.stdout.take();
        let Some(mut stdout) = stdout else { return Ok(String::new()) };
        let os = |error: io::Error| format!("hearing of it: {}", sys::errno::describe(&error));
        while !said.contains(&b'\n') {
            let left = i32::try_from(time.saturating_sub(start.elapsed()).as_millis()).unwrap_or(i32::MAX);
            let seen = sys::seqpacket::poll(stdout.as_fd(), left).map_err(os)?;
            if !seen.readable && !seen.hung_up {
                return Err(format!("it said nothing for {} s", time.as_secs()));
            }
            let mut some = [0; 512];
            match stdout.read(&mut some).map_err(os)? {
                0 => break,
                count => said.extend_from_slice(&some[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned())
    }

    /// Waits for the line that a role prints when it is ready, or the reason why it never will be.
    pub(crate) fn wait_until_ready(&self) -> Result<(), String> {
        let stdout = self.lock().child.stdout.take();
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        match line.trim_end() {
            super::role::READY => Ok(()),
            "" => Err(match self.end_within(super::GRACE) {
                Some(end) => format!("it ended first ({end})"),
                None => "it closed its output first".to_owned(),
            }),
            why => Err(why.to_owned()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
        let _ = self.lock().child.wait();
    }
}
