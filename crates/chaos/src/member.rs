//! A member process, client and server at once.
//!
//! - [`wire`]: interfaces. - [`service`], [`token`]: served objects. - [`calls`]: outgoing calls with their checks.
//! - [`traffic`]: the random traffic of its threads.
//! - [`visit`]: short lives beside the process's own connection.
//! - [`streams`], [`links`], [`descriptors`]: bookkeeping for checks.
//! - [`reporter`]: output to the controller. - [`worker`]: the process's main function.
//!
//! Not here: starting and killing processes (`crate::controller`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use backend::AnyContext;
use ipc::binder::manager::Services;
use ipc::{Binder, Proxy};

use super::fault::Fault;
use super::instance::Instance;

mod calls;
mod descriptors;
mod links;
mod reporter;
mod service;
mod streams;
mod token;
mod traffic;
mod visit;
mod wire;
mod worker;

use links::Links;
use reporter::Reporter;
use wire::ClaimedObject;
pub(super) use worker::{ChaosRole, MemberOptions};

/// Registered objects per member; several, so that oneway calls use several queues.
pub(super) const SERVICES: usize = 2;
/// Most foreign objects that a member keeps.
const BAG: usize = 24;
/// How many calls out of which a fault is committed.
const TIMES: u64 = 3;

/// A service of another member.
#[derive(Clone)]
struct Peer {
    instance: Instance,
    binder: Binder,
}

/// State of a member.
struct Member {
    me: Instance,
    members: usize,
    reporter: Reporter,
    services: Services,
    /// Publishes objects without access to the process's connection type.
    manager: Proxy,
    peers: Mutex<BTreeMap<(usize, usize), Peer>>,
    bag: Mutex<Vec<ClaimedObject>>,
    links: Links,
    tokens: Arc<AtomicU64>,
    last_number: AtomicU64,
    stopping: AtomicBool,
    resting: AtomicBool,
    /// The context that visits open.
    context: AnyContext,
    fault: Option<Fault>,
    committed: AtomicU64,
}

impl Member {
    /// Whether to commit this fault now.
    fn commits(&self, fault: Fault) -> bool {
        self.fault == Some(fault) && self.committed.fetch_add(1, Ordering::Relaxed) < TIMES
    }

    /// A number that this process has not used before.
    fn number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn peers(&self) -> MutexGuard<'_, BTreeMap<(usize, usize), Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bag(&self) -> MutexGuard<'_, Vec<ClaimedObject>> {
        self.bag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an object; drops one if there are too many.
    fn keep(&self, claim: ClaimedObject) {
        if self.commits(Fault::LeakObject) {
            std::mem::forget(claim.clone());
        }
        let gone = {
            let mut bag = self.bag();
            bag.push(claim);
            let at = (self.number() as usize) % bag.len();
            if bag.len() > BAG { Some(bag.swap_remove(at)) } else { None }
        };
        // Outside the lock: dropping an object writes to the driver.
        drop(gone);
    }

    /// Releases everything. Reports missing death notifications, and objects still held by others when the time limit
    /// is over.
    fn settle(&self, dead: &BTreeSet<Instance>) {
        if !self.in_time(|| self.links.missing(dead).is_empty()) {
            for target in self.links.missing(dead) {
                self.reporter
                    .fail(format_args!("{} was not notified of the death of {target}, as it asked", self.me));
            }
        }
        self.links.clear();
        let gone = (std::mem::take(&mut *self.bag()), std::mem::take(&mut *self.peers()));
        drop(gone);
        if !self.in_time(|| self.tokens.load(Ordering::Relaxed) == 0) {
            let left = self.tokens.load(Ordering::Relaxed);
            let me = self.me;
            self.reporter.fail(format_args!(
                "{left} objects of {me} are still held after all processes released them"
            ));
        }
    }

    /// Waits for a condition; false when the time limit is over.
    fn in_time(&self, done: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !done() {
            if sys::patience::is_over(start, self.reporter.patience()) {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        true
    }
}
