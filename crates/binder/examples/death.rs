//! Death notification: learning that an object's process is gone.

use std::process::ExitCode;
use std::sync::mpsc::channel;

use binder::{Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.mortal";

binder::interface! {
    mod mortal = "example.IMortal" {
        oneway die();
    }
}

struct Mortal;

impl mortal::Service for Mortal {
    fn die(&self) -> Result<(), Status> {
        std::process::exit(1);
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(mortal::Served(Mortal)))?)
}

fn client(process: &Process) -> Outcome {
    let mortal = mortal::Client::find(process, NAME)?;
    let (tell, told) = channel();
    // Called once, by a thread of the pool; taken back when the link is dropped.
    let link = mortal.as_binder().on_death(move || {
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        // The receiver may have given up.
        let _ = tell.send(name);
    })?;
    println!("client: killing the service");
    mortal.die()?;
    let thread = told.recv_timeout(PATIENCE)?;
    println!("client: told of its death by thread {thread}");
    drop(link);

    let Err(error) = mortal.as_binder().ping() else { return Err("a dead service answered".into()) };
    println!("client: {error}");
    ensure(error.is_dead(), "another error")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
