//! The guest's commands: started one after another, forwarded, waited for, and cleaned up after.
//! Not here: the files they leave (`files`), reading a script (`script`).

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sys::pid_one::{Ending, kill_everyone_else, reap_any, terminate};

use super::outbox::Outbox;
use crate::frame::{Frame, LONGEST, Status};
use crate::job::Job;
use crate::script;

/// State that the host's request to stop needs.
#[derive(Default)]
struct Stop {
    asked: AtomicBool,
    /// The running command; 0 between two.
    command: AtomicU32,
}

/// Runs the commands in `folder`, up to one that fails, and forwards their output to the host. With several
/// commands, prints each before it runs and its status after. Returns the status of the first that failed.
pub(super) fn run(job: &Job, folder: &Path, outbox: &Outbox) -> Result<Status, String> {
    let stop = Arc::new(Stop::default());
    if let Some(orders) = outbox.orders() {
        let stop = stop.clone();
        // Not joined: it may wait for a stop request that never comes.
        sys::title::thread("guest orders", move || obey(orders, &stop))
            .map_err(|error| format!("starting a thread: {}", sys::errno::describe(&error)))?;
    }
    if let [only] = &job.commands[..] {
        return one(job, only, folder, outbox, &stop).map(|ended| ended.status);
    }
    let mut first_failure = Status::Code(0);
    // A host that is gone needs no words.
    let tell = |text: String| drop(outbox.send(&Frame::Stderr(text.into_bytes())));
    for (left, words) in (0..job.commands.len()).rev().zip(&job.commands) {
        tell(format!("$ {}\n", script::line(words)));
        let Ended { status, in_a_line } = one(job, words, folder, outbox, &stop)?;
        tell(format!("{}[status {}]\n", if in_a_line { "\n" } else { "" }, status.exit_code()));
        if first_failure == Status::Code(0) {
            first_failure = status;
        }
        let goes_on = job.keep_going || matches!(status, Status::Code(0 | 1));
        if left > 0 && (!goes_on || stop.asked.load(Ordering::SeqCst)) {
            tell(
                format!("[not run: the {left} commands behind it]\n")
                    .replace("the 1 commands", "the command"),
            );
            break;
        }
    }
    Ok(first_failure)
}

/// The end of a command.
struct Ended {
    status: Status,
    /// Whether its output ended within a line.
    in_a_line: bool,
}

/// Runs one command. Kills all processes that it leaves behind.
fn one(job: &Job, words: &[String], folder: &Path, outbox: &Outbox, stop: &Stop) -> Result<Ended, String> {
    let mut child = Command::new(&job.program)
        .args(words)
        .env_clear()
        .envs(&job.env)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("starting {}: {}", job.program, sys::errno::describe(&error)))?;
    stop.command.store(child.id(), Ordering::SeqCst);
    // Either sees what the other has stored first.
    if stop.asked.load(Ordering::SeqCst) {
        let _ = terminate(child.id());
    }
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || pump(stdout, Frame::Stdout, outbox));
        let stderr = scope.spawn(move || pump(stderr, Frame::Stderr, outbox));
        let status = wait_for(child.id());
        stop.command.store(0, Ordering::SeqCst);
        // Orphans may keep the pipes open, so process 1 kills and reaps them. The only error is that none exist.
        let _ = kill_everyone_else();
        while reap_any().is_ok() {}
        let in_a_line = [stdout, stderr].into_iter().any(|pump| pump.join().unwrap_or(false));
        Ok(Ended { status: status?, in_a_line })
    })
}

/// Sends the running command SIGTERM when the host asks for it.
fn obey(mut orders: impl Read, stop: &Stop) {
    while let Ok(1..) = orders.read(&mut [0]) {
        stop.asked.store(true, Ordering::SeqCst);
        match stop.command.load(Ordering::SeqCst) {
            0 => {}
            // Fails only if the command has already ended.
            command => drop(terminate(command)),
        }
    }
}

/// Reaps processes until the child has ended.
fn wait_for(child: u32) -> Result<Status, String> {
    loop {
        match reap_any() {
            Ok((pid, ending)) if pid == child => {
                return Ok(match ending {
                    Ending::Code(code) => Status::Code(code as u8), // wait(2) gives eight bits.
                    Ending::Signal(signal) => Status::Signal(signal),
                });
            }
            Ok(_) => {}
            Err(error) => return Err(format!("waiting for the command: {}", sys::errno::describe(&error))),
        }
    }
}

/// Forwards a pipe to the host until its end; returns whether that was within a line.
fn pump(pipe: Option<impl Read>, wrap: fn(Vec<u8>) -> Frame, outbox: &Outbox) -> bool {
    sys::title::name_thread("guest output");
    let Some(mut pipe) = pipe else { return false };
    let (mut buffer, mut in_a_line) = (vec![0; LONGEST], false);
    while let Ok(len @ 1..) = pipe.read(&mut buffer) {
        in_a_line = buffer[len - 1] != b'\n';
        // The host is gone if the port is; reading on keeps the command from blocking.
        let _ = outbox.send(&wrap(buffer[..len].to_vec()));
    }
    in_a_line
}
