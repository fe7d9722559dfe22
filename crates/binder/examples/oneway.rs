//! Oneway calls: they return at once and are served in the order sent.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use binder::{Incoming, Object, Parcel, Process, Services, Status, Taken};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.log";
const DESCRIPTOR: &str = "example.ILog";
/// `oneway void append(String line)`
const APPEND: u32 = 1;
/// `String[] lines(int atLeast)`: waits for so many.
const LINES: u32 = 2;

/// The service: a log that takes its time.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    appended: std::sync::Condvar,
}

impl Object for Log {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            APPEND => {
                let line = call.read_str()?;
                std::thread::sleep(Duration::from_millis(1));
                self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                self.appended.notify_all();
            }
            LINES => {
                let wanted = usize::try_from(call.read_i32()?).unwrap_or(0);
                let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                let lines = self.appended.wait_while(lines, |lines| lines.len() < wanted);
                reply.write_str_slice(&lines.unwrap_or_else(PoisonError::into_inner));
            }
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(Log::default()))?)
}

fn client(process: &Process) -> Outcome {
    const LINES_SENT: i32 = 20;
    let log = Services::wait(process, PATIENCE)?.get(NAME)?;
    let sent: Vec<String> = (0..LINES_SENT).map(|number| format!("line {number}")).collect();
    for line in &sent {
        let mut request = log.request(DESCRIPTOR);
        request.write_str(line);
        // The driver has it; whether it is served is not known, nor when.
        match log.oneway(APPEND, request)? {
            Taken::Complete => {}
            Taken::SpamSuspect => println!("client: the driver takes this for spam"),
            Taken::PendingFrozen => println!("client: the service is frozen"),
        }
    }
    let mut request = log.request(DESCRIPTOR);
    request.write_i32(LINES_SENT);
    let lines = log.call(LINES, request)?.reader().read_str_vec()?;
    println!("client: {} lines arrived, the last is {:?}", lines.len(), lines.last());
    ensure(lines == sent, "lines are missing or out of order")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
