//! A service that is registered again when the service manager has died and another one has come.
//! Not here: registering itself (`binder::manager::client`, `hwbinder::manager::client`).
//! Facts: a manager keeps names in its memory only, so its successor knows none (Android's `ServiceManager.cpp`).

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use driver::Connection;

use crate::binder::manager::Services;
use crate::binder::manager::client::PATIENCE;
use crate::hwbinder::HwBinder;
use crate::hwbinder::manager::Services as HidlServices;
use crate::process::Process;
use crate::runtime::proxy::death::DeathLink;
use crate::runtime::target::Binder;
use crate::status::{CallError, Status};
use crate::status_code::StatusCode;

/// Time after a registration in which a thread should begin to serve.
const GRACE: Duration = Duration::from_secs(5);

/// Pause after a registration that failed.
const AGAIN: Duration = Duration::from_millis(50);

/// A registered service. While this value lives, the service is registered again with each new service manager of the
/// context; that needs the process's pool, which hears of the old manager's death. Dropping it ends that; the service stays registered as
/// long as the manager and this process live. If no thread of the pool serves calls some seconds after, a line on stderr says so.
#[must_use = "without it the service is not registered again"]
pub struct Registration {
    watch: Arc<Watch>,
}

#[derive(Default)]
struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The value was dropped.
    ended: bool,
    /// The manager with which the service was registered.
    manager_died: bool,
}

/// One registration: returns the link to the manager's death.
type Register = Box<dyn Fn(Duration) -> Result<Option<DeathLink>, CallError> + Send>;

impl Registration {
    /// Registers an AIDL object under a name; waits some seconds for a service manager.
    ///
    /// # Errors
    /// The context has no manager, or it refuses; or a thread cannot be started.
    pub fn of_binder<C: Connection>(
        process: &Process<C>,
        name: &str,
        object: &Binder,
    ) -> Result<Self, CallError> {
        let (process, name, object) = (process.clone(), name.to_owned(), object.clone());
        let serves = unserved(&process, &name);
        Self::keep(serves, move |watch| {
            Box::new(move |patience| {
                let services = Services::wait(&process, patience)?;
                services.add(&name, &object)?;
                watch.follow(services.manager())
            })
        })
    }

    /// Registers a HIDL object as an instance of each of its interfaces.
    ///
    /// # Errors
    /// See [`Self::of_binder`].
    pub fn of_hidl<C: Connection>(
        process: &Process<C>,
        instance: &str,
        object: &HwBinder,
    ) -> Result<Self, CallError> {
        let (process, instance, object) = (process.clone(), instance.to_owned(), object.clone());
        let serves = unserved(&process, &instance);
        Self::keep(serves, move |watch| {
            Box::new(move |patience| {
                let services = HidlServices::wait(&process, patience)?;
                services.add(&instance, &object)?;
                watch.follow(services.manager().as_binder())
            })
        })
    }

    fn keep(
        unserved: impl Fn() -> Option<String> + Send + 'static,
        register: impl FnOnce(Arc<Watch>) -> Register,
    ) -> Result<Self, CallError> {
        let watch = Arc::<Watch>::default();
        let register = register(watch.clone());
        let link = register(PATIENCE)?;
        let keeper = watch.clone();
        let kept = move || {
            if let Some(warning) = keeper.is_unserved(unserved) {
                eprintln!("{warning}");
            }
            keeper.keep(link, &register);
        };
        sys::title::thread("registration", kept).map_err(|_| Status::Code(StatusCode::NO_MEMORY))?;
        Ok(Self { watch })
    }
}

/// A check that returns a warning if no thread of the process serves its objects.
fn unserved<C: Connection>(process: &Process<C>, name: &str) -> impl Fn() -> Option<String> + use<C> {
    let (process, name) = (process.clone(), name.to_owned());
    move || {
        (process.pool_threads() == 0).then(|| {
            format!(
                "binder: {name:?} is registered, and no thread of this process serves its calls yet: its callers \
                 wait. Call start_thread_pool() or join_thread_pool() of its Process"
            )
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.watch.lock().ended = true;
        self.watch.changed.notify_all();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registered = !self.watch.lock().manager_died;
        f.debug_struct("Registration").field("registered", &registered).finish_non_exhaustive()
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears of the manager's death from now on.
    fn follow(self: &Arc<Self>, manager: &Binder) -> Result<Option<DeathLink>, CallError> {
        let watch = Arc::downgrade(self);
        self.lock().manager_died = false;
        Ok(manager.on_death(move || {
            if let Some(watch) = watch.upgrade() {
                watch.lock().manager_died = true;
                watch.changed.notify_all();
            }
        })?)
    }

    /// The warning of a check, some time after the registration, unless that has ended.
    fn is_unserved(&self, check: impl Fn() -> Option<String>) -> Option<String> {
        let runs = |state: &mut State| !state.ended && !state.manager_died;
        let grace = sys::patience::stretched(GRACE);
        let waited = self.changed.wait_timeout_while(self.lock(), grace, runs);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_over = state.ended;
        drop(state);
        if is_over { None } else { check() }
    }

    /// Registers again after each death of a manager, until the end.
    fn keep(&self, mut link: Option<DeathLink>, register: &Register) {
        loop {
            let waits = |state: &mut State| !state.ended && !state.manager_died;
            let state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
            if state.ended {
                return;
            }
            drop(state);
            drop(link.take());
            link = match register(AGAIN) {
                Ok(link) => link,
                Err(_) => {
                    let mut state = self.lock();
                    // A manager that died just now may have been followed.
                    state.manager_died = true;
                    let ended = |state: &mut State| !state.ended;
                    drop(self.changed.wait_timeout_while(state, AGAIN, ended));
                    None
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use backend::locate::{self, Device, Driver, Wanted};

    use super::*;
    use crate::process::ProcessOptions;

    #[test]
    fn a_service_without_a_thread_to_serve_it_is_noticed() {
        let wanted = Wanted { driver: Driver::Embedded, device: Device::Private, ..Wanted::default() };
        let context = locate::find(&wanted, "binder").expect("the embedded driver").context;
        let process = Process::open(&context, ProcessOptions::default()).expect("it opens");
        let check = unserved(&process, "echo");
        let warning = check().expect("no thread serves");
        assert!(
            warning.contains("\"echo\" is registered") && warning.contains("start_thread_pool()"),
            "{warning}"
        );
        process.start_thread_pool().expect("a thread");
        assert!(sys::patience::until(Duration::from_secs(20), || check().is_none()));
        process.shutdown().expect("it stops");
        let watch = Watch::default();
        watch.lock().ended = true;
        assert_eq!(watch.is_unserved(check), None, "a registration that ended needs no thread");
    }
}
