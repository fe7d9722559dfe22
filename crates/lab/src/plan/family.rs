//! Room: the families of cases: the tests and their controls.
//! Not here: how each sends its bytes (`crate::measure::echo`).

use std::fmt;
use std::str::FromStr;

use record::{Case, CaseKind};

/// One way to send a byte vector to another process and have it sent back, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Control: one copy of the vector within a process.
    Memcpy,
    /// Control: what binder's parcels cost in a process that sends them nowhere.
    Parcel,
    /// Control: the same of hwbinder's.
    HwParcel,
    /// Control: two pipes.
    Pipe,
    /// Control: a unix socket pair that keeps message boundaries (`SOCK_SEQPACKET`).
    Unix,
    /// Control: shared memory, both sides copy in and out and sleep on a futex.
    Futex,
    /// Control: shared memory likewise, both sides sleep on an eventfd.
    Eventfd,
    /// Control: the same shared memory, both sides spin.
    Spin,
    /// Control: binder by bare ioctls, without a runtime.
    Raw,
    /// A test: a binder call through the runtime.
    Binder,
    /// A test: the same through hwbinder.
    Binderize,
    /// A test: hwbinder's interface, implemented in the process that calls it.
    Passthrough,
}

impl Family {
    /// Payload sizes in bytes, those of the Android tool.
    pub const PAYLOADS: [u64; 15] =
        [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

    const CONTROLS: [Self; 6] = [Self::Pipe, Self::Unix, Self::Futex, Self::Eventfd, Self::Spin, Self::Raw];
    /// Parts of a round trip, each alone: they cross no border between processes.
    const PARTS: [Self; 3] = [Self::Memcpy, Self::Parcel, Self::HwParcel];
    /// What can be tested.
    pub const TESTS: [Self; 3] = [Self::Binder, Self::Binderize, Self::Passthrough];

    /// The last word of its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Parcel => "parcel",
            Self::HwParcel => "hwparcel",
            Self::Pipe => "pipe",
            Self::Unix => "unix",
            Self::Futex => "futex",
            Self::Eventfd => "eventfd",
            Self::Spin => "spin",
            Self::Raw => "raw",
            Self::Binder => "binder",
            Self::Binderize => "binderize",
            Self::Passthrough => "passthrough",
        }
    }

    /// The control with this last word.
    #[must_use]
    pub fn control(word: &str) -> Option<Self> {
        Self::CONTROLS.into_iter().chain(Self::PARTS).find(|family| family.word() == word)
    }

    /// Whether it is a test or a yardstick beside it.
    #[must_use]
    pub fn kind(self) -> CaseKind {
        if Self::TESTS.contains(&self) { CaseKind::Test } else { CaseKind::Control }
    }

    /// Whether it talks to a binder driver.
    #[must_use]
    pub fn needs_driver(self) -> bool {
        matches!(self, Self::Raw | Self::Binder | Self::Binderize)
    }

    /// Full name of a case, e.g. `BM_sendVec_binder/4`.
    #[must_use]
    pub fn case_name(self, payload: u64) -> String {
        format!("{self}/{payload}")
    }

    pub(super) fn case(self, payload: u64, family_index: u32, instance_index: u32) -> Case {
        Case {
            name: self.case_name(payload),
            family: self.to_string(),
            family_index,
            per_family_instance_index: instance_index,
            kind: self.kind(),
            payload_bytes: payload,
            threads: 1,
            crowd: None,
            latency: None,
            label: None,
            repetitions: Vec::new(),
        }
    }
}

/// Its name, e.g. `BM_sendVec_binder`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BM_sendVec_{}", self.word())
    }
}

/// Which control families run beside the test; typed as `default`, `all`, `none` or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controls(Vec<Family>);

impl Controls {
    /// Those that need no driver of their own: pipe, unix, futex, eventfd, spin.
    #[must_use]
    pub fn default_set() -> Self {
        Self(Family::CONTROLS.into_iter().filter(|family| !family.needs_driver()).collect())
    }

    /// All of them, and the parts of a round trip.
    #[must_use]
    pub fn with_parts() -> Self {
        Self(Family::PARTS.into_iter().chain(Family::CONTROLS).collect())
    }

    /// None of them.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// The families, in the order in which they run.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        self.0.iter().copied()
    }
}

impl FromStr for Controls {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => return Ok(Self::default_set()),
            "all" => return Ok(Self(Family::CONTROLS.to_vec())),
            "none" => return Ok(Self::none()),
            _ => {}
        }
        let mut families = Vec::new();
        for word in text.split(',') {
            families.push(Family::control(word.trim()).ok_or_else(|| {
                let known = Family::CONTROLS.into_iter().chain(Family::PARTS);
                let words: Vec<&str> = known.map(Family::word).collect();
                let words = words.join(", ");
                format!("no control named {word:?}; use default, all, none, or a list of {words}")
            })?);
        }
        families.sort_unstable();
        families.dedup();
        Ok(Self(families))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_lists() {
        for (text, want) in [
            ("default", "pipe unix futex eventfd spin"),
            ("all", "pipe unix futex eventfd spin raw"),
            ("none", ""),
            ("raw,pipe", "pipe raw"),
            ("spin, spin", "spin"),
            ("spin,parcel,memcpy", "memcpy parcel spin"),
        ] {
            let controls: Controls = text.parse().expect(text);
            let words: Vec<&str> = controls.families().map(Family::word).collect();
            assert_eq!(words.join(" "), want, "{text}");
        }
        for bad in ["", "binder", "pipe,,unix", "Pipe"] {
            let error = bad.parse::<Controls>().expect_err(bad);
            assert!(error.contains("pipe, unix, futex, eventfd, spin, raw, memcpy"), "{error}");
        }
    }
}
