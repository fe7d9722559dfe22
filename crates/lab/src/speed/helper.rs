//! Room: a process that a row needs beside the one that prints the table, and the words between them:
//! it says a line, is told to go on, says another line.
//! Not here: what it does (`role`).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::role::COMMAND;

/// A started process; ended and reaped on drop.
#[derive(Debug)]
pub(super) struct Helper {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts this program with the words of a role.
    pub(super) fn start(program: &Path, words: &[String]) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg(COMMAND).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        sys::tied_child::die_with_parent(&mut command);
        let failed = |error| format!("starting a helper process: {}", sys::errno::describe(&error));
        let mut child = command.spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or("a helper process has no output")?);
        Ok(Self { child, input, output })
    }

    /// Waits for its next line, which begins with `word`; returns what is behind it.
    pub(super) fn hear(&mut self, word: &str) -> Result<String, String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map_err(|error| format!("listening to a helper process: {}", sys::errno::describe(&error)))?;
        match line.trim_end().strip_prefix(word) {
            Some(rest) => Ok(rest.trim().to_owned()),
            None if line.is_empty() => Err("a helper process ended early".to_owned()),
            None => Err(format!("a helper process says: {}", line.trim_end())),
        }
    }

    /// Tells it to go on.
    pub(super) fn go(&mut self) -> Result<(), String> {
        let told = self.input.as_mut().map_or(Ok(()), |input| input.write_all(b"go\n"));
        told.map_err(|error| format!("talking to a helper process: {}", sys::errno::describe(&error)))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
