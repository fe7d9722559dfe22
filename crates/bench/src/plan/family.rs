//! Families of cases: the tests and their controls.
//! Not here: how each sends its bytes (`crate::measure::echo`).

use std::fmt;
use std::str::FromStr;

use record::{Case, CaseKind};
use workload::scenario::{self, Template};

use crate::case::new_case;

/// A case of a scenario, by its number among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScenarioCase(usize);

impl ScenarioCase {
    /// The cases of a scenario, or of all.
    #[must_use]
    pub fn of(name: Option<&str>) -> Vec<Self> {
        let scenarios =
            || scenario::all().iter().flat_map(|scenario| scenario.cases.iter().map(move |_| scenario.name));
        let named = scenarios().enumerate().filter(|(_, of)| name.is_none_or(|name| name == *of));
        named.map(|(number, _)| Self(number)).collect()
    }

    /// The steps of the case.
    #[must_use]
    pub fn template(self) -> &'static Template {
        // `of` makes numbers of cases only.
        scenario::all().iter().flat_map(|scenario| &scenario.cases).nth(self.0).expect("a case")
    }
}

/// A way to send a byte vector to another process and back, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Control: one copy of the vector within a process.
    Memcpy,
    /// Control: the cost of binder's parcels in one process, without sending them.
    Parcel,
    /// Control: the cost of hwbinder's parcels in one process.
    HwParcel,
    /// Control: two pipes.
    Pipe,
    /// Control: a unix socket pair that keeps message boundaries (`SOCK_SEQPACKET`).
    Unix,
    /// Control: shared memory, both sides copy in and out and sleep on a futex.
    Futex,
    /// Control: the same shared memory, both sides sleep on an eventfd.
    Eventfd,
    /// Control: the same shared memory, both sides spin.
    Spin,
    /// Control: binder by bare ioctls, without a runtime.
    Raw,
    /// A test: a binder call through the runtime.
    Binder,
    /// A test: a hwbinder call through the runtime.
    Binderize,
    /// A test: hwbinder's interface, implemented in the calling process.
    Passthrough,
    /// A test: binder's ping, which any object answers.
    Ping,
    /// A test: binder's question for an object's interface.
    Interface,
    /// A test: hwbinder's ping.
    HwPing,
    /// A test: a ping by RPC binder over a unix socket, which any object answers.
    RpcPing,
    /// A test: a call of RPC binder over a unix socket.
    Rpc,
    /// A test: Android's `binderAddInts`, two numbers to a service that returns their sum.
    AddInts,
    /// A test: a load, of which one process measures a part.
    Scenario(ScenarioCase),
}

impl Family {
    /// Payload sizes in bytes, as in the Android tool.
    pub const PAYLOADS: [u64; 15] =
        [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

    /// Payload sizes in bytes of Android's `binderRpcBenchmark`.
    const RPC_PAYLOADS: [u64; 10] = [64, 1024, 2048, 4096, 8182, 16364, 32728, 65535, 65536, 65537];

    const CONTROLS: [Self; 6] = [Self::Pipe, Self::Unix, Self::Futex, Self::Eventfd, Self::Spin, Self::Raw];
    /// Parts of a round trip, each alone and within one process.
    const PARTS: [Self; 3] = [Self::Memcpy, Self::Parcel, Self::HwParcel];
    /// The families that are tests.
    pub const TESTS: [Self; 3] = [Self::Binder, Self::Binderize, Self::Passthrough];

    /// Largest payload of RPC binder in bytes: libbinder's messages end at 100,000 B with all that belongs to them.
    pub const LARGEST_RPC: u64 = 99_000;

    /// The figures that Android publishes of each kernel release.
    pub const KPIS: [Self; 3] = [Self::Rpc, Self::AddInts, Self::Binderize];

    /// The tests that need no service of ours; their calls carry no payload.
    pub const PINGS: [Self; 3] = [Self::Ping, Self::Interface, Self::HwPing];

    /// Returns the last word of its name.
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
            Self::Ping => "ping",
            Self::Interface => "interface",
            Self::HwPing => "hwping",
            Self::RpcPing => "rpcPing",
            Self::Rpc => "rpc",
            Self::AddInts => "addInts",
            Self::Scenario(case) => &case.template().name,
        }
    }

    /// Returns the control with this last word.
    #[must_use]
    pub fn control(word: &str) -> Option<Self> {
        Self::CONTROLS.into_iter().chain(Self::PARTS).find(|family| family.word() == word)
    }

    /// Returns whether it is a test or a control.
    #[must_use]
    pub fn kind(self) -> CaseKind {
        match self {
            Self::RpcPing | Self::Rpc | Self::AddInts | Self::Scenario(_) => CaseKind::Test,
            _ if Self::TESTS.contains(&self) || self.is_ping() => CaseKind::Test,
            _ => CaseKind::Control,
        }
    }

    /// Returns true if it uses a binder driver.
    #[must_use]
    pub fn needs_driver(self) -> bool {
        let calls =
            matches!(self, Self::Raw | Self::Binder | Self::Binderize | Self::AddInts | Self::Scenario(_));
        calls || self.is_ping()
    }

    /// Returns what its cases differ by: the payload sizes in bytes with which Android's tool measures it, or the values
    /// of a scenario's case.
    #[must_use]
    pub fn values(self) -> &'static [u64] {
        match self {
            Self::Scenario(case) => &case.template().values,
            Self::Rpc => &Self::RPC_PAYLOADS,
            // Two numbers.
            Self::AddInts => &[8],
            _ if self.is_ping() || self == Self::RpcPing => &[0],
            _ => &Self::PAYLOADS,
        }
    }

    /// Returns the payload in bytes of the case with this value. A scenario's case is compared with calls without any.
    #[must_use]
    pub fn payload(self, value: u64) -> u64 {
        match self {
            Self::Scenario(_) => 0,
            _ => value,
        }
    }

    /// Returns true if its payload is a choice.
    #[must_use]
    pub fn has_sizes(self) -> bool {
        !matches!(self, Self::AddInts | Self::RpcPing | Self::Scenario(_)) && !self.is_ping()
    }

    /// Returns true for a call without payload that any object of a driver answers.
    #[must_use]
    pub fn is_ping(self) -> bool {
        Self::PINGS.contains(&self)
    }

    /// Returns the full name of a case, e.g. `BM_sendVec_binder/4`, or `BM_addInts`, which has one size.
    #[must_use]
    pub fn case_name(self, payload: u64) -> String {
        match self {
            Self::AddInts => self.to_string(),
            Self::Scenario(case) if !case.template().has_values() => self.to_string(),
            _ => format!("{self}/{payload}"),
        }
    }

    /// Returns the name as the Google Benchmark of Android 8 prints it: `BM_sendVec_binderize/2k`.
    #[must_use]
    pub fn short_case_name(self, payload: u64) -> String {
        match Some(payload / 1024).filter(|kib| *kib > 1 && kib * 1024 == payload) {
            Some(kib) => format!("{self}/{kib}k"),
            None => self.case_name(payload),
        }
    }

    pub(super) fn case(self, payload: u64, family_index: u32, instance_index: u32) -> Case {
        Case {
            family_index,
            kind: self.kind(),
            payload_bytes: self.payload(payload),
            ..new_case(self.case_name(payload), self.to_string(), instance_index)
        }
    }
}

/// Writes the name, e.g. `BM_sendVec_binder`, `BM_ping`.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vectors = !matches!(self, Self::AddInts | Self::RpcPing | Self::Scenario(_));
        let sends_vectors = vectors && !self.is_ping();
        write!(f, "{}{}", if sends_vectors { "BM_sendVec_" } else { "BM_" }, self.word())
    }
}

/// Control families that run with the test; typed as `default`, `all`, `none` or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controls(Vec<Family>);

impl Controls {
    /// Returns the controls that need no driver: pipe, unix, futex, eventfd, spin.
    #[must_use]
    pub fn default_set() -> Self {
        Self(Family::CONTROLS.into_iter().filter(|family| !family.needs_driver()).collect())
    }

    /// Returns all controls, and the parts of a round trip.
    #[must_use]
    pub fn with_parts() -> Self {
        Self(Family::PARTS.into_iter().chain(Family::CONTROLS).collect())
    }

    /// Returns no controls.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns the families, in the order in which they run.
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
