//! How long each step may take once the command is to stop, so that the whole ends within half a minute, whatever the other
//! machine does.
//! Not here: the steps (`device`).

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A step of an orderly end; each has its time, counted from the request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The command ends by the signals that it gets.
    Follow,
    /// Its files come back.
    Fetch,
    /// What it left there is removed.
    Clean,
    /// The network's connection is taken back.
    Disconnect,
}

impl Step {
    /// The time after the request to stop at which it is given up.
    pub(crate) const fn limit(self) -> Duration {
        match self {
            Self::Follow => Duration::from_secs(20),
            Self::Fetch => Duration::from_secs(25),
            Self::Clean => Duration::from_secs(27),
            Self::Disconnect => Duration::from_secs(28),
        }
    }
}

/// Signals for a command that is to stop, and when each is due.
const SIGNALS: [(&str, Duration); 3] =
    [("INT", Duration::ZERO), ("TERM", Duration::from_secs(14)), ("KILL", Duration::from_secs(17))];
/// Time between two attempts to send one.
const ATTEMPTS: Duration = Duration::from_secs(1);

/// How far stopping the command has come.
#[derive(Debug, Default)]
pub(crate) struct Stopping {
    /// Since when nobody reads the command's output.
    unread: Cell<Option<Instant>>,
    /// Signals sent.
    sent: Cell<usize>,
    /// The last attempt to send one.
    tried: Cell<Option<Instant>>,
}

impl Stopping {
    /// Nobody reads the command's output any more.
    pub(crate) fn is_unread(&self) {
        self.unread.set(self.unread.get().or_else(|| Some(Instant::now())));
    }

    /// The time since the request to stop, if there was one.
    pub(crate) fn since(&self) -> Option<Duration> {
        sys::stop_signal::since().max(self.unread.get().map(|since| since.elapsed()))
    }

    /// Whether the command was signalled.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent.get() > 0
    }

    /// The signal that is due now, if it is time for an attempt.
    pub(crate) fn due(&self) -> Option<&'static str> {
        let (signal, due) = SIGNALS.get(self.sent.get())?;
        let is_time =
            self.since()? >= *due && self.tried.get().is_none_or(|tried| tried.elapsed() >= ATTEMPTS);
        is_time.then(|| self.tried.set(Some(Instant::now())))?;
        Some(signal)
    }

    /// The signal that was due has arrived.
    pub(crate) fn arrived(&self) {
        self.sent.set(self.sent.get() + 1);
        self.tried.set(None);
    }

    /// Whether a step's time is over.
    pub(crate) fn is_over(&self, step: Step) -> bool {
        self.since().is_some_and(|since| since >= step.limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_an_end_and_the_whole_half_a_minute() {
        let stopping = Stopping::default();
        assert!(!stopping.is_over(Step::Follow) && stopping.due().is_none(), "nobody asked");
        let long_ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds));
        stopping.unread.set(long_ago(1));
        assert_eq!(stopping.due(), Some("INT"));
        assert_eq!(stopping.due(), None, "an attempt a second");
        stopping.arrived();
        assert_eq!(stopping.due(), None, "it has time to end");
        stopping.unread.set(long_ago(21));
        assert_eq!(stopping.due(), Some("TERM"));
        let steps = [Step::Follow, Step::Fetch, Step::Clean, Step::Disconnect];
        assert_eq!(steps.map(|step| stopping.is_over(step)), [true, false, false, false]);
        stopping.unread.set(long_ago(28));
        assert!(steps.iter().all(|step| stopping.is_over(*step)));
        assert!(steps.iter().all(|step| step.limit() < Duration::from_secs(29)));
    }
}
