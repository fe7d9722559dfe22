//! The Android releases whose dialects a process can speak.
//! Not here: what each dialect looks like on the wire (`binder::header`, `binder::manager::codes`).

use std::fmt;
use std::str::FromStr;

/// An Android release. It decides the request header, the stability word and the service manager's
/// numbering; both ends of a context must agree on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// 8.0 and 8.1.
    Android8,
    /// 9.
    Android9,
    /// 10.
    Android10,
    /// 11.
    Android11,
    /// 12 and 12L.
    Android12,
    /// 13.
    Android13,
    /// 14.
    Android14,
    /// 15, first releases.
    Android15,
    /// 15, quarterly platform releases, which renumbered the service manager.
    Android15Qpr,
    /// 16 and later.
    #[default]
    Android16,
}

impl Release {
    /// Every release, oldest first.
    pub const ALL: [Self; 10] = [
        Self::Android8,
        Self::Android9,
        Self::Android10,
        Self::Android11,
        Self::Android12,
        Self::Android13,
        Self::Android14,
        Self::Android15,
        Self::Android15Qpr,
        Self::Android16,
    ];

    /// The name as typed: `8` to `16`, `15-qpr`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Android8 => "8",
            Self::Android9 => "9",
            Self::Android10 => "10",
            Self::Android11 => "11",
            Self::Android12 => "12",
            Self::Android13 => "13",
            Self::Android14 => "14",
            Self::Android15 => "15",
            Self::Android15Qpr => "15-qpr",
            Self::Android16 => "16",
        }
    }
}

/// A form of the header. The names are libgbinder's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// Up to Android 9: policy, descriptor.
    Aidl,
    /// Android 10: policy, work source, descriptor.
    Aidl2,
    /// Android 11 and from 13 on: policy, work source, mark, descriptor; stability is a level.
    Aidl3,
    /// Android 12: as `Aidl3`; stability carries a version.
    Aidl4,
}

impl Release {
    /// The form of the header that this release writes.
    #[must_use]
    pub const fn generation(self) -> Generation {
        match self {
            Self::Android8 | Self::Android9 => Generation::Aidl,
            Self::Android10 => Generation::Aidl2,
            Self::Android12 => Generation::Aidl4,
            _ => Generation::Aidl3,
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|release| release.name() == text);
        found.ok_or_else(|| {
            format!(
                "no Android release \"{text}\" is known; give one of {}",
                Self::ALL.map(Self::name).join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for release in Release::ALL {
            assert_eq!(release.to_string().parse(), Ok(release));
        }
        let error = "17".parse::<Release>().expect_err("unknown");
        assert!(error.contains("15-qpr"), "{error}");
    }
}
