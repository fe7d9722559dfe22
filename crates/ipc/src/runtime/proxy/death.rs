//! Death notifications of proxies.
//! Not here: reading them (`exchange`).
//! Locks: a proxy's `death`, then `Deaths::watched`; the first is held across the write of its own
//! registration commands, which cannot block. Callbacks run under neither.
//! Facts: contract DTH-01..DTH-08.
//!
//! All links of a proxy share one registration with the driver, under a cookie that is never reused. A link keeps its
//! proxy alive, so a registration is always cleared before its handle is released.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use abi::Cookie;

use super::{Proxy, ProxyInner};
use crate::error::{Refusal, TransactError};
use crate::runtime::Runtime;
use crate::runtime::thread::ThreadState;

/// The code that a refused link reports: no transaction was made.
const NO_TRANSACTION: u32 = 0;

type Callback = Box<dyn FnOnce() + Send>;

/// The death links of one proxy.
#[derive(Default)]
pub(crate) struct Death {
    links: Vec<(u64, Callback)>,
    last_link: u64,
    registered: Option<Cookie>,
    dead: bool,
}

/// The registrations of one process, by cookie.
#[derive(Default)]
pub(crate) struct Deaths {
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    last: u64,
    proxies: BTreeMap<u64, Weak<ProxyInner>>,
}

impl Deaths {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, proxy: &Proxy) -> Cookie {
        let mut watched = self.lock();
        watched.last += 1;
        let cookie = watched.last;
        watched.proxies.insert(cookie, Arc::downgrade(&proxy.inner));
        Cookie(cookie)
    }

    fn unwatch(&self, cookie: Cookie) -> Option<Weak<ProxyInner>> {
        self.lock().proxies.remove(&cookie.0)
    }

    /// `BR_DEAD_BINDER`: acknowledges, clears the registration and tells every link.
    pub(crate) fn notify(&self, thread: &ThreadState, cookie: Cookie) {
        thread.queue(|out| out.dead_binder_done(cookie));
        // A registration that was cleared meanwhile still gets its notification (DTH-05).
        let Some(inner) = self.unwatch(cookie).and_then(|proxy| proxy.upgrade()) else { return };
        let links = {
            let mut death = inner.death.lock().unwrap_or_else(PoisonError::into_inner);
            death.dead = true;
            if death.registered.take().is_some() {
                thread.queue(|out| out.clear_death(inner.handle, cookie));
            }
            std::mem::take(&mut death.links)
        };
        for (_, callback) in links {
            // A panic has been reported; the other links, and the pool's thread, are none of its.
            let _ = catch_unwind(AssertUnwindSafe(callback));
        }
    }
}

impl Proxy {
    /// Calls `callback` once, on a pool thread, when the object's process dies. The pool
    /// must run ([`crate::Process::start_thread_pool`]): a notification is work for an idle looper.
    ///
    /// # Errors
    /// Refused `Dead`: the process is known to be dead; `callback` is dropped.
    pub fn link_to_death(
        &self,
        callback: impl FnOnce() + Send + 'static,
    ) -> Result<DeathLink, TransactError> {
        let mut death = self.inner.death.lock().unwrap_or_else(PoisonError::into_inner);
        if death.dead {
            return Err(TransactError::Refused {
                target: self.inner.handle,
                code: NO_TRANSACTION,
                by: Refusal::Dead,
            });
        }
        death.last_link += 1;
        let id = death.last_link;
        death.links.push((id, Box::new(callback)));
        if death.registered.is_none() {
            let cookie = self.inner.runtime.shared().deaths.watch(self);
            death.registered = Some(cookie);
            self.write_now(|out| out.request_death(self.inner.handle, cookie));
        }
        Ok(DeathLink { proxy: self.clone(), id })
    }

    /// Whether a death notification for this proxy has arrived.
    #[must_use]
    pub fn is_known_dead(&self) -> bool {
        self.inner.death.lock().unwrap_or_else(PoisonError::into_inner).dead
    }

    /// Writes a registration command at once, under the proxy's lock, so that the driver gets the commands of
    /// one handle in the order in which threads decide them.
    fn write_now(&self, put: impl FnOnce(&mut abi::Commands)) {
        let runtime: &dyn Runtime = &*self.inner.runtime;
        let thread = runtime.thread();
        thread.queue(put);
        runtime.flush(&thread);
    }

    fn unlink(&self, id: u64) {
        let mut death = self.inner.death.lock().unwrap_or_else(PoisonError::into_inner);
        let position = death.links.iter().position(|(link, _)| *link == id);
        let removed = position.map(|at| death.links.swap_remove(at));
        if death.links.is_empty()
            && let Some(cookie) = death.registered.take()
        {
            self.inner.runtime.shared().deaths.unwatch(cookie);
            self.write_now(|out| out.clear_death(self.inner.handle, cookie));
        }
        drop(death);
        drop(removed);
    }
}

/// A death link of a proxy, which it keeps alive; dropping it cancels the callback.
#[must_use = "dropping the link cancels the callback"]
pub struct DeathLink {
    proxy: Proxy,
    id: u64,
}

impl DeathLink {
    /// The proxy watched.
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }
}

impl Drop for DeathLink {
    fn drop(&mut self) {
        self.proxy.unlink(self.id);
    }
}

impl fmt::Debug for DeathLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeathLink").field("proxy", &self.proxy).finish_non_exhaustive()
    }
}
