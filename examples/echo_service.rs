//! Room: how to offer a service: open a context, publish an object, register it, serve.
//!
//! `echo_service [WHERE]` starts a service manager if the context has none, registers the service
//! in a process of its own, and asks it once whether it is there. `echo_service WHERE service` is
//! that process: it stays until its standard input ends, for `echo_client WHERE` to call.

use std::process::ExitCode;

use ipc::binder::manager::Services;

mod common;

use common::echo::{DESCRIPTOR, Echo, NAME};
use common::{Here, Outcome, Peer, ensure};

fn service(process: &Here, services: &Services) -> Outcome {
    let echo = process.publish(Echo);
    services.add(NAME, &echo)?;
    println!("service: {NAME} is registered by process {}", std::process::id());
    // The manager now holds the object; the pool's threads serve it.
    Ok(())
}

fn client(_process: &Here, services: &Services, _peer: &mut Peer) -> Outcome {
    let echo = services.get(NAME)?;
    echo.ping()?;
    println!("client: process {} answers as {}", echo.debug_pid()?, echo.descriptor()?);
    ensure(echo.descriptor()? == DESCRIPTOR, "another interface")
}

fn main() -> ExitCode {
    common::run(service, client)
}
