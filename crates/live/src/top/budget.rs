//! The limit of a view's cost, and the steps down when it costs more.
//! Not here: measuring it (`sys::clock`).

use std::time::Duration;

/// The sources that a view reads, from all to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Events, and the driver's state at each interval.
    Full,
    /// Events, and four times the interval.
    Slower,
    /// The driver's counters only, at four times the interval; tracing is off.
    Counters,
}

impl Level {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Slower => "slower",
            Self::Counters => "counters",
        }
    }

    /// The length of an interval at this level.
    #[must_use]
    pub fn interval(self, wanted: Duration) -> Duration {
        if self == Self::Full { wanted } else { wanted * 4 }
    }
}

/// Steps down when a view costs too much.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Share of one CPU that is allowed, 0 to 1.
    most: f64,
    level: Level,
    /// Number of intervals in a row that cost more.
    over: u32,
}

/// Number of intervals in a row that must cost more: the first one has the costs of starting.
const PATIENCE: u32 = 2;

impl Budget {
    /// A budget of this share of one CPU.
    #[must_use]
    pub fn new(most: f64) -> Self {
        Self { most, level: Level::Full, over: 0 }
    }

    /// The level that it has come to.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Takes the share of one CPU that an interval cost; returns the new level if it steps down. It never steps up: what
    /// cost too much would again.
    pub fn take(&mut self, share: f64) -> Option<Level> {
        self.over = if share > self.most { self.over + 1 } else { 0 };
        if self.over < PATIENCE {
            return None;
        }
        self.over = 0;
        self.level = match self.level {
            Level::Full => Level::Slower,
            Level::Slower => Level::Counters,
            Level::Counters => return None,
        };
        Some(self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_dear_intervals_in_a_row_step_down_and_cheap_ones_never_step_up() {
        let mut budget = Budget::new(0.01);
        let steps: Vec<_> = [0.02, 0.005, 0.02, 0.02, 0.001, 0.0, 0.5, 0.5, 0.9, 0.9]
            .map(|share| budget.take(share))
            .to_vec();
        let (slower, counters) = (Some(Level::Slower), Some(Level::Counters));
        assert_eq!(steps, [None, None, None, slower, None, None, None, counters, None, None]);
        assert_eq!(budget.level().interval(Duration::from_secs(1)), Duration::from_secs(4));
    }
}
