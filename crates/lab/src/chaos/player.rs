//! Room: one process of the test as its conductor has it: started, told, heard, paused, killed.
//! Not here: when and why (`conductor`), what it says (`member`).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;

use super::instance::Instance;
use super::tally::Tally;
use super::{COMMAND, words};

/// What is heard from a process.
pub(super) enum Heard {
    Line(String),
    /// It says nothing any more.
    End,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Starting,
    Ready,
    Stopped,
    Settled,
    Ended,
}

/// A process of the test. Killed when dropped.
pub(super) struct Player {
    pub(super) instance: Instance,
    pub(super) stage: Stage,
    pub(super) tally: Tally,
    /// Resident KiB, as it told the last time.
    pub(super) memory: Option<u64>,
    child: Child,
    input: Option<ChildStdin>,
}

impl Player {
    /// Starts one; what it says goes to `heard`.
    ///
    /// # Errors
    /// As `fork(2)`.
    pub(super) fn start(
        instance: Instance,
        given: &[String],
        heard: &Sender<(Instance, Heard)>,
    ) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(COMMAND).args(given).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A Ctrl-C in the terminal reaches only the one that decides.
        command.process_group(0);
        sys::tied_child::die_with_parent(&mut command);
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let heard = heard.clone();
        let listen = move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let Ok(line) = line else { break };
                if heard.send((instance, Heard::Line(line))).is_err() {
                    return;
                }
            }
            // Nobody listens when the test is over.
            let _ = heard.send((instance, Heard::End));
        };
        std::thread::Builder::new().name(format!("listen to {instance}")).spawn(listen)?;
        let stage = Stage::Starting;
        Ok(Self { instance, stage, tally: Tally::default(), memory: None, child, input })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says a line to it. One that has ended hears nothing, which shows otherwise.
    pub(super) fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// Has it end in order.
    pub(super) fn leave(&mut self) {
        self.tell(words::LEAVE);
        self.input = None;
    }

    /// Whether and how it ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops it where it is, for a while, or lets it go on.
    pub(super) fn pause(&mut self, on: bool) {
        // It may have ended by itself, which shows otherwise.
        let _ = if on { sys::child::pause(&mut self.child) } else { sys::child::go_on(&mut self.child) };
    }

    /// SIGKILL, now.
    pub(super) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.kill();
    }
}
