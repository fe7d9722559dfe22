//! Scheduling attributes of a node and their flag bits.
//! Not here: other attributes (`runtime::node`), what a serving thread does (`background`).
//! Facts: flat_binder_object.flags, bits 0-7 minimum priority, 8 ACCEPTS_FDS, 9-10 policy,
//! 11 INHERIT_RT, 12 TXN_SECURITY_CTX; libbinder's `setMinSchedulerPolicy`, `setInheritRt` and
//! `setRequestingSid`. Mainline drivers know the priority only, and take it for a nice value.

use std::fmt;

use abi::codes::flat;

/// A nice value: -20, the most urgent, to 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nice(i8);

impl Nice {
    /// The most urgent.
    pub const MOST_URGENT: Self = Self(-20);
    /// Where processes start; what libhwbinder's nodes ask for.
    pub const NORMAL: Self = Self(0);
    /// From here on Android calls a thread a background thread.
    pub const BACKGROUND: Self = Self(10);
    /// The least urgent; what libbinder's nodes ask for, which is nothing.
    pub const LEAST_URGENT: Self = Self(19);

    /// The value.
    #[must_use]
    pub const fn value(self) -> i32 {
        self.0 as i32
    }
}

impl TryFrom<i32> for Nice {
    type Error = OutOfRange;

    fn try_from(value: i32) -> Result<Self, OutOfRange> {
        match i8::try_from(value) {
            Ok(nice @ -20..=19) => Ok(Self(nice)),
            _ => Err(OutOfRange { what: "a nice value", value, least: -20, most: 19 }),
        }
    }
}

/// A real-time priority: 1, the least urgent, to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RtPriority(u8);

impl RtPriority {
    /// The value.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl TryFrom<i32> for RtPriority {
    type Error = OutOfRange;

    fn try_from(value: i32) -> Result<Self, OutOfRange> {
        match u8::try_from(value) {
            Ok(priority @ 1..=99) => Ok(Self(priority)),
            _ => Err(OutOfRange { what: "a real-time priority", value, least: 1, most: 99 }),
        }
    }
}

/// A nice value or priority outside the kernel's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    what: &'static str,
    value: i32,
    least: i32,
    most: i32,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value, least, most } = self;
        write!(f, "{value} is not {what}: give one from {least} to {most}")
    }
}

impl std::error::Error for OutOfRange {}

/// The least urgency of a thread that serves a node, independent of the caller. libbinder takes NORMAL with nice 0
/// for "not said" and puts nice 19 there; here each value means itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Minimum {
    /// `SCHED_NORMAL`. Mainline drivers read the byte without its sign: a nice below 0 then asks for
    /// nothing (contract SCH-07).
    Normal(Nice),
    /// `SCHED_FIFO`, on Android's kernels. Mainline drivers take the priority for a nice value.
    Fifo(RtPriority),
    /// `SCHED_RR`, likewise.
    Rr(RtPriority),
}

impl Minimum {
    /// Bits 0 to 10 of the flags, less ACCEPTS_FDS.
    const fn bits(self) -> u32 {
        // The kernel's numbers of the policies; nice is a two's complement byte.
        let (policy, priority) = match self {
            Self::Normal(nice) => (0, nice.0.cast_unsigned()),
            Self::Fifo(priority) => (1, priority.0),
            Self::Rr(priority) => (2, priority.0),
        };
        priority as u32 | policy << flat::ANDROID_SCHED_POLICY_SHIFT
    }
}

/// Attributes of a node, fixed when it is first sent (contract OBJ-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeOptions {
    /// Calls may carry file descriptors.
    pub accepts_fds: bool,
    /// Least urgency of threads that serve the node.
    pub minimum: Minimum,
    /// Android's kernels only: a real-time caller's policy passes to the serving thread.
    pub inherit_rt: bool,
    /// Calls carry the caller's security context. Without a security module that has any, every
    /// call then fails (contract OBJ-22).
    pub security_context: bool,
}

impl NodeOptions {
    /// libbinder's: any nice will do, real-time is not inherited. Flags 113.
    pub const BINDER: Self = Self {
        accepts_fds: true,
        minimum: Minimum::Normal(Nice::LEAST_URGENT),
        inherit_rt: false,
        security_context: false,
    };

    /// libbinder's after `disableBackgroundScheduling(true)`: never behind nice 0. Flags 100.
    pub const BINDER_FOREGROUND: Self = Self { minimum: Minimum::Normal(Nice::NORMAL), ..Self::BINDER };

    /// libhwbinder's: never behind nice 0, real-time is inherited. Flags 900.
    pub const HWBINDER: Self = Self { inherit_rt: true, ..Self::BINDER_FOREGROUND };

    /// The `FLAT_BINDER_FLAG_*` word.
    #[must_use]
    pub const fn flags(self) -> u32 {
        const fn bit(on: bool, bit: u32) -> u32 {
            if on { bit } else { 0 }
        }
        self.minimum.bits()
            | bit(self.accepts_fds, flat::ACCEPTS_FDS)
            | bit(self.inherit_rt, flat::ANDROID_INHERIT_RT)
            | bit(self.security_context, flat::TXN_SECURITY_CTX)
    }
}

impl Default for NodeOptions {
    /// [`Self::BINDER`]
    fn default() -> Self {
        Self::BINDER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_own_words() {
        assert_eq!(NodeOptions::default().flags(), 0x113);
        assert_eq!(NodeOptions::BINDER_FOREGROUND.flags(), 0x100);
        assert_eq!(NodeOptions::HWBINDER.flags(), 0x900);
    }

    #[test]
    fn nice_is_a_byte_in_twos_complement() {
        let flags = |nice: i32| Minimum::Normal(nice.try_into().expect("in range")).bits();
        for (nice, want) in [(-20, 0xec), (-8, 0xf8), (-1, 0xff), (0, 0), (1, 1), (10, 0x0a), (19, 0x13)] {
            assert_eq!(flags(nice), want, "{nice}");
        }
    }

    #[test]
    fn every_combination_is_a_word_of_its_own() {
        let nice = |value: i32| Minimum::Normal(value.try_into().expect("in range"));
        let real = |value: i32| RtPriority::try_from(value).expect("in range");
        let normal = (-20..=19).map(|value| (nice(value), value as u32 & 0xff));
        let fifo = (1..=99).map(|value| (Minimum::Fifo(real(value)), 0x200 | value as u32));
        let rr = (1..=99).map(|value| (Minimum::Rr(real(value)), 0x400 | value as u32));
        let mut words = std::collections::BTreeSet::new();
        for (minimum, low) in normal.chain(fifo).chain(rr) {
            for choice in 0..8 {
                let [accepts_fds, inherit_rt, security_context] = [1, 2, 4].map(|bit| choice & bit != 0);
                let options = NodeOptions { accepts_fds, minimum, inherit_rt, security_context };
                let high = [(accepts_fds, 0x100), (inherit_rt, 0x800), (security_context, 0x1000)];
                let want = high.iter().filter(|(on, _)| *on).fold(low, |word, (_, bit)| word | bit);
                assert_eq!(options.flags(), want, "{options:?}");
                assert!(words.insert(want), "{options:?}");
            }
        }
    }

    #[test]
    fn values_that_the_kernel_has_not_are_refused() {
        for nice in [i32::MIN, -129, -21, 20, 127, 236, i32::MAX] {
            let error = Nice::try_from(nice).expect_err("out of range").to_string();
            assert!(error.contains(&nice.to_string()) && error.contains("-20 to 19"), "{error}");
        }
        for priority in [i32::MIN, -1, 0, 100, 256 + 50, i32::MAX] {
            let error = RtPriority::try_from(priority).expect_err("out of range").to_string();
            assert!(error.contains("real-time") && error.contains("1 to 99"), "{error}");
        }
        assert_eq!(
            (Nice::try_from(-20), Nice::try_from(19)),
            (Ok(Nice::MOST_URGENT), Ok(Nice::LEAST_URGENT))
        );
        assert_eq!(Nice::try_from(10).map(Nice::value), Ok(10));
        assert_eq!(RtPriority::try_from(99).map(RtPriority::value), Ok(99));
    }
}
