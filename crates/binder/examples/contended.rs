//! A call that waits through three processes: the service's lock is held by a thread that calls a store, which waits for its
//! disk.
//!
//! `binderperf trace record --html page.html -- contended` shows the chain.

use std::fs::File;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use binder::{Process, Services, Status};

mod common;

use common::{Outcome, PATIENCE, ensure};

const SETTINGS: &str = "example.settings";
const STORE: &str = "example.store";

binder::interface! {
    mod settings = "example.ISettings" {
        /// Reads a setting: needs the lock for a moment.
        fn read();
    }
}

binder::interface! {
    mod store = "example.IStore" {
        /// Saves the settings, and answers when the disk has them.
        fn save();
    }
}

/// Number of calls that the client makes.
const CALLS: u32 = 20;
/// Bytes that the store writes.
const BYTES: usize = 1 << 20;

struct Settings(Arc<Mutex<()>>);

impl settings::Service for Settings {
    fn read(&self) -> Result<(), Status> {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

struct Store(File);

impl store::Service for Store {
    fn save(&self) -> Result<(), Status> {
        let write = || {
            self.0.set_len(0)?;
            (&self.0).write_all(&vec![7; BYTES])?;
            self.0.sync_all()
        };
        write().map_err(|error| Status::illegal_argument(error.to_string()))
    }
}

/// Saves the settings again and again, and holds their lock meanwhile.
fn keep_saving(store: &store::Client, lock: &Mutex<()>) {
    loop {
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if store.save().is_err() {
            return;
        }
        drop(guard);
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The process of the settings, which starts that of the store, or the latter.
fn service(process: &Process) -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let (place, role) = (arguments.next().unwrap_or_default(), arguments.next());
    let services = Services::wait(process, PATIENCE)?;
    if role.as_deref() == Some("store") {
        let path = std::env::temp_dir().join(format!("binder-example-{}", std::process::id()));
        let file = File::create_new(&path)?;
        std::fs::remove_file(path)?;
        return Ok(services.add(STORE, &process.publish(store::Served(Store(file))))?);
    }
    let mut store = Command::new(std::env::current_exe()?);
    // It ends when its standard input does, that is, with this process.
    std::mem::forget(store.args([place.as_str(), "store"]).stdin(Stdio::piped()).spawn()?);
    let lock = Arc::new(Mutex::new(()));
    let (held, store) = (Arc::clone(&lock), store::Client::from(services.get(STORE)?));
    std::thread::Builder::new().name("saver".into()).spawn(move || keep_saving(&store, &held))?;
    Ok(services.add(SETTINGS, &process.publish(settings::Served(Settings(lock))))?)
}

fn client(process: &Process) -> Outcome {
    let settings = Services::wait(process, PATIENCE)?.get(SETTINGS)?;
    ensure(settings.descriptor()? == settings::DESCRIPTOR, "somebody else's object has that name")?;
    let settings = settings::Client::from(settings);
    for _ in 0..CALLS {
        settings.read()?;
        std::thread::sleep(Duration::from_millis(7));
    }
    println!("client: {CALLS} calls answered");
    Ok(())
}

fn main() -> ExitCode {
    common::run("binder", service, client)
}
