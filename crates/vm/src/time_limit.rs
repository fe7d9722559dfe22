//! How long a guest's command may take.
//! Not here: the limit of the boot (`session`).

use std::time::{Duration, Instant};

/// Time limit of a command, and of the boot before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// This much wall time, which the user has named.
    Exact(Duration),
    /// This much on a machine that does nothing else, and more on a busy one.
    Usual(Duration),
}

/// The limit of those who name none.
pub const USUAL_LIMIT: TimeLimit = TimeLimit::Usual(Duration::from_secs(600));

impl TimeLimit {
    /// Whether the limit, counted from `since`, has passed.
    pub(crate) fn is_over(self, since: Instant) -> bool {
        match self {
            Self::Exact(limit) => since.elapsed() >= limit,
            Self::Usual(limit) => sys::patience::is_over(since, limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_after_its_time_and_no_sooner() {
        let now = Instant::now();
        let (hour, none) = (Duration::from_secs(3600), Duration::ZERO);
        assert!(!TimeLimit::Exact(hour).is_over(now) && !TimeLimit::Usual(hour).is_over(now));
        assert!(TimeLimit::Exact(none).is_over(now) && TimeLimit::Usual(none).is_over(now));
    }
}
