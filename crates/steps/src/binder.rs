//! The four serialisation steps in binder's format: AIDL's parcel, header and status word.
//! Not here: number and duration of the calls (`super`).

use std::hint::black_box;

use ipc::Release;
use ipc::binder::{Parcel, Status};

use crate::{DESCRIPTOR, Steps};

/// A call of a vector that is made again and again.
#[derive(Debug)]
pub struct Call {
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Call {
    /// Creates one for vectors of `payload` bytes.
    #[must_use]
    pub fn new(payload: usize) -> Self {
        Self { sent: super::vector(payload), received: Vec::with_capacity(payload) }
    }

    fn request(&self) -> Parcel {
        let mut request = Parcel::for_release(Release::default());
        request.write_header(DESCRIPTOR);
        request.write_byte_slice(black_box(&self.sent));
        request
    }

    fn take(&mut self, reply: &Parcel) -> Result<(), Status> {
        let mut reader = reply.reader();
        reader.read_status()?;
        let bytes = reader.read_byte_slice()?;
        self.received.clear();
        self.received.extend_from_slice(bytes);
        Ok(())
    }
}

/// The service's half.
fn serve(request: &Parcel) -> Result<Parcel, Status> {
    let mut reader = request.reader();
    reader.read_header(DESCRIPTOR)?;
    let bytes = reader.read_byte_slice()?;
    let mut reply = Parcel::for_release(Release::default());
    reply.write_no_exception();
    reply.write_byte_slice(bytes);
    Ok(reply)
}

impl Steps for Call {
    fn call(&mut self) {
        // A failure leaves the vector empty, which the caller checks.
        self.received.clear();
        if let Ok(reply) = serve(black_box(&self.request())) {
            let _ = self.take(black_box(&reply));
        }
    }

    fn came_back(&self) -> bool {
        self.sent == self.received
    }
}
