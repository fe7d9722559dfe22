//! The store: writes the settings to its disk.

use std::fs::File;
use std::io::Write;

use binder::{Process, Services, Status};

use super::common::{Outcome, PATIENCE};

pub(crate) const NAME: &str = "example.store";

binder::interface! {
    pub(crate) mod disk = "example.IStore" {
        /// Saves the settings, and answers when the disk has them.
        fn save();
    }
}

struct Store(File);

impl disk::Service for Store {
    fn save(&self) -> Result<(), Status> {
        let write = || {
            self.0.set_len(0)?;
            (&self.0).write_all(&vec![7; 1 << 20])?;
            self.0.sync_all()
        };
        write().map_err(|error| Status::illegal_argument(error.to_string()))
    }
}

pub(crate) fn serve(process: &Process) -> Outcome {
    let path = std::env::temp_dir().join(format!("binder-example-{}", std::process::id()));
    let file = File::create_new(&path)?;
    std::fs::remove_file(path)?;
    Ok(Services::wait(process, PATIENCE)?.add(NAME, &process.publish(disk::Served(Store(file))))?)
}
