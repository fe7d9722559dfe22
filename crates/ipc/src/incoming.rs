//! A call at the object that serves it, and the reply at its caller: what both flavours share.
//! Not here: their parcels and readers (`binder`, `hwbinder`).

use std::fmt;
use std::ops::{Deref, DerefMut};

use abi::codes::{br, tf};
use abi::{ReturnWord, TransactionFlags};

use crate::caller::Caller;
use crate::error::{ProtocolError, TransactError};
use crate::runtime::Outcome;
use crate::runtime::received::Received;
use crate::runtime::serve::{CallInfo, Transaction};
use crate::status::CallError;
use crate::status_code::StatusCode;

/// A call to serve: its method and caller, and a reader `R` of its arguments (with all of `R`'s methods).
pub struct Incoming<'t, R> {
    info: CallInfo<'t>,
    pub(crate) reader: R,
}

impl<'t, R> Incoming<'t, R> {
    /// A delivered call.
    pub(crate) fn delivered(call: &Transaction<'t>, reader: R) -> Self {
        Self { info: call.info(), reader }
    }

    /// A call to an object of this process, made without the driver.
    pub(crate) fn local(code: u32, flags: TransactionFlags, reader: R) -> Self {
        let (sender_pid, sender_euid) = (own_pid(), sys::identity::effective_uid());
        Self { info: CallInfo { code, flags, sender_pid, sender_euid, security_context: None }, reader }
    }

    /// A call by a thread of this effective uid.
    #[cfg(test)]
    pub(crate) fn from_uid(code: u32, flags: TransactionFlags, sender_euid: u32, reader: R) -> Self {
        let mut call = Self::local(code, flags, reader);
        call.info.sender_euid = sender_euid;
        call
    }

    /// The method number.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.info.code
    }

    /// Whether the caller awaits no reply.
    #[must_use]
    pub fn is_oneway(&self) -> bool {
        self.info.flags.is_oneway()
    }

    /// The caller's process id; 0 for oneway calls and for callers outside this pid namespace.
    #[must_use]
    pub fn sender_pid(&self) -> i32 {
        self.info.sender_pid
    }

    /// The effective uid of the calling thread at the time of the call.
    #[must_use]
    pub fn sender_euid(&self) -> u32 {
        self.info.sender_euid
    }

    /// Who called.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            pid: self.info.sender_pid,
            euid: self.info.sender_euid,
            flags: self.info.flags.0,
            security_context: self.security_context(),
        }
    }

    /// The caller's security context, if the node asked for it.
    #[must_use]
    pub fn security_context(&self) -> Option<String> {
        self.info.security_context?.text()
    }
}

impl<R> Deref for Incoming<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.reader
    }
}

impl<R> DerefMut for Incoming<'_, R> {
    fn deref_mut(&mut self) -> &mut R {
        &mut self.reader
    }
}

impl<R> fmt::Debug for Incoming<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("code", &self.info.code)
            .field("flags", &self.info.flags)
            .field("sender_pid", &self.info.sender_pid)
            .finish_non_exhaustive()
    }
}

/// This process's id.
pub(crate) fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

/// The payload of a reply.
#[derive(Debug)]
pub(crate) enum ReplyPayload<'p, P> {
    /// A parcel in the receiving area.
    Received(Received<'p>),
    /// A parcel by an object of this process.
    Local(P),
}

/// The reply of a two-way call; a reply of one status word is an error.
pub(crate) fn reply_of(outcome: Outcome<'_>) -> Result<Received<'_>, CallError> {
    match outcome {
        Outcome::Replied { flags, received } if flags.0 & tf::STATUS_CODE != 0 => {
            Err(StatusCode::of_reply(received.data()).into())
        }
        Outcome::Replied { received, .. } => Ok(received),
        Outcome::Taken(_) => {
            let got = ReturnWord(br::TRANSACTION_COMPLETE);
            Err(TransactError::Protocol(ProtocolError::Unexpected { state: "two-way", got }).into())
        }
    }
}
