//! Offering a service and calling it: publish an object, register it, find it by name, write a request, read the
//! results in place.
//!
//! From two terminals: `echo PLACE service` stays until its standard input ends, `echo PLACE client` calls it.

use std::process::ExitCode;

use binder::{Incoming, Object, Parcel, Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.echo";
const DESCRIPTOR: &str = "example.IEcho";
/// `byte[] echo(in byte[] bytes)`
const ECHO: u32 = 1;

struct Echo;

impl Object for Echo {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            // Read where the driver put it, written into the reply: one copy.
            ECHO => reply.write_byte_slice(call.read_byte_slice()?),
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

fn service(process: &Process) -> Outcome {
    Services::wait(process, PATIENCE)?.add(NAME, &process.publish(Echo))?;
    println!("service: {NAME} is registered by process {}", std::process::id());
    Ok(())
}

fn client(process: &Process) -> Outcome {
    let echo = Services::wait(process, PATIENCE)?.get(NAME)?;
    println!("client: process {} answers as {}", echo.debug_pid()?, echo.descriptor()?);
    for text in ["hello", "binder", ""] {
        let mut request = echo.request(DESCRIPTOR);
        request.write_byte_slice(text.as_bytes());
        let reply = echo.call(ECHO, request)?;
        let bytes = reply.reader().read_byte_slice()?;
        println!("client: sent {text:?}, got {:?}", String::from_utf8_lossy(bytes));
        ensure(bytes == text.as_bytes(), "something else came back")?;
    }
    let refused = echo.call(99, echo.request(DESCRIPTOR));
    println!("client: method 99: {}", refused.as_ref().err().map_or("answered?".into(), ToString::to_string));
    ensure(refused.is_err(), "method 99 exists")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
