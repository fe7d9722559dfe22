//! A Linux release as two numbers.

use std::fmt;

/// A Linux release: major and minor version, on which features depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32);

impl Release {
    /// Newer than any kernel. The embedded driver has every kernel feature.
    pub const NEWEST: Self = Self(u32::MAX, 0);

    /// Parses `6.1.0-38-amd64` and the like; 0.0 for anything else, so that no feature is assumed.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        Self(numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}
