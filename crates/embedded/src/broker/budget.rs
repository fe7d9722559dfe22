//! Budgets of the processes that use one broker: descriptors, shared memory and waiting items, by pid.
//! Not here: whose turn it is (`turns`), what is held (`serve`, `memory`).
//!
//! No process can take all: it may hold at most as many descriptors as are still free. One process can get half of
//! them, n processes 1/(n+1) each, and 1/(n+1) stays for the others.

use std::collections::HashMap;

use sys::errno::{EMFILE, ENOMEM};

/// Most bytes of shared memory that the connections of one process may have.
pub(super) const MEMORY_MAX: usize = 1 << 30;
/// Most items that may wait for one process; a process that reads at all stays far below.
pub(super) const WAITING_MAX: usize = 1 << 16;
/// Most memories that a broker maps. The kernel allows 65,530 mappings by default.
const MAPPINGS_MAX: usize = 49_152;
/// Descriptors that a broker needs besides its clients.
const OWN: usize = 16;
/// Reciprocal of the share of all descriptors that is kept for those that travel in transactions.
const KEPT: usize = 4;

/// Held by one process.
#[derive(Debug, Default)]
struct Usage {
    connections: usize,
    descriptors: usize,
    memory: usize,
    waiting: usize,
}

/// Error: a process would exceed its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceeded {
    pub(super) errno: i32,
    pub(super) why: &'static str,
}

const DESCRIPTORS: Exceeded = Exceeded {
    errno: EMFILE,
    why: "this process holds its share of the broker's descriptors; close contexts, or raise the broker's limit of \
          open files",
};
const MEMORY: Exceeded =
    Exceeded { errno: ENOMEM, why: "this process has 1 GiB of the broker's memory; close contexts" };

/// Budgets of all processes.
#[derive(Debug)]
pub(super) struct Budgets {
    free: usize,
    procs: HashMap<u32, Usage>,
}

impl Budgets {
    /// Budgets of a broker that may open `limit` files.
    pub(super) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(MAPPINGS_MAX).saturating_sub(OWN);
        Self { free: limit - limit / KEPT, procs: HashMap::new() }
    }

    /// A process connects, with one descriptor.
    pub(super) fn connect(&mut self, pid: u32) -> Result<(), Exceeded> {
        // Counted first, so that a refused process is known until its connection is gone.
        self.procs.entry(pid).or_default().connections += 1;
        self.take(pid, 1, 0).inspect_err(|_| self.forget(pid))
    }

    /// A connection is gone, after all that it held.
    pub(super) fn disconnect(&mut self, pid: u32) {
        self.give(pid, 1, 0);
        self.forget(pid);
    }

    fn forget(&mut self, pid: u32) {
        let Some(usage) = self.procs.get_mut(&pid) else { return };
        usage.connections = usage.connections.saturating_sub(1);
        self.sweep(pid);
    }

    /// A channel may outlive the connections of the process that it is charged to.
    fn sweep(&mut self, pid: u32) {
        if self.procs.get(&pid).is_some_and(|usage| usage.connections + usage.descriptors == 0) {
            self.procs.remove(&pid);
        }
    }

    /// Charges descriptors and bytes to a process, all or nothing.
    pub(super) fn take(&mut self, pid: u32, descriptors: usize, memory: usize) -> Result<(), Exceeded> {
        let usage = self.procs.entry(pid).or_default();
        let held = usage.descriptors + descriptors;
        if self.free.checked_sub(descriptors).is_none_or(|left| held > left + 1) {
            return Err(DESCRIPTORS);
        }
        if usage.memory.saturating_add(memory) > MEMORY_MAX {
            return Err(MEMORY);
        }
        usage.descriptors = held;
        usage.memory += memory;
        self.free -= descriptors;
        Ok(())
    }

    /// Returns what [`Self::take`] charged.
    pub(super) fn give(&mut self, pid: u32, descriptors: usize, memory: usize) {
        let Some(usage) = self.procs.get_mut(&pid) else { return };
        usage.descriptors = usage.descriptors.saturating_sub(descriptors);
        usage.memory = usage.memory.saturating_sub(memory);
        self.free += descriptors;
        self.sweep(pid);
    }

    /// Another item waits for a process; false if too many do.
    pub(super) fn wait(&mut self, pid: u32) -> bool {
        let usage = self.procs.entry(pid).or_default();
        usage.waiting += 1;
        usage.waiting <= WAITING_MAX
    }

    /// So many items of a process wait no longer.
    pub(super) fn waited(&mut self, pid: u32, items: usize) {
        if let Some(usage) = self.procs.get_mut(&pid) {
            usage.waiting = usage.waiting.saturating_sub(items);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes single descriptors until the budget refuses.
    fn fill(budgets: &mut Budgets, pid: u32) -> usize {
        (0..).take_while(|_| budgets.connect(pid).is_ok()).count()
    }

    #[test]
    fn eight_hoarders_leave_a_ninth_for_the_others() {
        let mut budgets = Budgets::new(1024 + OWN as u64);
        let shares: Vec<usize> = (1..=8).map(|pid| fill(&mut budgets, pid)).collect();
        assert_eq!(shares[0], 384, "one process gets half of what is not kept");
        // The later ones find less, as the earlier ones took it.
        let left = fill(&mut budgets, 9);
        assert!(left >= 1, "{shares:?} {left}");
        for pid in 1..=8 {
            (0..shares[pid as usize - 1]).for_each(|_| budgets.disconnect(pid));
        }
        (0..left).for_each(|_| budgets.disconnect(9));
        assert!(budgets.procs.is_empty(), "nothing is kept about a process that left");
        assert_eq!(fill(&mut budgets, 10), 384, "all came back");
    }

    #[test]
    fn memory_is_charged_whole_or_not_at_all() {
        let mut budgets = Budgets::new(1024);
        budgets.connect(1).expect("room");
        budgets.take(1, 3, MEMORY_MAX).expect("exactly the most");
        assert_eq!(budgets.take(1, 1, 1), Err(MEMORY));
        budgets.take(2, 3, 1).expect("another process");
        budgets.give(1, 3, MEMORY_MAX);
        budgets.take(1, 3, MEMORY_MAX).expect("again");
    }

    #[test]
    fn items_wait_within_the_budget_of_all_connections_of_a_process() {
        let mut budgets = Budgets::new(1024);
        assert!((0..WAITING_MAX).all(|_| budgets.wait(1)) && !budgets.wait(1));
        assert!(budgets.wait(2));
        budgets.waited(1, 2);
        assert!(budgets.wait(1));
    }
}
