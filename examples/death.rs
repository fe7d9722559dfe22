//! Room: how to hear that the process behind an object is gone.

use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Duration;

use ipc::binder::manager::Services;

mod common;

use common::echo::{Echo, NAME};
use common::{Here, Outcome, Peer, ensure};

fn client(_process: &Here, services: &Services, peer: &mut Peer) -> Outcome {
    let echo = services.get(NAME)?;
    let proxy = echo.proxy().ok_or("the service is in this very process")?;
    let (tell, told) = channel();
    // Called once, by a thread of the pool; taken back when the link is dropped.
    let link = proxy.link_to_death(move || {
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        // The receiver may have given up.
        let _ = tell.send(name);
    })?;
    println!("client: killing the service");
    peer.kill()?;
    let thread = told.recv_timeout(Duration::from_secs(30))?;
    println!("client: told of its death by thread {thread}");
    drop(link);

    let Err(error) = echo.ping() else { return Err("a dead service answered".into()) };
    println!("client: {error}");
    ensure(error.is_dead(), "another error")?;
    // The manager heard it as well.
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while services.check(NAME)?.is_some() {
        ensure(std::time::Instant::now() < end, "the manager still knows it")?;
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("client: the service manager has forgotten it");
    Ok(())
}

fn main() -> ExitCode {
    common::run(|process, services| Ok(services.add(NAME, &process.publish(Echo))?), client)
}
