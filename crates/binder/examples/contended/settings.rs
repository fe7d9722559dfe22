//! The settings: their lock is held while the store saves them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use binder::{Process, Services, Status};

use super::common::{Outcome, PATIENCE};
use super::store;

pub(crate) const NAME: &str = "example.settings";

binder::interface! {
    pub(crate) mod values = "example.ISettings" {
        /// Reads a setting: needs the lock for a moment.
        fn read();
    }
}

struct Settings(Arc<Mutex<()>>);

impl values::Service for Settings {
    fn read(&self) -> Result<(), Status> {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

/// Saves the settings again and again, and holds their lock meanwhile.
fn keep_saving(store: &store::disk::Client, lock: &Mutex<()>) {
    loop {
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if store.save().is_err() {
            return;
        }
        drop(guard);
        std::thread::sleep(Duration::from_millis(3));
    }
}

pub(crate) fn serve(process: &Process) -> Outcome {
    let services = Services::wait(process, PATIENCE)?;
    let lock = Arc::new(Mutex::new(()));
    let (held, store) = (Arc::clone(&lock), store::disk::Client::from(services.get(store::NAME)?));
    std::thread::Builder::new().name("saver".into()).spawn(move || keep_saving(&store, &held))?;
    Ok(services.add(NAME, &process.publish(values::Served(Settings(lock))))?)
}
