//! Either driver behind one type.
//! Not here: choosing one (`locate`).
//! Who measures takes [`crate::on_context`] instead: one `match`, outside of every loop, and code
//! compiled for each driver behind it.

use std::io;
use std::path::Path;

use driver::connection::{AnyConnection, Context, OpenOptions};
use driver::error::OpenError;
use driver::kernel::KernelContext;
use driver::manager::ManagerError;
use embedded::{BrokerWatch, EmbeddedContext};

/// A context of either driver.
#[derive(Clone, Debug)]
pub enum AnyContext {
    /// The kernel driver.
    Kernel(KernelContext),
    /// The embedded driver.
    Embedded(EmbeddedContext),
}

/// Does something with the context inside an [`AnyContext`], compiled once for each driver:
/// `on_context!(any, |context| work(context))`.
#[macro_export]
macro_rules! on_context {
    ($any:expr, |$context:ident| $work:expr) => {
        match $any {
            $crate::AnyContext::Kernel($context) => $work,
            $crate::AnyContext::Embedded($context) => $work,
        }
    };
}

impl AnyContext {
    /// The address by which another process opens the same context while this value lives: a path, or an
    /// embedded context's address.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::Kernel(context) => context.path().display().to_string(),
            Self::Embedded(context) => context.address(),
        }
    }

    /// Reads what [`Self::address`] wrote.
    #[must_use]
    pub fn parse(address: &str) -> Self {
        match EmbeddedContext::parse(address) {
            Some(context) => Self::Embedded(context),
            None => Self::Kernel(KernelContext::at(address)),
        }
    }

    /// Whether only this process and its descendants can reach the context.
    #[must_use]
    pub fn is_private(&self) -> bool {
        on_context!(self, |context| context.is_private())
    }

    /// Watches the context's broker from now on; `None` for the kernel's driver, which has none.
    ///
    /// # Errors
    /// The broker cannot be started or refuses.
    pub fn watch(&self) -> Result<Option<BrokerWatch>, OpenError> {
        match self {
            Self::Kernel(_) => Ok(None),
            Self::Embedded(context) => context.watch().map(Some),
        }
    }

    /// The kernel's device node, if there is one.
    #[must_use]
    pub fn device(&self) -> Option<&Path> {
        match self {
            Self::Kernel(context) => Some(context.path()),
            Self::Embedded(_) => None,
        }
    }

    /// Explains why becoming the manager failed, naming the present manager.
    #[must_use]
    pub fn manager_error(&self, source: io::Error) -> ManagerError {
        match self {
            Self::Kernel(context) => ManagerError::new(context.path(), source),
            Self::Embedded(context) => {
                ManagerError { path: context.directory().join(context.name()), source, holders: Vec::new() }
            }
        }
    }
}

impl Context for AnyContext {
    type Connection = AnyConnection;

    fn open(&self, options: OpenOptions) -> Result<AnyConnection, OpenError> {
        Ok(match self {
            Self::Kernel(context) => AnyConnection::new(context.open(options)?),
            Self::Embedded(context) => AnyConnection::new(context.open(options)?),
        })
    }

    fn describe(&self) -> String {
        on_context!(self, |context| context.describe())
    }

    fn options(&self) -> String {
        on_context!(self, |context| context.options())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use embedded::Settings;

    #[test]
    fn an_address_keeps_its_driver() {
        let embedded = EmbeddedContext::at(Path::new("/run/x"), "binder", Settings::default());
        let any = AnyContext::parse(&AnyContext::Embedded(embedded).address());
        assert!(matches!(&any, AnyContext::Embedded(context) if context.directory() == Path::new("/run/x")));
        assert_eq!(any.device(), None);
        let any = AnyContext::parse("/dev/binderfs/x");
        assert_eq!((any.device(), any.is_private()), (Some(Path::new("/dev/binderfs/x")), false));
    }
}
