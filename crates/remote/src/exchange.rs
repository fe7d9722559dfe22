//! One run of `adb` or `ssh`: what it is told, the frames that come back, and how it ends.
//! Not here: what the frames mean (`device`).

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sys::child_output::{ChildOutput, Ended as ChildEnded};

use super::error::{Refusal, RemoteError};
use super::frame::{self, Frame};
use super::link::{Call, Link};

/// Poll interval for signals.
const GLANCE: Duration = Duration::from_millis(50);
/// Longest silence: a command that runs is heard of every second.
const SILENCE: Duration = Duration::from_secs(30);
/// How much of the program's own messages is kept.
const KEPT: u64 = 16 * 1024;
/// How many of their last lines are shown where something failed.
const SHOWN: usize = 3;
/// Frames that may wait for this process.
const AHEAD: usize = 64;

/// How an exchange ended, if not by a signal or an error of this machine.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The answer came to its end.
    Whole(String),
    /// It did not: what the program said.
    Cut(String),
}

/// One run of the program.
struct Exchange {
    child: Watched,
    frames: Receiver<Frame>,
    chatter: JoinHandle<String>,
    said: JoinHandle<String>,
    heard: Instant,
}

impl Exchange {
    /// Starts it.
    fn start(link: &Link, call: Call) -> Result<Self, RemoteError> {
        let Call { mut command, input } = call;
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::child::die_with_parent(&mut command);
        let child =
            command.spawn().map_err(|source| RemoteError::NoTool { program: link.program(), source })?;
        let mut child = Watched { child, ended: ChildEnded::default() };
        let (stdin, stdout, stderr) = child.streams();
        let (sender, frames) = sync_channel(AHEAD);
        let spoiled = RemoteError::here("starting a thread");
        let threads = || {
            if let (Some(mut stdin), Some(text)) = (stdin, input) {
                // Fails if the program ends, and that shows elsewhere.
                sys::title::thread("remote input", move || drop(stdin.write_all(text.as_bytes())))?;
            }
            let chatter = sys::title::thread("remote answer", move || read(stdout, &sender))?;
            let said = sys::title::thread("remote errors", move || {
                let mut said = Vec::new();
                if let Some(mut stderr) = stderr {
                    let _ = stderr.by_ref().take(KEPT).read_to_end(&mut said);
                    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                }
                String::from_utf8_lossy(&said).into_owned()
            })?;
            Ok((chatter, said))
        };
        let (chatter, said) = threads().map_err(spoiled)?;
        Ok(Self { child, frames, chatter, said, heard: Instant::now() })
    }

    /// The next frame; none when there are no more, or none came for too long; `Some(None)` if none came yet.
    fn next(&mut self) -> Option<Option<Frame>> {
        match self.frames.recv_timeout(GLANCE) {
            Ok(frame) => {
                self.heard = Instant::now();
                Some(Some(frame))
            }
            Err(RecvTimeoutError::Timeout) if self.heard.elapsed() < SILENCE => {
                // With its end that of the frames comes, whoever else holds the pipe.
                self.child.has_ended();
                Some(None)
            }
            Err(_) => None,
        }
    }

    /// Ends the program; returns the last of what it said, in one line.
    fn said(self, most: usize) -> String {
        let Self { mut child, frames, chatter, said, heard } = self;
        let is_silent = heard.elapsed() >= SILENCE;
        // The end of its output is seen before its own.
        let begun = Instant::now();
        while begun.elapsed() < GLANCE * 10 && !child.has_ended() {
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(child);
        // Nobody waits for these frames, so both threads come to their end now.
        drop(frames);
        let said = [said.join().unwrap_or_default(), chatter.join().unwrap_or_default()].concat();
        let lines: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("* daemon"))
            .collect();
        match lines.len() {
            0 if is_silent => format!("nothing was heard for {} s", SILENCE.as_secs()),
            0 => "the connection ended".to_owned(),
            count => lines[count.saturating_sub(most)..].join("; "),
        }
    }
}

/// A child that is killed on drop, and whose readers learn of its end.
struct Watched {
    child: Child,
    ended: ChildEnded,
}

impl Watched {
    /// Its streams. Those that it writes end with it, even if a server that it started holds them.
    fn streams(&mut self) -> (Option<ChildStdin>, Option<ChildOutput>, Option<ChildOutput>) {
        let stdout = self.child.stdout.take().map(|pipe| ChildOutput::of(pipe, &self.ended));
        let stderr = self.child.stderr.take().map(|pipe| ChildOutput::of(pipe, &self.ended));
        (self.child.stdin.take(), stdout, stderr)
    }

    /// Its status if it has ended, or the error of looking.
    fn status(&mut self) -> std::io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.ended.set();
        }
        Ok(status)
    }

    fn has_ended(&mut self) -> bool {
        self.status().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ended.set();
    }
}

fn read(stdout: Option<impl Read>, sender: &SyncSender<Frame>) -> String {
    let Some(stdout) = stdout else { return String::new() };
    // Sending fails only if the receiver needs no more.
    frame::read(BufReader::new(stdout), |frame| sender.send(frame).is_ok()).unwrap_or_default()
}

/// Runs a script and gives away each frame but its end.
pub(crate) fn converse(
    link: &Link,
    call: Call,
    mut take: impl FnMut(Frame) -> Result<(), RemoteError>,
    mut glance: impl FnMut() -> Result<(), RemoteError>,
) -> Result<Ended, RemoteError> {
    let mut exchange = Exchange::start(link, call)?;
    loop {
        match exchange.next() {
            Some(Some(Frame::End(status))) => return Ok(Ended::Whole(status)),
            Some(Some(Frame::Failed(code, said))) => {
                return Err(RemoteError::Refused { kind: Refusal::of_word(&code), said });
            }
            Some(Some(Frame::Garbled(line))) => return Err(RemoteError::Garbled(line)),
            Some(Some(frame)) => take(frame)?,
            Some(None) => {}
            None => return Ok(Ended::Cut(exchange.said(SHOWN))),
        }
        glance()?;
    }
}

/// Runs a program that answers by its exit status; returns what it said where that is a failure.
pub(crate) fn perform(
    link: &Link,
    call: Call,
    limit: Duration,
    mut glance: impl FnMut() -> Result<(), RemoteError>,
) -> Result<Result<String, String>, RemoteError> {
    let mut exchange = Exchange::start(link, call)?;
    let begun = Instant::now();
    loop {
        match exchange.child.status().map_err(RemoteError::here("waiting"))? {
            Some(status) if status.success() => return Ok(Ok(exchange.said(usize::MAX))),
            Some(_) => return Ok(Err(exchange.said(SHOWN))),
            None if begun.elapsed() > limit => {
                let limit = limit.as_secs();
                return Ok(Err(format!("not done within {limit} s")));
            }
            None => std::thread::sleep(GLANCE),
        }
        glance()?;
    }
}
