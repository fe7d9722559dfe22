//! Bytes of the caller that may be read in place.
//!
//! An address in a command is dereferenced only inside the payload that the caller vouches for. Any other address is
//! read through the kernel, which returns `EFAULT` where a direct access would crash.

use std::io;

use abi::Payload;
use abi::layout::TransactionData;
use zerocopy::IntoBytes;

use crate::program::Caller;

/// The payload that a caller vouches for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vouched<'p> {
    payload: Payload<'p>,
    caller: Caller<'p>,
    /// Index behind the last buffer found: lookups are usually in order and of whole buffers.
    next: usize,
}

impl<'p> Vouched<'p> {
    pub(crate) fn new(payload: Payload<'p>, caller: Caller<'p>) -> Self {
        Self { payload, caller, next: 0 }
    }

    /// The data that a command points to.
    pub(crate) fn data(&self, data: &TransactionData) -> Option<&'p [u8]> {
        part(self.payload.data, data.buffer, data.data_size)
    }

    /// The offsets that a command points to.
    pub(crate) fn offsets(&self, data: &TransactionData) -> Option<&'p [u8]> {
        part(self.payload.offsets.as_bytes(), data.offsets, data.offsets_size)
    }

    /// Bytes that PTR objects may point to.
    pub(crate) fn buffers(&self) -> &'p [&'p [u8]] {
        self.payload.buffers
    }

    /// The bytes that a PTR object points to, by their address and length.
    pub(crate) fn buffer(&mut self, address: u64, len: u64) -> Option<&'p [u8]> {
        match self.payload.buffers.get(self.next) {
            Some(bytes) if bytes.as_ptr() as u64 == address && bytes.len() as u64 == len => {
                self.next += 1;
                Some(bytes)
            }
            _ if len == 0 => Some(&[]),
            _ => self.find_buffer(address, len),
        }
    }

    fn find_buffer(&mut self, address: u64, len: u64) -> Option<&'p [u8]> {
        let buffers = self.payload.buffers;
        for index in (self.next..buffers.len()).chain(0..self.next.min(buffers.len())) {
            if let Some(bytes) = part(buffers[index], address, len) {
                self.next = index + 1;
                return Some(bytes);
            }
        }
        None
    }

    /// Bytes at an address, if one part contains them.
    pub(crate) fn find(&mut self, address: u64, len: u64) -> Option<&'p [u8]> {
        part(self.payload.data, address, len)
            .or_else(|| part(self.payload.offsets.as_bytes(), address, len))
            .or_else(|| self.buffer(address, len))
    }

    /// Reads the bytes at an address, through the kernel if necessary.
    ///
    /// # Errors
    /// `EFAULT`.
    pub(crate) fn copy(&mut self, address: u64, into: &mut [u8]) -> io::Result<()> {
        match self.find(address, into.len() as u64) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => self.caller.read(address, into),
        }
    }
}

/// The part of `bytes` that lies at an address.
fn part(bytes: &[u8], address: u64, len: u64) -> Option<&[u8]> {
    let at = address.checked_sub(bytes.as_ptr() as u64)?;
    bytes.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(len).ok()?)
}
