//! An object that is passed between processes, with a count of this process's live ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ipc::binder::{Incoming, Object, Parcel, Status};

use super::wire::{ASK, TOKEN};
use crate::instance::Instance;

/// An object of this process.
pub(super) struct Token {
    owner: Instance,
    number: u64,
    alive: Arc<AtomicU64>,
}

impl Token {
    pub(super) fn new(owner: Instance, number: u64, alive: &Arc<AtomicU64>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { owner, number, alive: alive.clone() }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Object for Token {
    fn descriptor(&self) -> &str {
        TOKEN
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            ASK => {
                self.owner.write(reply);
                reply.write_u64(self.number);
                Ok(())
            }
            _ => Err(Status::UNKNOWN_TRANSACTION),
        }
    }
}
