//! Room: what the fills of a picture mean, in the order of its legend.
//! Not here: colours (`style.css`).

/// A fill, which means the same in every lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Paint {
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
    /// Of a part of a call, by its cause's name.
    pub(super) fn of_cause(cause: &str, further: bool) -> Self {
        match cause {
            "client_running" => Self::Caller,
            "server_running" if further => Self::Further,
            "server_running" => Self::Server,
            "driver" => Self::Driver,
            "runnable_wait" | "wrong_cpu" | "handover" | "tracing" => Self::Waits,
            "wakeup_latency" | "wakeup_interrupt" | "idle_exit" => Self::Wakes,
            "irq" | "softirq" => Self::Interrupt,
            "no_free_thread" | "oneway_queue" => Self::Queued,
            "unknown" | "binder" => Self::Unknown,
            _ => Self::Blocked,
        }
    }

    /// Its class in the page.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Caller => "f-caller",
            Self::Server => "f-server",
            Self::Further => "f-further",
            Self::Driver => "f-driver",
            Self::Waits => "f-waits",
            Self::Wakes => "f-wakes",
            Self::Queued => "f-queued",
            Self::Blocked => "f-blocked",
            Self::Sleeps => "f-sleeps",
            Self::Interrupt => "f-irq",
            Self::InTheWay => "f-inway",
            Self::Other => "f-other",
            Self::Idle => "f-idle",
            Self::Unknown => "f-unknown",
        }
    }

    /// Its meaning.
    pub(super) fn legend(self) -> &'static str {
        match self {
            Self::Caller => "caller running",
            Self::Server => "server running",
            Self::Further => "another thread running for this call",
            Self::Driver => "work of the driver",
            Self::Waits => "runnable: another task has the CPU",
            Self::Wakes => "woken, not yet running",
            Self::Queued => "no thread takes the call",
            Self::Blocked => "blocked: lock, I/O, memory, or asleep at work",
            Self::Sleeps => "sleeping: nothing to do, or waiting for the other side",
            Self::Interrupt => "interrupt or softirq",
            Self::InTheWay => "task that this call waited behind",
            Self::Other => "another task",
            Self::Idle => "CPU idle",
            Self::Unknown => "not in the trace",
        }
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
        let style = include_str!("style.css");
        for (index, paint) in all.iter().enumerate() {
            assert!(style.contains(&format!(".{} ", paint.class())), "{paint:?} has no colour");
            for other in &all[..index] {
                assert!(other.class() != paint.class() && other.legend() != paint.legend());
            }
        }
    }
}
