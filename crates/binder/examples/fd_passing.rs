//! Passing file descriptors: the other process works on the same open file.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use binder::{Incoming, Object, Parcel, Process, Services, Status, StatusCode};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.pipes";
const DESCRIPTOR: &str = "example.IPipes";
/// `void writeTo(FileDescriptor to, String text)`
const WRITE_TO: u32 = 1;
/// `FileDescriptor openSelf()`: the service's own name, as a file.
const OPEN_SELF: u32 = 2;

/// The service.
struct Pipes;

impl Object for Pipes {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            WRITE_TO => {
                // A duplicate of its own; what came with the call is closed when the call ends.
                let mut to = File::from(call.read_fd()?);
                to.write_all(call.read_str()?.as_bytes()).map_err(|_| StatusCode::UNKNOWN_ERROR)?;
            }
            OPEN_SELF => {
                let file = File::open("/proc/self/comm").map_err(|_| StatusCode::NAME_NOT_FOUND)?;
                reply.write_fd(file);
            }
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(Pipes))?)
}

fn client(process: &Process) -> Outcome {
    let pipes = Services::wait(process, PATIENCE)?.get(NAME)?;
    let (mut here, there) = UnixStream::pair()?;
    let mut request = pipes.request(DESCRIPTOR);
    // Given away: closed here as soon as the driver has the file.
    request.write_fd(there);
    request.write_str("written by the service");
    pipes.call(WRITE_TO, request)?;
    let mut text = String::new();
    // Ends because the service closed its copy.
    here.read_to_string(&mut text)?;
    println!("client: read {text:?} from the other end");
    ensure(text == "written by the service", "something else was written")?;

    let reply = pipes.call(OPEN_SELF, pipes.request(DESCRIPTOR))?;
    let mut name = String::new();
    File::from(reply.reader().read_fd()?).read_to_string(&mut name)?;
    println!("client: the file that the service opened says {:?}", name.trim());
    ensure(!name.is_empty(), "the service's file is empty")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
