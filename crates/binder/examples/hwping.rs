//! Offering and calling a HIDL object: a vector travels there and back without being copied into a parcel; IBase's
//! methods describe the object.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use binder::Process;
use binder::hwbinder::manager::Services;
use binder::hwbinder::{HwParcel, Incoming, Object, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const INTERFACE: &str = "example@1.0::IPing";
/// `ping(vec<uint8_t>) generates (vec<uint8_t>)`
const PING: u32 = 1;

struct Ping;

impl Object for Ping {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        match call.code() {
            // The reply describes the request's own bytes, where the driver put them.
            PING => reply.write_vec(call.read_bytes()?),
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

fn service(process: &Process) -> Outcome {
    Ok(Services::wait(process, PATIENCE)?.add("default", &process.publish_hidl(Ping))?)
}

fn client(process: &Process) -> Outcome {
    let services = Services::wait(process, PATIENCE)?;
    let ping = services.wait_for(INTERFACE, "default", PATIENCE)?;
    println!("client: {} in process {}", ping.interface_chain()?.join(" > "), ping.debug_info()?.pid);
    for size in [4, 65536] {
        let bytes = vec![7; size];
        let mut request = ping.request(INTERFACE);
        request.write_vec(&bytes);
        let start = Instant::now();
        let reply = ping.call(PING, request)?;
        println!("client: {size} bytes there and back in {:?}", start.elapsed());
        ensure(reply.reader().read_bytes()? == bytes, "something else came back")?;
    }
    let missing = services.wait_for(INTERFACE, "other", Duration::from_millis(50));
    println!("client: {}", missing.as_ref().err().map_or("found?".into(), ToString::to_string));
    ensure(missing.is_err(), "an instance that nobody registered")
}

fn main() -> ExitCode {
    common::run("hwbinder", service, client)
}
