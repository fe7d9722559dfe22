//! Passing an object to a service and serving its callbacks during the call.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use binder::{Binder, Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.counter";

binder::interface! {
    mod counter = "example.ICounter" {
        /// Tells the listener each number up to the end, and returns it.
        fn count_to(end: i32, listener: Binder) -> i32;
    }
}

binder::interface! {
    mod listener = "example.IListener" {
        fn on_number(number: i32);
    }
}

/// The service: calls its caller back with each number.
struct Counter;

impl counter::Service for Counter {
    fn count_to(&self, end: i32, listener: Binder) -> Result<i32, Status> {
        if !(0..=1000).contains(&end) {
            return Err(Status::illegal_argument(format!("{end} is not between 0 and 1000")));
        }
        let listener = listener::Client::from(listener);
        for number in 1..=end {
            listener.on_number(number)?;
        }
        Ok(end)
    }
}

/// The client's object: remembers the numbers and the thread that brought them.
#[derive(Default)]
struct Listener {
    heard: Mutex<Vec<(i32, std::thread::ThreadId)>>,
}

impl listener::Service for Arc<Listener> {
    fn on_number(&self, number: i32) -> Result<(), Status> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push((number, std::thread::current().id()));
        Ok(())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(counter::Served(Counter)))?)
}

fn client(process: &Process) -> Outcome {
    let counter = counter::Client::from(Services::wait(process, PATIENCE)?.get(NAME)?);
    let listener = Arc::new(Listener::default());
    let object = process.publish(listener::Served(listener.clone()));
    let counted = counter.count_to(3, &object)?;

    let heard = listener.heard.lock().unwrap_or_else(PoisonError::into_inner);
    let numbers: Vec<i32> = heard.iter().map(|(number, _)| *number).collect();
    println!("client: counted to {counted}, heard {numbers:?}");
    // The driver sends calls that belong to a waiting call to the thread that waits.
    let own = std::thread::current().id();
    ensure(heard.iter().all(|(_, thread)| *thread == own), "a callback came on another thread")?;
    ensure(numbers == [1, 2, 3] && counted == 3, "the numbers are wrong")?;

    match counter.count_to(-1, &object) {
        Err(error) => println!("client: counting to -1: {error}"),
        Ok(_) => return Err("counted to -1".into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
