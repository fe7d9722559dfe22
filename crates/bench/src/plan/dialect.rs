//! Flavours of binder that two processes can speak, with the differences in setup: the context, the service
//! manager, its wire format.
//! Not here: the setup itself (`crate::endpoint`).

use std::fmt;
use std::str::FromStr;

use ipc::{NodeOptions, Release};

/// Protocol of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// AIDL's protocol, in the version of an Android release.
    Binder(Release),
    /// HIDL's protocol, the same in all releases.
    Hwbinder,
}

const HWBINDER: &str = "hwbinder";

impl Dialect {
    /// Returns the name of its context: of a device, or of a context of the embedded driver.
    #[must_use]
    pub fn context(self) -> &'static str {
        match self {
            Self::Binder(_) => "binder",
            Self::Hwbinder => HWBINDER,
        }
    }

    /// Name of its service manager's process.
    pub(crate) fn manager_title(self) -> &'static str {
        match self {
            Self::Binder(_) => "servicemanager",
            Self::Hwbinder => "hwservicemanager",
        }
    }

    /// Options of a node as the flavour's library publishes it.
    pub(crate) fn node_options(self) -> NodeOptions {
        match self {
            Self::Binder(_) => NodeOptions::BINDER,
            Self::Hwbinder => NodeOptions::HWBINDER,
        }
    }
}

/// Writes the release of binder's, or `hwbinder`.
impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binder(release) => release.fmt(f),
            Self::Hwbinder => f.write_str(HWBINDER),
        }
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            HWBINDER => Ok(Self::Hwbinder),
            release => release.parse().map(Self::Binder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_on_is_understood() {
        for dialect in
            [Dialect::Hwbinder, Dialect::Binder(Release::default()), Dialect::Binder(Release::Android12)]
        {
            assert_eq!(dialect.to_string().parse(), Ok(dialect));
        }
        assert!("vndbinder".parse::<Dialect>().is_err());
    }
}
