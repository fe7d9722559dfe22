//! Calling an AIDL object.
//! Not here: the transaction itself (`crate::runtime`), the payload (`parcel`).
//! Facts: Android's `BpBinder`; replies are read as `status` says.

use std::os::fd::OwnedFd;

use abi::TransactionFlags;

use crate::binder::object::{Incoming, Served};
use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::binder::special;
use crate::call::Taken;
use crate::error::TransactError;
use crate::incoming::{ReplyPayload, reply_of};
use crate::release::Release;
use crate::runtime::proxy::Proxy;
use crate::runtime::target::Binder;
use crate::status::{CallError, Status};
use crate::status_code::StatusCode;

/// The results of a call, read in place in the receiving area until dropped.
#[derive(Debug)]
pub struct Reply<'p> {
    payload: ReplyPayload<'p, Parcel>,
    release: Release,
    results: usize,
}

impl Reply<'_> {
    /// Reads the results.
    #[must_use]
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
    pub fn transact(&self, code: u32, request: &Parcel) -> Result<Reply<'_>, CallError> {
        let received = reply_of(self.transact_payload(code, TransactionFlags::CALL, request.payload())?)?;
        Ok(Reply { payload: ReplyPayload::Received(received), release: self.release(), results: 0 })
    }
}

impl Binder {
    fn release(&self) -> Release {
        match self {
            Self::Remote(proxy) => proxy.release(),
            Self::Local(_) => self.served().map_or(Release::default(), Served::release),
        }
    }

    /// An empty request in the dialect that the object's process speaks.
    #[must_use]
    pub fn bare_request(&self) -> Parcel {
        Parcel::for_release(self.release())
    }

    /// A request to an interface of the object: the header is written, append the arguments.
    #[must_use]
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
    pub fn call(&self, code: u32, request: Parcel) -> Result<Reply<'_>, CallError> {
        let mut reply = self.transact(code, &request)?;
        reply.skip_status()?;
        Ok(reply)
    }

    /// Makes a oneway call.
    ///
    /// # Errors
    /// The driver does not take it. That it arrives is not known.
    pub fn oneway(&self, code: u32, request: Parcel) -> Result<Taken, TransactError> {
        match self {
            Self::Remote(proxy) => proxy.transact_oneway(code, request.payload()),
            Self::Local(_) => {
                // Errors are dropped, as for a oneway call to another process.
                let _ = self.call_local(code, TransactionFlags::ONEWAY, &request);
                Ok(Taken::Complete)
            }
        }
    }

    /// A call without header or status word, for special codes and other people's protocols.
    ///
    /// # Errors
    /// See [`CallError`].
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
        let served: &Served = self.served().ok_or(StatusCode::INVALID_OPERATION)?;
        let mut call = Incoming::local(code, flags, request.reader());
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

    /// Has the object describe its state into a file, with words for it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn dump(&self, to: impl Into<OwnedFd>, words: &[String]) -> Result<(), CallError> {
        let mut request = self.bare_request();
        request.write_fd(to);
        request.write_str_slice(words);
        self.transact(special::DUMP, &request).map(drop)
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
