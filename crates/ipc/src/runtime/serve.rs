//! One transaction at its receiver, and the trait that serves it.
//! Not here: headers, parcels and methods (`binder::object`, `hwbinder::object`), the node table (`node`).
//! Facts: contract TX-02, TX-17, TX-23, ID-01, ID-03, OBJ-21.

use std::any::Any;
use std::fmt;

use abi::codes::tf;
use abi::{Delivery, Payload, TransactionFlags};

use crate::error::TransactError;
use crate::runtime::Runtime;
use crate::runtime::received::Received;
use crate::status_code::StatusCode;

/// The code that a node runs, without a flavour. Any pool thread may call it, several at once.
pub trait Serve: Any + Send + Sync {
    /// Serves one transaction; a call that is dropped unanswered is answered `UNKNOWN_ERROR`.
    fn serve(&self, call: Transaction<'_>);
}

/// The method of a transaction and who called it.
#[derive(Clone, Copy)]
pub(crate) struct CallInfo<'t> {
    pub(crate) code: u32,
    pub(crate) flags: TransactionFlags,
    pub(crate) sender_pid: i32,
    pub(crate) sender_euid: u32,
    pub(crate) security_context: Option<SecurityContext<'t>>,
}

/// One transaction to serve.
pub struct Transaction<'t> {
    runtime: &'t dyn Runtime,
    /// `None` after the reply.
    received: Option<Received<'t>>,
    info: CallInfo<'t>,
}

impl<'t> Transaction<'t> {
    pub(crate) fn new(runtime: &'t dyn Runtime, received: Received<'t>, delivery: &Delivery) -> Self {
        let Delivery { code, flags, sender_pid, sender_euid, security_context, .. } = *delivery;
        let security_context = security_context.map(|address| SecurityContext { runtime, address });
        let info = CallInfo { code, flags, sender_pid, sender_euid, security_context };
        Self { runtime, received: Some(received), info }
    }

    /// The method number.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.info.code
    }

    pub(crate) fn info(&self) -> CallInfo<'t> {
        self.info
    }

    /// Bytes of the call, without their objects.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.received.as_ref().map_or(&[], Received::data)
    }

    /// The buffer; `None` only inside `drop`.
    pub(crate) fn received(&self) -> Option<&Received<'t>> {
        self.received.as_ref()
    }

    /// Answers with a payload: `BC_REPLY`, with the buffer's `BC_FREE_BUFFER` in the same write.
    /// Whatever the payload refers to must live until this returns, when the driver has taken it.
    /// A oneway call has no answer: then this only gives the buffer back.
    ///
    /// # Errors
    /// The driver does not take the reply; the caller has been told already.
    pub fn reply(mut self, flags: TransactionFlags, payload: Payload<'_>) -> Result<(), TransactError> {
        match self.received.take() {
            Some(received) if !self.info.flags.is_oneway() => self.runtime.reply(received, flags, payload),
            _ => Ok(()),
        }
    }

    /// Answers with one status word.
    ///
    /// # Errors
    /// See [`Self::reply`].
    pub fn reply_status(self, status: StatusCode) -> Result<(), TransactError> {
        let data = status.0.to_ne_bytes();
        let flags = TransactionFlags(self.answer_flags().0 | tf::STATUS_CODE);
        self.reply(flags, Payload { data: &data, ..Payload::default() })
    }

    /// The bits that an answer takes over from its call.
    #[must_use]
    pub fn answer_flags(&self) -> TransactionFlags {
        TransactionFlags(self.info.flags.0 & tf::CLEAR_BUF)
    }
}

/// A caller's security context in the receiving area, valid while its buffer is.
#[derive(Clone, Copy)]
pub(crate) struct SecurityContext<'t> {
    runtime: &'t dyn Runtime,
    address: u64,
}

impl SecurityContext<'_> {
    /// The text up to its NUL; `None` if it is not UTF-8.
    pub(crate) fn text(self) -> Option<String> {
        /// Longer than any security module's contexts.
        const LONGEST: u64 = 4096;
        let bytes: Vec<u8> = (self.address..self.address.saturating_add(LONGEST))
            .map_while(|at| self.runtime.lent(at, 1)?.first().copied())
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8(bytes).ok()
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if let Some(received) = self.received.take()
            && !self.info.flags.is_oneway()
        {
            let data = StatusCode::UNKNOWN_ERROR.0.to_ne_bytes();
            let payload = Payload { data: &data, ..Payload::default() };
            // If this fails, the driver tells the caller.
            let _ = self.runtime.reply(received, TransactionFlags(tf::STATUS_CODE), payload);
        }
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("code", &self.info.code)
            .field("flags", &self.info.flags)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}
