//! Room: one transaction at its receiver, and what a node runs for it.
//! Not here: headers, parcels and methods (`binder::object`, `hwbinder::object`), which node is meant (`node`).
//! Facts: contract TX-02, TX-17, TX-23, ID-01, ID-03, OBJ-21.

use std::any::Any;
use std::fmt;

use abi::codes::tf;
use abi::{Delivery, Payload, TransactionFlags};

use crate::error::TransactError;
use crate::received::Received;
use crate::runtime::Runtime;
use crate::status_code::StatusCode;

/// What a node runs: the flavour-neutral form of an object. Called by any pool thread, also by
/// several at once.
pub trait Serve: Any + Send + Sync {
    /// Serves one transaction; a call that is dropped unanswered is answered `UNKNOWN_ERROR`.
    fn serve(&self, call: Transaction<'_>);
}

/// One transaction to serve.
pub struct Transaction<'t> {
    runtime: &'t dyn Runtime,
    /// `None` once answered.
    received: Option<Received<'t>>,
    code: u32,
    flags: TransactionFlags,
    sender_pid: i32,
    sender_euid: u32,
    /// Where the caller's security context stands, in the same buffer.
    security_context: Option<u64>,
}

impl<'t> Transaction<'t> {
    #[inline]
    pub(crate) fn new(runtime: &'t dyn Runtime, received: Received<'t>, delivery: &Delivery) -> Self {
        let Delivery { code, flags, sender_pid, sender_euid, security_context, .. } = *delivery;
        Self { runtime, received: Some(received), code, flags, sender_pid, sender_euid, security_context }
    }

    /// The method number.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.code
    }

    /// The flag bits as sent.
    #[must_use]
    pub fn flags(&self) -> TransactionFlags {
        self.flags
    }

    /// The caller's process id; 0 for oneway calls and callers that this process cannot see.
    #[must_use]
    pub fn sender_pid(&self) -> i32 {
        self.sender_pid
    }

    /// The effective uid of the calling thread when it called.
    #[must_use]
    pub fn sender_euid(&self) -> u32 {
        self.sender_euid
    }

    /// The buffer; `None` only inside `drop`.
    pub(crate) fn received(&self) -> Option<&Received<'t>> {
        self.received.as_ref()
    }

    /// The caller's security context, for a node that asked for it.
    #[must_use]
    pub fn security_context(&self) -> Option<String> {
        security_context(self.runtime, self.security_context?)
    }

    /// Where it stands.
    pub(crate) fn security_context_address(&self) -> Option<u64> {
        self.security_context
    }

    /// Answers with a payload: `BC_REPLY`, with the buffer's `BC_FREE_BUFFER` in the same write.
    /// Whatever the payload refers to must live until this returns, when the driver has taken it.
    /// A oneway call has no answer: then this only gives the buffer back.
    ///
    /// # Errors
    /// The driver does not take the reply; the caller has been told already.
    pub fn reply(mut self, flags: TransactionFlags, payload: Payload<'_>) -> Result<(), TransactError> {
        match self.received.take() {
            Some(received) if !self.flags.is_oneway() => self.runtime.reply(received, flags, payload),
            _ => Ok(()),
        }
    }

    /// Answers with one status word.
    ///
    /// # Errors
    /// As [`Self::reply`].
    pub fn reply_status(self, status: StatusCode) -> Result<(), TransactError> {
        let data = status.0.to_ne_bytes();
        let flags = TransactionFlags(self.answer_flags().0 | tf::STATUS_CODE);
        self.reply(flags, Payload { data: &data, ..Payload::default() })
    }

    /// The bits that an answer takes over from its call.
    #[must_use]
    pub fn answer_flags(&self) -> TransactionFlags {
        TransactionFlags(self.flags.0 & tf::CLEAR_BUF)
    }
}

/// The text that a driver put at an address.
pub(crate) fn security_context(runtime: &dyn Runtime, start: u64) -> Option<String> {
    /// Longer than any security module's contexts.
    const LONGEST: u64 = 4096;
    let bytes: Vec<u8> = (start..start.saturating_add(LONGEST))
        .map_while(|at| runtime.lent(at, 1)?.first().copied())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8(bytes).ok()
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if let Some(received) = self.received.take()
            && !self.flags.is_oneway()
        {
            let data = StatusCode::UNKNOWN_ERROR.0.to_ne_bytes();
            let payload = Payload { data: &data, ..Payload::default() };
            // The caller is told by the driver if this does not work; nobody else is left to tell.
            let _ = self.runtime.reply(received, TransactionFlags(tf::STATUS_CODE), payload);
        }
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("code", &self.code)
            .field("flags", &self.flags)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}
