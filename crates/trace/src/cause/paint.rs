//! Fills of a picture and their meaning, in legend order.
//! Not here: which cause has which (`table`), colours (`style.css` of `picture`).

use serde::{Serialize, Serializer};

/// Fill with the same meaning in every lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Paint {
    Caller,
    Server,
    Further,
    Driver,
    Waits,
    Wakes,
    Queued,
    Blocked,
    Sleeps,
    Interrupt,
    InTheWay,
    Other,
    Idle,
    Unknown,
}

impl Paint {
    /// CSS class.
    pub(crate) fn class(self) -> &'static str {
        self.look().0
    }

    /// Legend text.
    pub(crate) fn legend(self) -> &'static str {
        self.look().1
    }

    fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Caller => ("f-caller", "caller running"),
            Self::Server => ("f-server", "server running"),
            Self::Further => ("f-further", "another thread running for this call"),
            Self::Driver => ("f-driver", "work of the driver"),
            Self::Waits => ("f-waits", "runnable: another task has the CPU"),
            Self::Wakes => ("f-wakes", "woken, not yet running"),
            Self::Queued => ("f-queued", "no thread takes the call"),
            Self::Blocked => ("f-blocked", "blocked: lock, I/O, memory, or asleep at work"),
            Self::Sleeps => ("f-sleeps", "sleeping: nothing to do, or waiting for the other side"),
            Self::Interrupt => ("f-irq", "interrupt or softirq"),
            Self::InTheWay => ("f-inway", "task that this call waited behind"),
            Self::Other => ("f-other", "another task"),
            Self::Idle => ("f-idle", "CPU idle"),
            Self::Unknown => ("f-unknown", "not in the trace"),
        }
    }
}

impl Serialize for Paint {
    /// Serializes as the CSS class.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.class())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fill_has_a_class_and_a_meaning_of_its_own() {
        use Paint::*;
        let all = [
            Caller, Server, Further, Driver, Waits, Wakes, Queued, Blocked, Sleeps, Interrupt, InTheWay,
            Other, Idle, Unknown,
        ];
        let style = include_str!("../picture/style.css");
        for (index, paint) in all.iter().enumerate() {
            assert!(style.contains(&format!(".{} ", paint.class())), "{paint:?} has no colour");
            for other in &all[..index] {
                assert!(other.class() != paint.class() && other.legend() != paint.legend());
            }
        }
    }
}
