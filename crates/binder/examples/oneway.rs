//! Oneway calls: they return at once and are served in the order sent.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use binder::{Process, Services, Status, Taken};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.log";

binder::interface! {
    mod log = "example.ILog" {
        /// Appends a line.
        oneway fn append(line: String);
        /// Waits for so many lines, and returns all.
        fn lines(at_least: i32) -> Vec<String>;
    }
}

/// The service: a log that takes its time.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    appended: std::sync::Condvar,
}

impl log::Service for Log {
    fn append(&self, line: String) -> Result<(), Status> {
        std::thread::sleep(Duration::from_millis(1));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        self.appended.notify_all();
        Ok(())
    }

    fn lines(&self, at_least: i32) -> Result<Vec<String>, Status> {
        let wanted = usize::try_from(at_least).unwrap_or(0);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = self.appended.wait_while(lines, |lines| lines.len() < wanted);
        Ok(lines.unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(log::Served(Log::default())))?)
}

fn client(process: &Process) -> Outcome {
    const LINES_SENT: i32 = 20;
    let log = log::Client::from(Services::wait(process, PATIENCE)?.get(NAME)?);
    let sent: Vec<String> = (0..LINES_SENT).map(|number| format!("line {number}")).collect();
    for line in &sent {
        // The driver has it; whether it is served is not known, nor when.
        match log.append(line)? {
            Taken::Complete => {}
            Taken::SpamSuspect => println!("client: the driver takes this for spam"),
            Taken::PendingFrozen => println!("client: the service is frozen"),
        }
    }
    let lines = log.lines(LINES_SENT)?;
    println!("client: {} lines arrived, the last is {:?}", lines.len(), lines.last());
    ensure(lines == sent, "lines are missing or out of order")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
