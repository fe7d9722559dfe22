//! Passing an object to a service and serving its callbacks during the call.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use binder::{Incoming, Object, Parcel, Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.counter";
const COUNTER: &str = "example.ICounter";
const LISTENER: &str = "example.IListener";
/// `int countTo(int end, IListener listener)`
const COUNT_TO: u32 = 1;
/// `void onNumber(int number)`
const ON_NUMBER: u32 = 1;

/// The service: calls its caller back with each number.
struct Counter;

impl Object for Counter {
    fn descriptor(&self) -> &str {
        COUNTER
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        if call.code() != COUNT_TO {
            return Err(Status::UNKNOWN_TRANSACTION);
        }
        let end = call.read_i32()?;
        let listener = call.read_binder()?;
        if !(0..=1000).contains(&end) {
            return Err(Status::illegal_argument(format!("{end} is not between 0 and 1000")));
        }
        for number in 1..=end {
            let mut request = listener.request(LISTENER);
            request.write_i32(number);
            listener.call(ON_NUMBER, request)?;
        }
        reply.write_i32(end);
        Ok(())
    }
}

/// The client's object: remembers the numbers and the thread that brought them.
#[derive(Default)]
struct Listener {
    heard: Mutex<Vec<(i32, std::thread::ThreadId)>>,
}

impl Object for Listener {
    fn descriptor(&self) -> &str {
        LISTENER
    }

    fn on_transact(&self, call: &mut Incoming<'_>, _reply: &mut Parcel) -> Result<(), Status> {
        if call.code() != ON_NUMBER {
            return Err(Status::UNKNOWN_TRANSACTION);
        }
        let number = call.read_i32()?;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push((number, std::thread::current().id()));
        Ok(())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(Counter))?)
}

fn client(process: &Process) -> Outcome {
    let counter = Services::wait(process, PATIENCE)?.get(NAME)?;
    let listener = Arc::new(Listener::default());
    let mut request = counter.request(COUNTER);
    request.write_i32(3);
    request.write_binder(&process.publish(listener.clone()));
    let reply = counter.call(COUNT_TO, request)?;
    let counted = reply.reader().read_i32()?;

    let heard = listener.heard.lock().unwrap_or_else(PoisonError::into_inner);
    let numbers: Vec<i32> = heard.iter().map(|(number, _)| *number).collect();
    println!("client: counted to {counted}, heard {numbers:?}");
    // The driver sends calls that belong to a waiting call to the thread that waits.
    let own = std::thread::current().id();
    ensure(heard.iter().all(|(_, thread)| *thread == own), "a callback came on another thread")?;
    ensure(numbers == [1, 2, 3] && counted == 3, "the numbers are wrong")?;

    let mut request = counter.request(COUNTER);
    request.write_i32(-1);
    request.write_binder(&process.publish(Listener::default()));
    match counter.call(COUNT_TO, request) {
        Err(error) => println!("client: counting to -1: {error}"),
        Ok(_) => return Err("counted to -1".into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
