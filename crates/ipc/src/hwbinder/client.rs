//! Room: calling a HIDL object.
//! Not here: the transaction itself (`crate::runtime`), the payload (`parcel`), IBase (`base`).
//! Facts: libhwbinder's `BpHwBinder`; replies are read as `status` says.

use std::any::Any;
use std::fmt;

use abi::codes::{br, tf};
use abi::{ReturnWord, TransactionFlags};

use crate::call::Taken;
use crate::error::{ProtocolError, TransactError};
use crate::hwbinder::object::{Incoming, Served};
use crate::hwbinder::parcel::HwParcel;
use crate::hwbinder::reader::Reader;
use crate::hwbinder::status::{CallError, Status};
use crate::proxy::Proxy;
use crate::received::Received;
use crate::runtime::Outcome;
use crate::status_code::StatusCode;
use crate::target::Binder;

/// A HIDL object to call, wherever it lives.
#[derive(Clone, PartialEq, Eq)]
pub struct HwBinder(Binder);

impl From<Binder> for HwBinder {
    /// Takes an object for a HIDL one. Another answers calls with `BAD_TYPE`.
    fn from(binder: Binder) -> Self {
        Self(binder)
    }
}

impl fmt::Debug for HwBinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hw{:?}", self.0)
    }
}

/// The results of a call, in place: the receiving area's until dropped.
#[derive(Debug)]
pub struct Reply<'p> {
    payload: ReplyPayload<'p>,
}

#[derive(Debug)]
enum ReplyPayload<'p> {
    Received(Received<'p>),
    Local(HwParcel<'static>),
}

impl Reply<'_> {
    fn payload_reader(&self) -> Reader<'_> {
        match &self.payload {
            ReplyPayload::Received(received) => Reader::of_received(received.lent()),
            ReplyPayload::Local(parcel) => parcel.sealed_reader(),
        }
    }

    /// Reads the results.
    #[must_use]
    #[inline]
    pub fn reader(&self) -> Reader<'_> {
        let mut reader = self.payload_reader();
        // It was read once already, when the reply came.
        let _ = reader.read_status();
        reader
    }
}

impl HwBinder {
    /// The object without its flavour.
    #[must_use]
    pub fn as_binder(&self) -> &Binder {
        &self.0
    }

    /// The proxy, if the object is another process's.
    #[must_use]
    pub fn proxy(&self) -> Option<&Proxy> {
        self.0.proxy()
    }

    /// A request to one of the object's interfaces, the one that declares the method: the header is
    /// written, append the arguments.
    #[must_use]
    #[inline]
    pub fn request<'a>(&self, descriptor: &str) -> HwParcel<'a> {
        let mut request = HwParcel::new();
        request.write_header(descriptor);
        request
    }

    /// Calls a method and waits for its results. Calls that come back to this process meanwhile are
    /// served on this thread.
    ///
    /// # Errors
    /// See [`CallError`].
    #[inline]
    pub fn call(&self, code: u32, request: HwParcel<'_>) -> Result<Reply<'_>, CallError> {
        let payload = match &self.0 {
            Binder::Remote(proxy) => {
                let outcome = request
                    .with_payload(|payload| proxy.transact_payload(code, TransactionFlags::CALL, payload))?;
                ReplyPayload::Received(received(outcome)?)
            }
            Binder::Local(_) => {
                ReplyPayload::Local(self.call_local(code, TransactionFlags::CALL, request)?)
            }
        };
        let reply = Reply { payload };
        reply.payload_reader().read_status()?;
        Ok(reply)
    }

    /// Calls a method that nobody answers.
    ///
    /// # Errors
    /// The driver does not take it. That it arrives is not known.
    pub fn oneway(&self, code: u32, request: HwParcel<'_>) -> Result<Taken, TransactError> {
        let flags = TransactionFlags::ONEWAY;
        let Binder::Remote(proxy) = &self.0 else {
            // As a receiver's failure would be: nobody hears of it.
            let _ = self.call_local(code, flags, request);
            return Ok(Taken::Complete);
        };
        match request.with_payload(|payload| proxy.transact_payload(code, flags, payload))? {
            Outcome::Taken(taken) => Ok(taken),
            Outcome::Replied { .. } => Ok(Taken::Complete),
        }
    }

    /// Runs a method of an object of this process on the calling thread, without the driver.
    fn call_local(
        &self,
        code: u32,
        flags: TransactionFlags,
        mut request: HwParcel<'_>,
    ) -> Result<HwParcel<'static>, Status> {
        let served = self.0.node().and_then(|node| {
            let object: &dyn Any = node.object();
            object.downcast_ref::<Served>()
        });
        let served = served.ok_or(StatusCode::INVALID_OPERATION)?;
        request.seal();
        let mut call = Incoming {
            code,
            flags,
            sender_pid: i32::try_from(std::process::id()).unwrap_or_default(),
            sender_euid: crate::target::own_euid(),
            security_context: None,
            reader: request.sealed_reader(),
        };
        let mut reply = HwParcel::new();
        served.dispatch(&mut call, &mut reply)?;
        Ok(reply.into_owned())
    }
}

/// The buffer of an answer; a failure travels as one word.
#[inline]
fn received(outcome: Outcome<'_>) -> Result<Received<'_>, CallError> {
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
