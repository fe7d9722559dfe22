//! Binder contexts of a run, one for each flavour, and their service managers.
//! Not here: finding them (`crate::run`).

use std::sync::Arc;
use std::time::Duration;

use backend::{AnyContext, on_context};
use procgroup::{Watchdog, WorkerProcess};

use super::role::{Server, ServerRole, Service};
use super::{CaseError, GRACE, failed, start_and_wait};
use crate::endpoint;
use crate::plan::{Dialect, FaultKind};

/// State of a context.
#[derive(Clone, Debug, Default)]
pub(crate) enum ContextState {
    /// No case needs it.
    #[default]
    Unneeded,
    /// Some cases need it, but it is not available, for this reason.
    Missing(String),
    /// Available.
    Found(AnyContext),
}

/// The service manager of a context.
#[derive(Default)]
enum Manager {
    #[default]
    Unknown,
    /// The system's.
    Theirs,
    /// With its deliberate fault.
    Ours(Arc<WorkerProcess>, Option<FaultKind>),
}

/// The contexts, one for each flavour.
#[derive(Default)]
pub(crate) struct Contexts {
    binder: (ContextState, Manager),
    hwbinder: (ContextState, Manager),
}

impl Contexts {
    /// Creates the set with one context.
    pub(crate) fn only(dialect: Dialect, context: Option<AnyContext>) -> Self {
        let mut contexts = Self::default();
        contexts.set(dialect, context.map_or(ContextState::Unneeded, ContextState::Found));
        contexts
    }

    pub(crate) fn set(&mut self, dialect: Dialect, state: ContextState) {
        match dialect {
            Dialect::Binder(_) => self.binder.0 = state,
            Dialect::Hwbinder => self.hwbinder.0 = state,
        }
    }

    /// The contexts that are available.
    pub(crate) fn found(&self) -> impl Iterator<Item = &AnyContext> {
        [&self.binder.0, &self.hwbinder.0].into_iter().filter_map(|state| match state {
            ContextState::Found(context) => Some(context),
            _ => None,
        })
    }

    pub(super) fn find(&self, dialect: Dialect) -> Result<AnyContext, CaseError> {
        let (state, _) = match dialect {
            Dialect::Binder(_) => &self.binder,
            Dialect::Hwbinder => &self.hwbinder,
        };
        match state {
            ContextState::Found(context) => Ok(context.clone()),
            ContextState::Missing(why) => Err(CaseError::Unfit(why.clone())),
            ContextState::Unneeded => Err(CaseError::Failed("no binder context was opened".to_owned())),
        }
    }

    /// Makes sure that a context has a service manager before the first call needs it: the system's, or one
    /// of ours in a process of its own, with this fault. Returns the context.
    pub(crate) fn manage(
        &mut self,
        dialect: Dialect,
        watchdog: &Watchdog,
        fault: Option<FaultKind>,
    ) -> Result<AnyContext, CaseError> {
        let any = self.find(dialect)?;
        let (_, manager) = match dialect {
            Dialect::Binder(_) => &mut self.binder,
            Dialect::Hwbinder => &mut self.hwbinder,
        };
        match manager {
            Manager::Theirs => return Ok(any),
            // When it gives up on a case, the watchdog kills the manager, too; that takes a moment.
            Manager::Ours(manager, present) => {
                let time = if watchdog.gave_up() { GRACE } else { Duration::ZERO };
                if manager.end_within(time).is_none() {
                    if *present == fault {
                        return Ok(any);
                    }
                    manager.kill();
                    let _ = manager.end_within(sys::patience::stretched(GRACE));
                }
            }
            Manager::Unknown => {}
        }
        let managed = !any.is_private()
            && on_context!(&any, |context| watchdog.during(|| endpoint::is_managed(context, dialect)))
                .map_err(failed("looking for a service manager"))?;
        *manager = if managed {
            Manager::Theirs
        } else {
            let server = Server::in_context(&any, dialect, Service::Manager);
            let role = ServerRole { server, fault };
            Manager::Ours(start_and_wait(watchdog, "service manager", &role)?, fault)
        };
        Ok(any)
    }
}

/// A service manager of ours, where a context had none; ended on drop.
pub(crate) struct OwnManager {
    _contexts: Contexts,
    _watchdog: Watchdog,
}

impl OwnManager {
    /// Starts a service manager if the context has none; it is killed if it does not answer in this many
    /// seconds.
    pub(crate) fn start(dialect: Dialect, context: AnyContext, patience_s: u64) -> Result<Self, CaseError> {
        let watchdog = Watchdog::new(Duration::from_secs(patience_s.max(1)));
        let mut contexts = Contexts::only(dialect, Some(context));
        contexts.manage(dialect, &watchdog, None)?;
        Ok(Self { _contexts: contexts, _watchdog: watchdog })
    }
}
