//! Calling a HIDL object.
//! Not here: the transaction itself (`crate::runtime`), the payload (`parcel`), IBase (`base`).
//! Facts: libhwbinder's `BpHwBinder`; replies are read as `status` says.

use abi::TransactionFlags;

use crate::call::Taken;
use crate::error::TransactError;
use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::object::{Incoming, Served};
use crate::hwbinder::parcel::HwParcel;
use crate::hwbinder::reader::Reader;
use crate::incoming::{ReplyPayload, reply_of};
use crate::runtime::target::Binder;
use crate::status::{CallError, Status};
use crate::status_code::StatusCode;

/// The results of a call, read in place in the receiving area until dropped.
#[derive(Debug)]
pub struct Reply<'p> {
    payload: ReplyPayload<'p, HwParcel<'static>>,
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
        let payload = match self.as_binder() {
            Binder::Remote(proxy) => {
                let outcome = request
                    .with_payload(|payload| proxy.transact_payload(code, TransactionFlags::CALL, payload))?;
                ReplyPayload::Received(reply_of(outcome)?)
            }
            Binder::Local(_) => {
                ReplyPayload::Local(self.call_local(code, TransactionFlags::CALL, request)?)
            }
        };
        let reply = Reply { payload };
        reply.payload_reader().read_status()?;
        Ok(reply)
    }

    /// Makes a oneway call.
    ///
    /// # Errors
    /// The driver does not take it. That it arrives is not known.
    pub fn oneway(&self, code: u32, request: HwParcel<'_>) -> Result<Taken, TransactError> {
        match self.as_binder() {
            Binder::Remote(proxy) => request.with_payload(|payload| proxy.transact_oneway(code, payload)),
            Binder::Local(_) => {
                // Errors are dropped, as for a oneway call to another process.
                let _ = self.call_local(code, TransactionFlags::ONEWAY, request);
                Ok(Taken::Complete)
            }
        }
    }

    /// Runs a method of an object of this process on the calling thread, without the driver.
    fn call_local(
        &self,
        code: u32,
        flags: TransactionFlags,
        mut request: HwParcel<'_>,
    ) -> Result<HwParcel<'static>, Status> {
        let served: &Served = self.as_binder().served().ok_or(StatusCode::INVALID_OPERATION)?;
        request.seal();
        let mut call = Incoming::local(code, flags, request.sealed_reader());
        let mut reply = HwParcel::new();
        served.dispatch(&mut call, &mut reply)?;
        Ok(reply.into_owned())
    }
}
