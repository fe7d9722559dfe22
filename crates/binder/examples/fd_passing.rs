//! Passing file descriptors: the other process works on the same open file.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use binder::{Process, Services, Status, StatusCode};

mod common;

use common::{Outcome, PATIENCE, ensure};

const NAME: &str = "example.pipes";

binder::interface! {
    mod pipes = "example.IPipes" {
        /// Writes a text into a file.
        fn write_to(to: OwnedFd, text: String);
        /// Opens a file with the service's own name.
        fn open_self() -> OwnedFd;
    }
}

struct Pipes;

impl pipes::Service for Pipes {
    fn write_to(&self, to: OwnedFd, text: String) -> Result<(), Status> {
        Ok(File::from(to).write_all(text.as_bytes()).map_err(|_| StatusCode::UNKNOWN_ERROR)?)
    }

    fn open_self(&self) -> Result<OwnedFd, Status> {
        Ok(File::open("/proc/self/comm").map_err(|_| StatusCode::NAME_NOT_FOUND)?.into())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(pipes::Served(Pipes)))?)
}

fn client(process: &Process) -> Outcome {
    let pipes = pipes::Client::find(process, NAME)?;
    let (mut here, there) = UnixStream::pair()?;
    pipes.write_to(there.as_fd(), "written by the service")?;
    drop(there);
    let mut text = String::new();
    // Ends because the service closed its copy.
    here.read_to_string(&mut text)?;
    println!("client: read {text:?} from the other end");
    ensure(text == "written by the service", "something else was written")?;
    let mut name = String::new();
    File::from(pipes.open_self()?).read_to_string(&mut name)?;
    println!("client: the file that the service opened says {:?}", name.trim());
    ensure(!name.is_empty(), "the service's file is empty")
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
