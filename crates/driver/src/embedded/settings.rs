//! Room: how an embedded driver behaves where one may choose, and the word that tells another process.
//! Not here: obeying any of it (`process`, `wait`).
//! Facts: contract section 15 (priority); mainline C passes nice on, Android's also real-time policies.

use std::fmt;
use std::str::FromStr;

/// Which of a caller's priorities the thread that serves it inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherit {
    /// None, as the kernel's Rust driver.
    None,
    /// Nice values, as the kernel's C driver.
    #[default]
    Nice,
    /// Nice values and real-time policies, as Android's kernels.
    Rt,
}

impl FromStr for Inherit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "nice" => Ok(Self::Nice),
            "rt" => Ok(Self::Rt),
            _ => Err(format!("no mode of inheritance {text:?}; use none, nice or rt")),
        }
    }
}

impl fmt::Display for Inherit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Nice => "nice",
            Self::Rt => "rt",
        })
    }
}

/// How a thread waits for its peer. One that does not sleep at once hands its CPU over (`sched_yield(2)`) to a peer
/// that shares it, while that pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// It sleeps at once.
    Sleep,
    /// It spins for the whole budget whenever spinning can help at all (never on one CPU, at a
    /// real-time priority, or with more busy threads than CPUs), then sleeps. Where waking a thread takes
    /// longer than the budget, it spins for a little longer than that takes, up to four budgets.
    Spin,
    /// It spins for as long as spinning has paid lately, at most as long as `Spin` does, then sleeps.
    #[default]
    Adaptive,
}

impl FromStr for Waiting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sleep" => Ok(Self::Sleep),
            "spin" => Ok(Self::Spin),
            "adaptive" => Ok(Self::Adaptive),
            _ => Err(format!("no way of waiting {text:?}; use sleep, spin or adaptive")),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sleep => "sleep",
            Self::Spin => "spin",
            Self::Adaptive => "adaptive",
        })
    }
}

/// What one may choose about an embedded driver. As a word: `nice,adaptive:50000,lanes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Which priorities are inherited.
    pub inherit: Inherit,
    /// How threads wait.
    pub waiting: Waiting,
    /// For how long a thread may spin before it sleeps, in ns; up to four times as long where waking a thread takes longer.
    pub spin_budget_ns: u64,
    /// Whether calls without objects, or with none but scattered buffers, go through memory that both
    /// processes share; else every transaction goes through the broker.
    pub lanes: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            inherit: Inherit::default(),
            waiting: Waiting::default(),
            spin_budget_ns: Self::SPIN_BUDGET_NS,
            lanes: true,
        }
    }
}

impl Settings {
    /// The usual budget: several wake-ups of a thread that sleeps on another CPU, where no hypervisor is in the way. In
    /// virtual machines a single one may take longer; then spins last longer, too.
    pub const SPIN_BUDGET_NS: u64 = 50_000;
    const LANES: [&'static str; 2] = ["broker", "lanes"];
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = Self::LANES[usize::from(self.lanes)];
        write!(f, "{},{}:{},{lanes}", self.inherit, self.waiting, self.spin_budget_ns)
    }
}

impl FromStr for Settings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let strange = || format!("strange settings of an embedded driver: {text:?}");
        let [inherit, waiting, lanes] = text.split(',').collect::<Vec<_>>()[..] else {
            return Err(strange());
        };
        let (waiting, budget) = waiting.split_once(':').ok_or_else(strange)?;
        Ok(Self {
            inherit: inherit.parse()?,
            waiting: waiting.parse()?,
            spin_budget_ns: budget.parse().map_err(|_| strange())?,
            lanes: Self::LANES.iter().position(|word| *word == lanes).ok_or_else(strange)? == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_their_word() {
        let words =
            ["nice,adaptive:50000,lanes", "none,sleep:0,broker", "rt,spin:18446744073709551615,lanes"];
        for word in words {
            assert_eq!(word.parse::<Settings>().expect(word).to_string(), word);
        }
        assert_eq!(Settings::default().to_string(), words[0]);
        for bad in
            ["", "nice", "nice,adaptive,lanes", "nice,nap:1,lanes", "deep,spin:1,lanes", "nice,spin:1,x"]
        {
            assert!(bad.parse::<Settings>().is_err(), "{bad}");
        }
    }
}
