//! Room: the private copy of a transaction's bytes while it is rewritten for the receiver.
//! Not here: what is rewritten (`translate`, `scatter`).

use std::os::fd::OwnedFd;

use abi::codes::object;

use super::carry::Plan;
use super::refusal::{EFAULT, EINVAL, Refusal};
use crate::embedded::protocol::Transact;

const BUFFER_SIZE: usize = size_of::<abi::layout::BufferObject>();

/// Bytes of an object of this type; `None` for a type that no driver knows.
fn size_of_kind(kind: u32) -> Option<usize> {
    Some(match kind {
        object::BINDER | object::WEAK_BINDER | object::HANDLE | object::WEAK_HANDLE => {
            size_of::<abi::layout::FlatBinderObject>()
        }
        object::FD => size_of::<abi::layout::FdObject>(),
        object::FDA => size_of::<abi::layout::FdArrayObject>(),
        object::PTR => BUFFER_SIZE,
        _ => return None,
    })
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// An object that lies whole and aligned in the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) kind: u32,
    pub(super) at: usize,
    pub(super) size: usize,
}

/// A scattered buffer's object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scattered {
    pub(super) flags: u32,
    pub(super) buffer: u64,
    pub(super) length: u64,
    pub(super) parent: u64,
    pub(super) parent_offset: u64,
}

/// The bytes as sent, and as they will be received.
#[derive(Debug)]
pub(super) struct Image<'a> {
    source: &'a [u8],
    bytes: Vec<u8>,
    data_size: usize,
    pub(super) plan: Plan,
    /// Where the buffer begins for the receiver.
    pub(super) address: u64,
    /// Where the next scattered buffer goes.
    pub(super) cursor: u64,
    /// The buffer object that may be fixed up next, 0 for none, and from where on (contract OBJ-17,
    /// OBJ-18).
    pub(super) last_object: u64,
    pub(super) last_min: u64,
    pub(super) fds: Vec<OwnedFd>,
}

impl<'a> Image<'a> {
    /// `source` reaches at least to the end of the offsets.
    pub(super) fn new(source: &'a [u8], plan: Plan, address: u64, transact: &Transact) -> Self {
        let gathered = transact.gathered.min(transact.buffers_size);
        let end = (plan.scattered + gathered).min(source.len() as u64) as usize;
        Self {
            source,
            bytes: source[..end].to_vec(),
            data_size: transact.data_size as usize,
            plan,
            address,
            cursor: plan.scattered,
            last_object: 0,
            last_min: 0,
            fds: Vec::new(),
        }
    }

    /// Bytes that are there.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[..self.data_size]
    }

    /// Offsets and scattered buffers.
    pub(super) fn behind_data(&self) -> &[u8] {
        &self.bytes[self.plan.offsets as usize..]
    }

    pub(super) fn into_fds(self) -> Vec<OwnedFd> {
        self.fds
    }

    /// The offset of the object with this index.
    pub(super) fn offset(&self, index: u64) -> Option<u64> {
        let at = self.plan.offsets.checked_add(index.checked_mul(8)?)?;
        (at < self.plan.scattered).then(|| word64(&self.bytes, at as usize)).flatten()
    }

    /// The object at this offset of the data.
    pub(super) fn object(&self, offset: u64) -> Option<Found> {
        let at = usize::try_from(offset).ok()?;
        if at >= self.data_size || !at.is_multiple_of(4) {
            return None;
        }
        let kind = word32(self.data(), at)?;
        let size = size_of_kind(kind)?;
        (size <= self.data_size - at).then_some(Found { kind, at, size })
    }

    /// A field of an object that was found.
    pub(super) fn field32(&self, found: Found, at: usize) -> u32 {
        word32(&self.bytes, found.at + at).unwrap_or(0)
    }

    /// A field of an object that was found.
    pub(super) fn field64(&self, found: Found, at: usize) -> u64 {
        word64(&self.bytes, found.at + at).unwrap_or(0)
    }

    /// A field as the sender wrote it.
    pub(super) fn sent64(&self, found: Found, at: usize) -> u64 {
        word64(self.source, found.at + at).unwrap_or(0)
    }

    /// The scattered buffer that this object stands for.
    pub(super) fn scattered(&self, found: Found) -> Scattered {
        Scattered {
            flags: self.field32(found, 4),
            buffer: self.field64(found, 8),
            length: self.field64(found, 16),
            parent: self.field64(found, 24),
            parent_offset: self.field64(found, 32),
        }
    }

    /// Rewrites bytes inside what was sent.
    pub(super) fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let at = usize::try_from(at).map_err(|_| Refusal::failed(EINVAL))?;
        let place = self.bytes.get_mut(at..).and_then(|rest| rest.get_mut(..bytes.len()));
        place.ok_or(Refusal::failed(EFAULT))?.copy_from_slice(bytes);
        Ok(())
    }

    /// Rewrites a node or handle object; its flags stay.
    pub(super) fn put_flat(
        &mut self,
        found: Found,
        kind: u32,
        binder: u64,
        cookie: u64,
    ) -> Result<(), Refusal> {
        let at = found.at as u64;
        self.put(at, &kind.to_ne_bytes())?;
        self.put(at + 8, &binder.to_ne_bytes())?;
        self.put(at + 16, &cookie.to_ne_bytes())
    }
}
