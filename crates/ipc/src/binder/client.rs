//! Room: calling an AIDL object.
//! Not here: the transaction itself (`crate::runtime`), the payload (`parcel`).
//! Facts: Android's `BpBinder`; replies are read as `status` says.

use std::any::Any;
use std::fmt;

use abi::codes::{br, tf};
use abi::{ReturnWord, TransactionFlags};

use crate::binder::object::{Incoming, Served};
use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::binder::special;
use crate::binder::status::Status;
use crate::call::Taken;
use crate::error::{ProtocolError, TransactError};
use crate::proxy::Proxy;
use crate::received::Received;
use crate::release::Release;
use crate::runtime::Outcome;
use crate::status_code::StatusCode;
use crate::target::Binder;

/// Why a call has no results.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The driver did not carry it through.
    Transact(TransactError),
    /// The object answered something else than results, or results that cannot be read.
    Status(Status),
}

impl CallError {
    /// Whether the object's process is gone.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self, Self::Transact(error) if error.refusal() == Some(crate::error::Refusal::Dead))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transact(error) => error.fmt(f),
            Self::Status(status) => write!(f, "the object answered {status}"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Transact(error) => Some(error),
            Self::Status(status) => Some(status),
        }
    }
}

impl From<TransactError> for CallError {
    fn from(error: TransactError) -> Self {
        Self::Transact(error)
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<StatusCode> for CallError {
    fn from(code: StatusCode) -> Self {
        Self::Status(Status::Code(code))
    }
}

impl From<CallError> for Status {
    /// For an object that calls another while it serves: its own caller gets the same answer.
    fn from(error: CallError) -> Self {
        match error {
            CallError::Transact(error) => Self::Code(StatusCode::from(&error)),
            CallError::Status(status) => status,
        }
    }
}

/// The results of a call, in place: the receiving area's until dropped.
#[derive(Debug)]
pub struct Reply<'p> {
    payload: ReplyPayload<'p>,
    release: Release,
    results: usize,
}

#[derive(Debug)]
enum ReplyPayload<'p> {
    Received(Received<'p>),
    Local(Parcel),
}

impl Reply<'_> {
    /// Reads the results.
    #[must_use]
    #[inline]
    pub fn reader(&self) -> Reader<'_> {
        let mut reader = match &self.payload {
            ReplyPayload::Received(received) => Reader::of_received(received, self.release),
            ReplyPayload::Local(parcel) => parcel.reader(),
        };
        // The results begin inside the payload: the status word was read from it.
        let _ = reader.seek(self.results);
        reader
    }

    /// Steps over the status word, or takes the exception that stands there.
    #[inline]
    fn skip_status(&mut self) -> Result<(), Status> {
        let mut reader = self.reader();
        reader.read_status()?;
        self.results = reader.position();
        Ok(())
    }
}

impl Proxy {
    fn release(&self) -> Release {
        self.inner.runtime.shared().release
    }

    /// A request that carries no header (special codes, other people's protocols); the answer with
    /// no status word read.
    ///
    /// # Errors
    /// See [`CallError`].
    #[inline]
    pub fn transact(&self, code: u32, request: &Parcel) -> Result<Reply<'_>, CallError> {
        match self.transact_payload(code, TransactionFlags::CALL, request.payload())? {
            Outcome::Replied { flags, received } => {
                if flags.0 & tf::STATUS_CODE != 0 {
                    return Err(StatusCode::of_reply(received.data()).into());
                }
                Ok(Reply { payload: ReplyPayload::Received(received), release: self.release(), results: 0 })
            }
            Outcome::Taken(_) => {
                let got = ReturnWord(br::TRANSACTION_COMPLETE);
                Err(TransactError::Protocol(ProtocolError::Unexpected { state: "two-way", got }).into())
            }
        }
    }
}

impl Binder {
    fn release(&self) -> Release {
        match self {
            Self::Remote(proxy) => proxy.release(),
            Self::Local(node) => served(node.object()).map_or(Release::default(), Served::release),
        }
    }

    /// An empty request in the dialect that the object's process speaks.
    #[must_use]
    #[inline]
    pub fn bare_request(&self) -> Parcel {
        Parcel::for_release(self.release())
    }

    /// A request to an interface of the object: the header is written, append the arguments.
    #[must_use]
    #[inline]
    pub fn request(&self, descriptor: &str) -> Parcel {
        let mut request = self.bare_request();
        request.write_header(descriptor);
        request
    }

    /// Calls a method and waits for its results. Calls that come back to this process meanwhile are
    /// served on this thread.
    ///
    /// # Errors
    /// See [`CallError`].
    #[inline]
    pub fn call(&self, code: u32, request: Parcel) -> Result<Reply<'_>, CallError> {
        let mut reply = self.transact(code, &request)?;
        reply.skip_status()?;
        Ok(reply)
    }

    /// Calls a method that nobody answers.
    ///
    /// # Errors
    /// The driver does not take it. That it arrives is not known.
    pub fn oneway(&self, code: u32, request: Parcel) -> Result<Taken, TransactError> {
        match self {
            Self::Remote(proxy) => {
                match proxy.transact_payload(code, TransactionFlags::ONEWAY, request.payload())? {
                    Outcome::Taken(taken) => Ok(taken),
                    Outcome::Replied { .. } => Ok(Taken::Complete),
                }
            }
            Self::Local(_) => {
                // As a receiver's failure would be: nobody hears of it.
                let _ = self.call_local(code, TransactionFlags::ONEWAY, &request);
                Ok(Taken::Complete)
            }
        }
    }

    /// A call without header or status word, for special codes and other people's protocols.
    ///
    /// # Errors
    /// See [`CallError`].
    #[inline]
    pub fn transact(&self, code: u32, request: &Parcel) -> Result<Reply<'_>, CallError> {
        match self {
            Self::Remote(proxy) => proxy.transact(code, request),
            Self::Local(_) => self.call_local(code, TransactionFlags::CALL, request),
        }
    }

    /// Runs a method of an object of this process on the calling thread, without the driver.
    fn call_local(
        &self,
        code: u32,
        flags: TransactionFlags,
        request: &Parcel,
    ) -> Result<Reply<'static>, CallError> {
        let served = self.node().and_then(|node| served(node.object()));
        let served = served.ok_or(StatusCode::INVALID_OPERATION)?;
        let mut call = Incoming {
            code,
            flags,
            sender_pid: i32::try_from(std::process::id()).unwrap_or_default(),
            sender_euid: crate::target::own_euid(),
            header: None,
            reader: request.reader(),
            transaction: None,
        };
        let mut reply = Parcel::for_release(served.release());
        served.dispatch(&mut call, &mut reply)?;
        Ok(Reply { payload: ReplyPayload::Local(reply), release: served.release(), results: 0 })
    }

    /// Asks whether the object is there.
    ///
    /// # Errors
    /// It is not; see [`CallError`].
    pub fn ping(&self) -> Result<(), CallError> {
        self.transact(special::PING, &self.bare_request()).map(drop)
    }

    /// The name of the object's interface.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn descriptor(&self) -> Result<String, CallError> {
        Ok(self.transact(special::INTERFACE, &self.bare_request())?.reader().read_str()?)
    }

    /// The process id of the object's process, as that process sees itself.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn debug_pid(&self) -> Result<i32, CallError> {
        Ok(self.transact(special::DEBUG_PID, &self.bare_request())?.reader().read_i32()?)
    }

    /// The object that extends this one, if it has one.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn extension(&self) -> Result<Option<Binder>, CallError> {
        Ok(self.transact(special::EXTENSION, &self.bare_request())?.reader().read_nullable_binder()?)
    }
}

fn served(object: &dyn crate::serve::Serve) -> Option<&Served> {
    let object: &dyn Any = object;
    object.downcast_ref()
}
