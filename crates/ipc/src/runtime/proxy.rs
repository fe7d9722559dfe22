//! Proxies: other processes' objects, by handle.
//! Not here: own objects (`node`), payloads (`binder::client`).
//! Locks: `Proxies::known`, held across the one `BC_ACQUIRE` of a new proxy, a write that cannot
//! block; no user code runs under it.
//! Facts: contract REF-01..REF-07, BUF-06, OBJ-08, CTX-05, US-01.
//!
//! Each proxy value owns exactly one strong count of its handle, so two values for one handle (one
//! being dropped while the handle arrives again) cannot disturb each other. The count is taken, and
//! written to the driver at once, while the buffer that brought the handle still keeps it alive;
//! no later `BC_RELEASE`, from whichever thread, can overtake it.

pub(crate) mod death;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use abi::{Handle, Payload, TransactionFlags};

use crate::call::Taken;
use crate::error::TransactError;
use crate::runtime::{Outcome, Runtime};
use death::Death;

/// A strong reference to another process's object. Clones share it; dropping the last one releases it.
#[derive(Clone)]
pub struct Proxy {
    pub(crate) inner: Arc<ProxyInner>,
}

pub(crate) struct ProxyInner {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) handle: Handle,
    pub(crate) death: Mutex<Death>,
}

impl Proxy {
    /// This process's number for the object.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.inner.handle
    }

    /// One transaction with a ready payload. A two-way call waits for its reply and meanwhile serves
    /// calls that come back to this thread.
    ///
    /// # Errors
    /// See [`TransactError`]; a refusal carries the driver's reason.
    pub fn transact_payload(
        &self,
        code: u32,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Result<Outcome<'_>, TransactError> {
        self.inner.runtime.call(self.inner.handle, code, flags, payload)
    }

    /// One oneway transaction with a ready payload.
    pub(crate) fn transact_oneway(&self, code: u32, payload: Payload<'_>) -> Result<Taken, TransactError> {
        match self.transact_payload(code, TransactionFlags::ONEWAY, payload)? {
            Outcome::Taken(taken) => Ok(taken),
            Outcome::Replied { .. } => Ok(Taken::Complete),
        }
    }

    /// Whether both stand for the same process of the driver.
    pub(crate) fn belongs_to(&self, runtime: &dyn Runtime) -> bool {
        self.inner.runtime.shared().id == runtime.shared().id
    }
}

impl PartialEq for Proxy {
    fn eq(&self, other: &Self) -> bool {
        self.inner.handle == other.inner.handle && self.belongs_to(&*other.inner.runtime)
    }
}

impl Eq for Proxy {}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.inner.handle)
    }
}

impl Drop for ProxyInner {
    fn drop(&mut self) {
        self.runtime.shared().proxies.forget(self);
        let handle = self.handle;
        let thread = self.runtime.thread();
        thread.queue(|out| out.release(handle));
        self.runtime.settle(&thread);
    }
}

/// The proxies of one process.
#[derive(Default)]
pub(crate) struct Proxies {
    known: Mutex<BTreeMap<Handle, Weak<ProxyInner>>>,
}

impl Proxies {
    /// The proxy for a handle: the one that exists, or a new one that takes its count at once.
    pub(crate) fn proxy(&self, runtime: Arc<dyn Runtime>, handle: Handle) -> Proxy {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inner) = known.get(&handle).and_then(Weak::upgrade) {
            return Proxy { inner };
        }
        let thread = runtime.thread();
        thread.queue(|out| out.acquire(handle));
        runtime.flush(&thread);
        let inner = Arc::new(ProxyInner { runtime, handle, death: Mutex::default() });
        known.insert(handle, Arc::downgrade(&inner));
        Proxy { inner }
    }

    fn forget(&self, gone: &ProxyInner) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // The entry may already be a younger proxy's.
        if known.get(&gone.handle).is_some_and(|entry| std::ptr::eq(entry.as_ptr(), gone)) {
            known.remove(&gone.handle);
        }
    }
}
