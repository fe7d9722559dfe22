//! Private copy of a transaction's payload while it is rewritten for the receiver.
//! Not here: the rewriting rules (`translate`, `scatter`).

use std::os::fd::OwnedFd;

use super::refusal::Refusal;
use crate::payload::scatter::{FoundObject, Layout, View};
use crate::rpc::protocol::Transact;
use sys::errno::EFAULT;

/// A payload as sent, and as it will be received.
#[derive(Debug)]
pub(super) struct PayloadRewrite<'a> {
    source: &'a [u8],
    bytes: Vec<u8>,
    layout: Layout,
    /// Address of the buffer in the receiver.
    pub(super) address: u64,
    pub(super) fds: Vec<OwnedFd>,
}

impl<'a> PayloadRewrite<'a> {
    /// `source` contains at least data and offsets.
    pub(super) fn new(source: &'a [u8], layout: Layout, address: u64, transact: &Transact) -> Self {
        let gathered = transact.gathered.min(transact.buffers_size);
        let end = (layout.scattered + gathered).min(source.len() as u64) as usize;
        Self { source, bytes: source[..end].to_vec(), layout, address, fds: Vec::new() }
    }

    /// Bytes of the payload.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[..self.layout.data_size as usize]
    }

    /// Offsets and scattered buffers.
    pub(super) fn behind_data(&self) -> &[u8] {
        &self.bytes[self.layout.offsets as usize..]
    }

    pub(super) fn into_fds(self) -> Vec<OwnedFd> {
        self.fds
    }

    /// Reads a field of an object.
    pub(super) fn field32(&self, found: FoundObject, at: u64) -> u32 {
        self.get(found.at + at).map_or(0, u32::from_ne_bytes)
    }

    /// Reads a field of an object.
    pub(super) fn field64(&self, found: FoundObject, at: u64) -> u64 {
        self.get(found.at + at).map_or(0, u64::from_ne_bytes)
    }

    /// Reads a field as the sender wrote it.
    pub(super) fn sent64(&self, found: FoundObject, at: u64) -> u64 {
        chunk(self.source, found.at + at).map_or(0, u64::from_ne_bytes)
    }

    /// Rewrites bytes of the payload.
    pub(super) fn rewrite(&mut self, at: u64, bytes: &[u8]) -> Result<(), Refusal> {
        self.put(at, bytes).ok_or(Refusal::failed(EFAULT))
    }

    /// Rewrites a node or handle object; its flags stay.
    pub(super) fn put_flat(
        &mut self,
        found: FoundObject,
        kind: u32,
        binder: u64,
        cookie: u64,
    ) -> Result<(), Refusal> {
        self.rewrite(found.at, &kind.to_ne_bytes())?;
        self.rewrite(found.at + 8, &binder.to_ne_bytes())?;
        self.rewrite(found.at + 16, &cookie.to_ne_bytes())
    }
}

impl View for PayloadRewrite<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        chunk(&self.bytes, at)
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()> {
        let rest = self.bytes.get_mut(usize::try_from(at).ok()?..)?;
        rest.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(())
    }
}

fn chunk<const N: usize>(bytes: &[u8], at: u64) -> Option<[u8; N]> {
    bytes.get(usize::try_from(at).ok()?..)?.first_chunk().copied()
}
