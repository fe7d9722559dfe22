//! Passing an object to a service and serving its callbacks during the call.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use binder::{Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};
binder::interface! {
    mod counter = "example.ICounter" {
        fn count_to(end: i32, listener: listener::Client);
    }
}

binder::interface! {
    mod listener = "example.IListener" {
        fn on_number(number: i32);
    }
}

struct Counter;

impl counter::Service for Counter {
    fn count_to(&self, end: i32, listener: listener::Client) -> Result<(), Status> {
        // An error of the listener becomes the answer of this call.
        Ok((1..=end).try_for_each(|number| listener.on_number(number))?)
    }
}

#[derive(Default)]
struct Listener(Mutex<Vec<(i32, ThreadId)>>);

impl listener::Service for Listener {
    fn on_number(&self, number: i32) -> Result<(), Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((number, std::thread::current().id()));
        Ok(())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add("counter", &process.publish(counter::Served(Counter)))?)
}

fn client(process: &Process) -> Outcome {
    let listener = Arc::new(Listener::default());
    let published = listener::Client::publish(process, listener.clone());
    counter::Client::find(process, "counter")?.count_to(3, &published)?;
    let heard = listener.0.lock().unwrap_or_else(PoisonError::into_inner);
    println!("client: heard {heard:?}");
    // The driver sends calls that belong to a waiting call to the thread that waits.
    let own = std::thread::current().id();
    ensure(*heard == [1, 2, 3].map(|number| (number, own)), "other numbers, or on another thread")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
