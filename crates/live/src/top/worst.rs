//! The slowest calls of a span, and how long each waited and was served.

use trace::model::Transaction;

/// Calls that are kept for each process, and processes.
const MOST_CALLS: usize = 5;
const MOST_PROCESSES: usize = 64;

/// One of the slowest calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCall {
    /// Calling process; 0 if unknown.
    pub from: i32,
    /// Calling thread.
    pub thread: i32,
    /// Called process.
    pub to: i32,
    /// Called node.
    pub node: i32,
    /// Code.
    pub code: u32,
    /// Duration in nanoseconds.
    pub ns: u64,
    /// Nanoseconds until a thread of the called process took it.
    pub taken_ns: Option<u64>,
    /// Nanoseconds from then to the reply.
    pub served_ns: Option<u64>,
}

/// The slowest calls to each process, and of many processes to those with the slowest.
#[derive(Clone, Debug, Default)]
pub struct Worst {
    /// Slowest first.
    of: Vec<(i32, Vec<SlowCall>)>,
}

impl Worst {
    /// The slowest calls to this process, slowest first.
    #[must_use]
    pub fn of(&self, process: i32) -> &[SlowCall] {
        self.of.iter().find(|(pid, _)| *pid == process).map_or(&[], |(_, calls)| calls)
    }

    pub(super) fn take(&mut self, call: &Transaction, from: i32) {
        if call.oneway || !call.is_sound() {
            return;
        }
        let at = self.of.iter().position(|(pid, _)| *pid == call.to_proc);
        let at = match at {
            Some(at) => at,
            None if self.of.len() >= MOST_PROCESSES => match self.fastest() {
                Some((at, ns)) if ns < call.ns() => {
                    self.of[at] = (call.to_proc, Vec::new());
                    at
                }
                _ => return,
            },
            None => {
                self.of.push((call.to_proc, Vec::new()));
                self.of.len() - 1
            }
        };
        let calls = &mut self.of[at].1;
        let place = calls.partition_point(|slower| slower.ns >= call.ns());
        if place < MOST_CALLS {
            calls.insert(place, described(call, from));
            calls.truncate(MOST_CALLS);
        }
    }

    /// The place of the process whose slowest call is the fastest, and the nanoseconds of that call.
    fn fastest(&self) -> Option<(usize, u64)> {
        let slowest = self.of.iter().map(|(_, calls)| calls.first().map_or(0, |call| call.ns));
        slowest.enumerate().min_by_key(|(_, ns)| *ns)
    }
}

fn described(call: &Transaction, from: i32) -> SlowCall {
    SlowCall {
        from,
        thread: call.client.tid,
        to: call.to_proc,
        node: call.node,
        code: call.code,
        ns: call.ns(),
        taken_ns: call.received.map(|received| received.saturating_sub(call.begin)),
        served_ns: call
            .replied
            .zip(call.received)
            .map(|(replied, received)| replied.saturating_sub(received)),
    }
}
