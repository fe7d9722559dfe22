//! Room: how to call a service: find it by name, write a request, read the results in place.

use std::process::ExitCode;

use ipc::binder::manager::Services;

mod common;

use common::echo::{DESCRIPTOR, ECHO, Echo, NAME};
use common::{Here, Outcome, Peer, ensure};

fn client(_process: &Here, services: &Services, _peer: &mut Peer) -> Outcome {
    let echo = services.get(NAME)?;
    for text in ["hello", "binder", ""] {
        let mut request = echo.request(DESCRIPTOR);
        request.write_byte_slice(text.as_bytes());
        let reply = echo.call(ECHO, request)?;
        // Borrowed from the receiving area until the reply is dropped.
        let bytes = reply.reader().read_byte_slice()?;
        println!("client: sent {text:?}, got {:?}", String::from_utf8_lossy(bytes));
        ensure(bytes == text.as_bytes(), "something else came back")?;
    }
    // Another method number is refused by the service, in AIDL's own words.
    let refused = echo.call(99, echo.request(DESCRIPTOR));
    println!("client: method 99: {}", refused.as_ref().err().map_or("answered?".into(), ToString::to_string));
    ensure(refused.is_err(), "method 99 exists")
}

fn main() -> ExitCode {
    common::run(|process, services| Ok(services.add(NAME, &process.publish(Echo))?), client)
}
