//! Room: the flavours of binder that two processes can speak, with what differs when they look for each
//! other: the context, the service manager, its wire format.
//! Not here: speaking it (`crate::measure::echo::rendezvous`).

use std::fmt;
use std::str::FromStr;

use ipc::Release;

/// What is spoken in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// AIDL's, as of an Android release.
    Binder(Release),
    /// HIDL's, which no release changed.
    Hwbinder,
}

const HWBINDER: &str = "hwbinder";

impl Dialect {
    /// The name of its context: of a device, or of a context of the embedded driver.
    #[must_use]
    pub fn context(self) -> &'static str {
        match self {
            Self::Binder(_) => "binder",
            Self::Hwbinder => HWBINDER,
        }
    }
}

/// The release of binder's, or `hwbinder`.
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
