//! Oneway calls: they return at once and are served in the order sent.

use std::process::ExitCode;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use binder::{Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.log";

binder::interface! {
    mod log = "example.ILog" {
        oneway append(line: String);
        /// Waits for so many lines, and returns all.
        fn lines(at_least: i32) -> Vec<String>;
    }
}

/// A log that takes its time.
#[derive(Default)]
struct Log(Mutex<Vec<String>>, Condvar);

impl log::Service for Log {
    fn append(&self, line: String) -> Result<(), Status> {
        std::thread::sleep(Duration::from_millis(1));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        self.1.notify_all();
        Ok(())
    }

    fn lines(&self, at_least: i32) -> Result<Vec<String>, Status> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = self.1.wait_while(lines, |lines| (lines.len() as i32) < at_least);
        Ok(lines.unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(log::Served(Log::default())))?)
}

fn client(process: &Process) -> Outcome {
    let log = log::Client::find(process, NAME)?;
    let sent: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
    for line in &sent {
        // The driver has it; whether it is served is not known, nor when.
        log.append(line)?;
    }
    let lines = log.lines(20)?;
    println!("client: {} lines arrived, the last is {:?}", lines.len(), lines.last());
    ensure(lines == sent, "lines are missing or out of order")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
