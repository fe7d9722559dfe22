//! Room: the one command of a guest: started, listened to, waited for, and cleaned up after.
//! Not here: what it left behind (`files`).

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use sys::pid_one::{Ending, kill_everyone_else, reap_any, terminate};

use super::outbox::Outbox;
use crate::vm::frame::{Frame, LONGEST, Status};
use crate::vm::job::Job;

/// Runs the command in `folder` to its end, with its output going to the host as it comes. Whatever
/// it left running is ended with it.
pub(super) fn run(job: &Job, folder: &Path, outbox: &Outbox) -> Result<Status, String> {
    let (program, arguments) = job.argv.split_first().ok_or("the job names no program")?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(&job.env)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("starting {program}: {}", sys::errno::describe(&error)))?;
    if let Ok(orders) = outbox.orders() {
        let command = child.id();
        // It may wait for an order that never comes, so nobody waits for it.
        std::thread::spawn(move || obey(orders, command));
    }
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    std::thread::scope(|scope| {
        scope.spawn(move || pump(stdout, Frame::Stdout, outbox));
        scope.spawn(move || pump(stderr, Frame::Stderr, outbox));
        let ending = wait_for(child.id());
        // Orphans may hold the pipes open for ever; as process 1 it falls to us to end them.
        // The only errors are that there are none.
        let _ = kill_everyone_else();
        while reap_any().is_ok() {}
        ending
    })
}

/// Asks the command to stop when the host says so.
fn obey(mut orders: impl Read, command: u32) {
    while let Ok(1..) = orders.read(&mut [0]) {
        // The only error is that it has ended by itself.
        let _ = terminate(command);
    }
}

/// Reaps everybody until it is the child's turn.
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

/// Sends what comes out of a pipe to the host until it is closed on the other side.
fn pump(pipe: Option<impl Read>, wrap: fn(Vec<u8>) -> Frame, outbox: &Outbox) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; LONGEST];
    while let Ok(len @ 1..) = pipe.read(&mut buffer) {
        // When the channel is gone so is the host; reading on keeps the command from blocking.
        let _ = outbox.send(&wrap(buffer[..len].to_vec()));
    }
}
