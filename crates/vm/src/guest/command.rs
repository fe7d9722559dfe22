//! The guest's one command: started, forwarded, waited for, and cleaned up after.
//! Not here: the files it leaves (`files`).

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use sys::pid_one::{Ending, kill_everyone_else, reap_any, terminate};

use super::outbox::Outbox;
use crate::frame::{Frame, LONGEST, Status};
use crate::job::Job;

/// Runs the command in `folder` and forwards its output to the host. Kills all processes that it leaves behind.
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
        // Not joined: it may wait for a stop request that never comes.
        std::thread::spawn(move || obey(orders, command));
    }
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    std::thread::scope(|scope| {
        scope.spawn(move || pump(stdout, Frame::Stdout, outbox));
        scope.spawn(move || pump(stderr, Frame::Stderr, outbox));
        let ending = wait_for(child.id());
        // Orphans may keep the pipes open, so process 1 kills and reaps them. The only error is that none exist.
        let _ = kill_everyone_else();
        while reap_any().is_ok() {}
        ending
    })
}

/// Sends the command SIGTERM when the host asks for it.
fn obey(mut orders: impl Read, command: u32) {
    while let Ok(1..) = orders.read(&mut [0]) {
        // Fails only if the command has already ended.
        let _ = terminate(command);
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

/// Forwards a pipe to the host until its end.
fn pump(pipe: Option<impl Read>, wrap: fn(Vec<u8>) -> Frame, outbox: &Outbox) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; LONGEST];
    while let Ok(len @ 1..) = pipe.read(&mut buffer) {
        // The host is gone if the port is; reading on keeps the command from blocking.
        let _ = outbox.send(&wrap(buffer[..len].to_vec()));
    }
}
