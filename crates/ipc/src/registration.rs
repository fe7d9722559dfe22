//! A service that is registered again when the service manager has died and another one has come.
//! Not here: registering itself (`binder::manager::client`, `hwbinder::manager::client`).
//! Facts: a manager keeps names in its memory only, so its successor knows none (Android's `ServiceManager.cpp`).

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use driver::Connection;

use crate::binder::manager::Services;
use crate::hwbinder::HwBinder;
use crate::hwbinder::manager::Services as HidlServices;
use crate::process::Process;
use crate::runtime::proxy::death::DeathLink;
use crate::runtime::target::Binder;
use crate::status::{CallError, Status};
use crate::status_code::StatusCode;

/// Pause after a registration that failed.
const AGAIN: Duration = Duration::from_millis(50);

/// A registered service. While this value lives, the service is registered again with each new service manager of the
/// context; that needs the process's pool, which hears of the old manager's death. Dropping it ends that; the service stays registered as
/// long as the manager and this process live.
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
    /// Registers an AIDL object under a name.
    ///
    /// # Errors
    /// The context has no manager, or it refuses; or a thread cannot be started.
    pub fn of_binder<C: Connection>(
        process: &Process<C>,
        name: &str,
        object: &Binder,
    ) -> Result<Self, CallError> {
        let (process, name, object) = (process.clone(), name.to_owned(), object.clone());
        Self::keep(move |watch| {
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
        Self::keep(move |watch| {
            Box::new(move |patience| {
                let services = HidlServices::wait(&process, patience)?;
                services.add(&instance, &object)?;
                watch.follow(services.manager().as_binder())
            })
        })
    }

    fn keep(register: impl FnOnce(Arc<Watch>) -> Register) -> Result<Self, CallError> {
        let watch = Arc::<Watch>::default();
        let register = register(watch.clone());
        let link = register(Duration::ZERO)?;
        let keeper = watch.clone();
        sys::title::thread("registration", move || keeper.keep(link, &register))
            .map_err(|_| Status::Code(StatusCode::NO_MEMORY))?;
        Ok(Self { watch })
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
