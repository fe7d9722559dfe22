//! Death notification: learning that an object's process is gone.

use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Duration;

use binder::{Incoming, Object, Parcel, Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.mortal";
const DESCRIPTOR: &str = "example.IMortal";
/// `oneway void die()`
const DIE: u32 = 1;

struct Mortal;

impl Object for Mortal {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, _reply: &mut Parcel) -> Result<(), Status> {
        if call.code() == DIE {
            std::process::exit(1);
        }
        Err(Status::UNKNOWN_TRANSACTION)
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(Mortal))?)
}

fn client(process: &Process) -> Outcome {
    let services = Services::wait(process, PATIENCE)?;
    let mortal = services.get(NAME)?;
    let proxy = mortal.proxy().ok_or("the service is in this very process")?;
    let (tell, told) = channel();
    // Called once, by a thread of the pool; taken back when the link is dropped.
    let link = proxy.link_to_death(move || {
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        // The receiver may have given up.
        let _ = tell.send(name);
    })?;
    println!("client: killing the service");
    mortal.oneway(DIE, mortal.request(DESCRIPTOR))?;
    let thread = told.recv_timeout(PATIENCE)?;
    println!("client: told of its death by thread {thread}");
    drop(link);

    let Err(error) = mortal.ping() else { return Err("a dead service answered".into()) };
    println!("client: {error}");
    ensure(error.is_dead(), "another error")?;
    // The manager heard it as well.
    let end = std::time::Instant::now() + PATIENCE;
    while services.check(NAME)?.is_some() {
        ensure(std::time::Instant::now() < end, "the manager still knows it")?;
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("client: the service manager has forgotten it");
    Ok(())
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
