//! Room: the binder contexts of a run, one for each flavour, and who manages them.
//! Not here: finding them (`crate::run`), starting a manager (`super`).

use std::sync::Arc;

use driver::AnyContext;

use super::StageError;
use super::peer::Peer;
use crate::plan::Dialect;

/// A context as far as it is known.
#[derive(Clone, Debug, Default)]
pub(crate) enum Place {
    /// No case needs it.
    #[default]
    Unneeded,
    /// Some cases would, and it cannot be had.
    Missing(String),
    /// Here it is.
    Found(AnyContext),
}

impl From<Option<AnyContext>> for Place {
    fn from(context: Option<AnyContext>) -> Self {
        context.map_or(Self::Unneeded, Self::Found)
    }
}

/// One for each flavour.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contexts {
    pub(crate) binder: Place,
    pub(crate) hwbinder: Place,
}

impl Contexts {
    /// The one context that there is.
    pub(crate) fn only(dialect: Dialect, context: Option<AnyContext>) -> Self {
        let mut contexts = Self::default();
        *contexts.of_mut(dialect) = context.into();
        contexts
    }

    fn of(&self, dialect: Dialect) -> &Place {
        match dialect {
            Dialect::Binder(_) => &self.binder,
            Dialect::Hwbinder => &self.hwbinder,
        }
    }

    pub(crate) fn of_mut(&mut self, dialect: Dialect) -> &mut Place {
        match dialect {
            Dialect::Binder(_) => &mut self.binder,
            Dialect::Hwbinder => &mut self.hwbinder,
        }
    }

    /// The context where this is spoken.
    pub(super) fn find(&self, dialect: Dialect) -> Result<AnyContext, StageError> {
        match self.of(dialect) {
            Place::Found(context) => Ok(context.clone()),
            Place::Missing(why) => Err(StageError::Unfit(why.clone())),
            Place::Unneeded => Err(StageError::Failed("no binder context was opened".to_owned())),
        }
    }
}

impl From<Option<AnyContext>> for Contexts {
    /// Binder's alone.
    fn from(context: Option<AnyContext>) -> Self {
        Self { binder: context.into(), hwbinder: Place::Unneeded }
    }
}

/// The service manager of a context.
#[derive(Default)]
pub(super) enum Manager {
    #[default]
    Unknown,
    /// The system has one.
    Theirs,
    Ours(Arc<Peer>),
}

/// One for each flavour.
#[derive(Default)]
pub(super) struct Managers {
    binder: Manager,
    hwbinder: Manager,
}

impl Managers {
    pub(super) fn of(&mut self, dialect: Dialect) -> &mut Manager {
        match dialect {
            Dialect::Binder(_) => &mut self.binder,
            Dialect::Hwbinder => &mut self.hwbinder,
        }
    }
}
