//! A binder that is taken for a HIDL object.
//! Not here: calling it (`client`), IBase's methods (`base`).

use std::fmt;

use crate::runtime::proxy::Proxy;
use crate::runtime::target::Binder;

/// A HIDL object to call, wherever it lives.
#[derive(Clone, PartialEq, Eq)]
pub struct HwBinder(Binder);

impl From<Binder> for HwBinder {
    /// Takes an object for a HIDL one. Another answers calls with `BAD_TYPE`.
    fn from(binder: Binder) -> Self {
        Self(binder)
    }
}

impl fmt::Debug for HwBinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hw{:?}", self.0)
    }
}

impl HwBinder {
    /// The object without its flavour.
    #[must_use]
    pub fn as_binder(&self) -> &Binder {
        &self.0
    }

    /// The proxy, if the object is another process's.
    #[must_use]
    pub fn proxy(&self) -> Option<&Proxy> {
        self.0.proxy()
    }
}
