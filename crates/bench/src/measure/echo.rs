//! Echo of a byte vector by another process, in all its ways, both ends of each.
//! Not here: timing (`super`), starting the other process (`crate::servers`). Every client owns its request
//! and its reply, both allocated before the first call.

pub(crate) mod add;
pub(crate) mod benchmark;
pub(crate) mod binder;
pub(crate) mod event;
pub(crate) mod hwbinder;
pub(crate) mod inside;
pub(crate) mod ping;
pub(crate) mod pipe;
pub(crate) mod raw;
pub(crate) mod rpc;
pub(crate) mod shared;
pub(crate) mod unix;

use sys::clock::thread_cpu_ns;

use crate::call_error::CallError;
use crate::plan::FaultKind;

/// A request and the buffer for its reply.
#[derive(Debug)]
pub(crate) struct Payload {
    /// The request.
    pub(crate) sent: Vec<u8>,
    /// The reply; as long as `sent`, except where a way of sending can return less or more.
    pub(crate) received: Vec<u8>,
}

impl Payload {
    /// Creates a request of `len` bytes in a pattern with a long period.
    pub(crate) fn new(len: usize) -> Self {
        let sent = (0..len as u64).map(|at| (at.wrapping_mul(167) >> 3) as u8 ^ at as u8).collect();
        Self { sent, received: vec![0; len] }
    }

    /// Makes the request differ from all before it, in its first four bytes.
    pub(crate) fn stamp(&mut self, sequence: u32) {
        let word = sequence.to_le_bytes();
        let len = word.len().min(self.sent.len());
        self.sent[..len].copy_from_slice(&word[..len]);
    }

    /// Compares the reply with the request.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        self.check_against(&self.received)
    }

    /// Compares a reply that was left in place with the request.
    pub(crate) fn check_against(&self, received: &[u8]) -> Result<(), CallError> {
        if self.sent == received {
            return Ok(());
        }
        let same = self.sent.iter().zip(received).take_while(|(sent, received)| sent == received);
        let (sent, received, at) = (self.sent.len(), received.len(), same.count());
        Err(CallError::Corrupt { sent, received, at })
    }
}

/// Server side of a deliberate fault; inactive except in tests of this tool.
#[derive(Debug)]
pub(crate) struct Sabotage {
    fault: Option<FaultKind>,
    served: u32,
}

impl Sabotage {
    /// Number of requests that a server answers before it breaks: enough for some measurements.
    const PATIENCE: u32 = 5;
    /// Time that a slow server computes for each reply, in ns.
    pub(crate) const SLOW_NS: u64 = 1_000_000;

    pub(crate) fn new(fault: Option<FaultKind>) -> Self {
        Self { fault, served: 0 }
    }

    /// Returns true if a fault is planned.
    pub(crate) fn is_planned(&self) -> bool {
        self.fault.is_some()
    }

    /// Applies the fault; call it with each reply before it is sent.
    pub(crate) fn apply(&mut self, reply: &mut [u8]) {
        if let Some(fault) = self.fault {
            self.commit(fault, reply);
        }
    }

    fn commit(&mut self, fault: FaultKind, reply: &mut [u8]) {
        self.served += 1;
        let due = self.served > Self::PATIENCE;
        match fault {
            FaultKind::CorruptReply => {
                if let Some(last) = reply.last_mut() {
                    *last ^= 0x55;
                }
            }
            FaultKind::KillServer if due => std::process::abort(),
            FaultKind::HangServer if due => loop {
                std::thread::park();
            },
            FaultKind::SlowServer => compute(Self::SLOW_NS),
            FaultKind::KillServer | FaultKind::HangServer => {}
        }
    }
}

/// Computes for this much of the thread's CPU time, in ns.
pub(crate) fn compute(ns: u64) {
    compute_from(thread_cpu_ns(), ns);
}

/// Computes until this much of the thread's CPU time is over since `since`, in ns; returns its CPU time.
pub(crate) fn compute_from(since: u64, ns: u64) -> u64 {
    loop {
        let now = thread_cpu_ns();
        if now.saturating_sub(since) >= ns {
            return now;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_over_is_computed_once() {
        const WORK_NS: u64 = 50_000_000;
        let since = thread_cpu_ns();
        compute(WORK_NS);
        let before = thread_cpu_ns();
        assert!(before - since >= WORK_NS);
        // CPU time of this thread, which a busy machine does not change.
        assert!(compute_from(since, WORK_NS) - before < WORK_NS);
        assert!(compute_from(before, WORK_NS) - before >= WORK_NS);
    }

    #[test]
    fn a_wrong_byte_a_short_and_a_stale_reply_are_seen() {
        let mut payload = Payload::new(64);
        payload.stamp(1);
        payload.received.clone_from(&payload.sent);
        assert!(payload.check().is_ok());
        payload.stamp(2);
        assert!(matches!(payload.check(), Err(CallError::Corrupt { at: 0, .. })), "stale");
        payload.received.clone_from(&payload.sent);
        payload.received[63] ^= 1;
        assert!(matches!(payload.check(), Err(CallError::Corrupt { at: 63, .. })));
        payload.received.truncate(63);
        assert!(matches!(payload.check(), Err(CallError::Corrupt { at: 63, received: 63, .. })));
    }

    #[test]
    fn sabotage_changes_a_reply_only_when_asked() {
        let mut reply = [1, 2, 3];
        Sabotage::new(None).apply(&mut reply);
        assert_eq!(reply, [1, 2, 3]);
        Sabotage::new(Some(FaultKind::CorruptReply)).apply(&mut reply);
        assert_ne!(reply, [1, 2, 3]);
    }
}
