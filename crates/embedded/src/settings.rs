//! Options of an embedded driver, and the word that passes them to another process.
//! Not here: the code that obeys them (`client`, `shm::wait`).
//! Facts: contract section 15 (priority). The mainline C driver passes nice values on, Android's also real-time
//! policies.

use std::fmt;
use std::str::FromStr;

/// Parts of a caller's priority that the serving thread inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherit {
    /// Nothing, like the kernel's Rust driver.
    None,
    /// Nice values, like the kernel's C driver.
    #[default]
    Nice,
    /// Nice values and real-time policies, like Android's kernels.
    Rt,
}

impl Inherit {
    const WORDS: [(&'static str, Self); 3] = [("none", Self::None), ("nice", Self::Nice), ("rt", Self::Rt)];
}

impl FromStr for Inherit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        meaning(&Self::WORDS, text)
            .ok_or_else(|| format!("no mode of inheritance {text:?}; use none, nice or rt"))
    }
}

impl fmt::Display for Inherit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word(&Self::WORDS, *self))
    }
}

/// Waiting strategy of a thread. A thread that does not sleep at once yields its CPU (`sched_yield(2)`) to a peer on
/// the same CPU, as long as that pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Sleep at once.
    Sleep,
    /// Spin for the whole budget whenever spinning can help (never on one CPU, at a real-time priority, or with more
    /// busy threads than CPUs), then sleep.
    Spin,
    /// Spin for as long as spinning has paid lately, at most as long as `Spin`, then sleep.
    #[default]
    Adaptive,
}

impl Waiting {
    const WORDS: [(&'static str, Self); 3] =
        [("sleep", Self::Sleep), ("spin", Self::Spin), ("adaptive", Self::Adaptive)];
}

impl FromStr for Waiting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        meaning(&Self::WORDS, text)
            .ok_or_else(|| format!("no way of waiting {text:?}; use sleep, spin or adaptive"))
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word(&Self::WORDS, *self))
    }
}

fn meaning<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, other)| *other == value).map_or("", |(word, _)| word)
}

/// Options of an embedded driver. Text form: `nice,adaptive:50000,call_slots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Priority inheritance.
    pub inherit: Inherit,
    /// Waiting strategy.
    pub waiting: Waiting,
    /// Longest spin before a thread sleeps, in ns.
    pub spin_budget_ns: u64,
    /// Whether calls without objects, or with scattered buffers only, go through memory that both processes share;
    /// otherwise every transaction goes through the broker.
    pub call_slots: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            inherit: Inherit::default(),
            waiting: Waiting::default(),
            spin_budget_ns: Self::SPIN_BUDGET_NS,
            call_slots: true,
        }
    }
}

impl Settings {
    /// Default budget: several wake-ups of a thread on another CPU, without a hypervisor. In virtual machines one
    /// wake-up may take longer; then spins last longer, too.
    pub const SPIN_BUDGET_NS: u64 = 50_000;
    const CALL_SLOTS: [&'static str; 2] = ["broker", "direct"];
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call_slots = Self::CALL_SLOTS[usize::from(self.call_slots)];
        write!(f, "{},{}:{},{call_slots}", self.inherit, self.waiting, self.spin_budget_ns)
    }
}

impl FromStr for Settings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let strange = || format!("strange settings of an embedded driver: {text:?}");
        let [inherit, waiting, call_slots] = text.split(',').collect::<Vec<_>>()[..] else {
            return Err(strange());
        };
        let (waiting, budget) = waiting.split_once(':').ok_or_else(strange)?;
        Ok(Self {
            inherit: inherit.parse()?,
            waiting: waiting.parse()?,
            spin_budget_ns: budget.parse().map_err(|_| strange())?,
            call_slots: Self::CALL_SLOTS.iter().position(|word| *word == call_slots).ok_or_else(strange)?
                == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_their_word() {
        let words =
            ["nice,adaptive:50000,direct", "none,sleep:0,broker", "rt,spin:18446744073709551615,direct"];
        for word in words {
            assert_eq!(word.parse::<Settings>().expect(word).to_string(), word);
        }
        assert_eq!(Settings::default().to_string(), words[0]);
        for bad in
            ["", "nice", "nice,adaptive,direct", "nice,nap:1,direct", "deep,spin:1,direct", "nice,spin:1,x"]
        {
            assert!(bad.parse::<Settings>().is_err(), "{bad}");
        }
    }
}
