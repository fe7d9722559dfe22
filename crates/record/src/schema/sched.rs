//! Scheduling of a thread.
//! Not here: what a driver does to it (`crate::experiments::inheritance`).

use serde::{Deserialize, Serialize};

/// Scheduling of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sched {
    /// The kernel's number of the policy: 0 OTHER, 1 FIFO, 2 RR, 3 BATCH, 5 IDLE, 6 DEADLINE.
    pub policy: u32,
    /// Real-time priority, 1 to 99; 0 under policies without one.
    pub priority: u32,
    /// Nice value, -20 to 19; without effect under a real-time policy.
    pub nice: i32,
}

impl Sched {
    /// `SCHED_OTHER` with this nice value.
    pub fn other(nice: i32) -> Sched {
        Sched { policy: 0, priority: 0, nice }
    }

    /// `SCHED_FIFO` with this priority.
    pub fn fifo(priority: u32) -> Sched {
        Sched { policy: 1, priority, nice: 0 }
    }

    /// Whether the policy has precedence over every policy that uses nice values.
    pub fn is_realtime(self) -> bool {
        matches!(self.policy, 1 | 2 | 6)
    }

    /// The kernel's name of the policy; `None` for an unknown policy.
    pub fn policy_name(self) -> Option<&'static str> {
        Some(match self.policy {
            0 => "SCHED_OTHER",
            1 => "SCHED_FIFO",
            2 => "SCHED_RR",
            3 => "SCHED_BATCH",
            5 => "SCHED_IDLE",
            6 => "SCHED_DEADLINE",
            _ => return None,
        })
    }
}

/// Whether two threads are equally urgent: nice values do not count under real-time policies.
pub fn same_urgency(one: Sched, other: Sched) -> bool {
    one.policy == other.policy
        && one.priority == other.priority
        && (one.is_realtime() || one.nice == other.nice)
}
