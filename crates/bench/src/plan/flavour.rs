//! Interface of a call, as the user chooses it.
//! Not here: the protocol of its context (`dialect`).

use std::fmt;

use ipc::Release;
use serde::{Deserialize, Serialize};

use super::Dialect;

/// Interface of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavour {
    /// Transactions of bare bytes.
    Binder,
    /// A HIDL interface.
    #[default]
    Hwbinder,
    /// The HIDL interface in the caller's own process, without IPC.
    Passthrough,
}

impl Flavour {
    /// Returns the word used in names of cases and documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Binder => "binder",
            Self::Hwbinder => "hwbinder",
            Self::Passthrough => "passthrough",
        }
    }

    /// Protocol of the context, with this Android release's service manager; `None` without IPC.
    pub(crate) fn dialect(self, release: Release) -> Option<Dialect> {
        match self {
            Self::Binder => Some(Dialect::Binder(release)),
            Self::Hwbinder => Some(Dialect::Hwbinder),
            Self::Passthrough => None,
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
