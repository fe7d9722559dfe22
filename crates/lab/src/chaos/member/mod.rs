//! Room: one process of the test, client and server at once.
//!
//! - [`wire`]: the interfaces. - [`door`], [`token`]: serving them. - [`calls`]: calling others, with
//!   every check. - [`traffic`]: what its threads do. - [`streams`], [`links`], [`descriptors`]: what is
//!   kept account of. - [`desk`]: telling it. - [`role`]: from its start to its end.
//!
//! Not here: starting and killing processes (`crate::chaos::conductor`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipc::binder::manager::Services;
use ipc::{Binder, Proxy};

use super::fault::Fault;
use super::instance::Instance;

mod calls;
mod descriptors;
mod desk;
mod door;
mod links;
pub(super) mod role;
mod streams;
mod token;
mod traffic;
mod wire;

use desk::Desk;
use links::Links;
use wire::Claim;

/// Objects that each process registers: so that oneway calls have several queues.
pub(super) const DOORS: usize = 2;
/// Foreign objects that a process keeps at most.
const BAG: usize = 24;
/// How often a fault is committed.
const TIMES: u64 = 3;

/// Another process's door.
#[derive(Clone)]
struct Peer {
    instance: Instance,
    binder: Binder,
}

/// One process of the test.
struct Member {
    me: Instance,
    places: usize,
    desk: Desk,
    services: Services,
    /// Makes objects without knowing the process's connection.
    manager: Proxy,
    peers: Mutex<BTreeMap<(usize, usize), Peer>>,
    bag: Mutex<Vec<Claim>>,
    links: Links,
    tokens: Arc<AtomicU64>,
    last_number: AtomicU64,
    stopping: AtomicBool,
    fault: Option<Fault>,
    committed: AtomicU64,
}

impl Member {
    /// Whether this is the time to commit a fault.
    fn commits(&self, fault: Fault) -> bool {
        self.fault == Some(fault) && self.committed.fetch_add(1, Ordering::Relaxed) < TIMES
    }

    /// A number that this process has not used for anything.
    fn number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn peers(&self) -> MutexGuard<'_, BTreeMap<(usize, usize), Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bag(&self) -> MutexGuard<'_, Vec<Claim>> {
        self.bag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an object; if there are too many, lets one go.
    fn keep(&self, claim: Claim) {
        if self.commits(Fault::LeakObject) {
            std::mem::forget(claim.clone());
        }
        let gone = {
            let mut bag = self.bag();
            bag.push(claim);
            let at = (self.number() as usize) % bag.len();
            if bag.len() > BAG { Some(bag.swap_remove(at)) } else { None }
        };
        // Outside of the lock: letting go writes to the driver.
        drop(gone);
    }

    /// Lets go of everything. Complains of deaths that were not told, and of objects that somebody
    /// still holds, when patience is over.
    fn settle(&self, dead: &BTreeSet<Instance>) {
        if !self.in_time(|| self.links.missing(dead).is_empty()) {
            for target in self.links.missing(dead) {
                self.desk
                    .fail(format_args!("{} was never told of the death of {target}, as it asked", self.me));
            }
        }
        self.links.clear();
        let gone = (std::mem::take(&mut *self.bag()), std::mem::take(&mut *self.peers()));
        drop(gone);
        if !self.in_time(|| self.tokens.load(Ordering::Relaxed) == 0) {
            let left = self.tokens.load(Ordering::Relaxed);
            let me = self.me;
            self.desk.fail(format_args!("{left} objects of {me} that everybody let go of are still held"));
        }
    }

    /// Waits for something; false when patience is over.
    fn in_time(&self, done: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !done() {
            if start.elapsed() > self.desk.patience() {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        true
    }
}
