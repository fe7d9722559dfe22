//! A call that waits through three processes: the service's lock is held by a thread that calls a store, which waits for its
//! disk.
//!
//! `binderperf trace record --html page.html -- contended` shows the chain.

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use binder::Process;

#[path = "../common/mod.rs"]
mod common;
mod settings;
mod store;

use common::{Outcome, ensure};

/// The process of the settings, which starts that of the store, or the latter.
fn service(process: &Process) -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let (place, role) = (arguments.next().unwrap_or_default(), arguments.next());
    if role.as_deref() == Some("store") {
        return store::serve(process);
    }
    let mut store = Command::new(std::env::current_exe()?);
    // It ends when its standard input does, that is, with this process.
    std::mem::forget(store.args([place.as_str(), "store"]).stdin(Stdio::piped()).spawn()?);
    settings::serve(process)
}

fn client(process: &Process) -> Outcome {
    let settings = settings::values::Client::find(process, settings::NAME)?;
    let name = settings.as_binder().descriptor()?;
    ensure(name == settings::values::DESCRIPTOR, "somebody else's object has that name")?;
    for _ in 0..20 {
        settings.read()?;
        std::thread::sleep(Duration::from_millis(7));
    }
    println!("client: 20 calls answered");
    Ok(())
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
