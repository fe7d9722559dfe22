//! Buffers that the broker delivered into the arena and that are not given back yet.
//! Facts: contract OBJ-11 to OBJ-13.

use std::hash::BuildHasherDefault;
use std::mem;
use std::os::fd::OwnedFd;

use super::core::QuickMap;
use crate::trace_events;

/// A delivered buffer in the arena.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Offset in the arena.
    pub(super) offset: u64,
    /// Descriptors of FD objects that the program has not taken, by the object's address.
    pub(super) descriptors: Vec<(u64, OwnedFd)>,
    /// Descriptors of FDA objects: closed with the buffer (contract OBJ-13).
    pub(super) array: Vec<OwnedFd>,
    /// Numbers of the latter in a supervised program.
    pub(super) installed: Vec<i32>,
}

impl Buffer {
    /// Closes the FDA descriptors; returns whether there were any. FD descriptors that nobody took stay open
    /// (contract OBJ-13).
    pub(super) fn close_descriptors(self) -> bool {
        self.descriptors.into_iter().for_each(|(_, descriptor)| mem::forget(descriptor));
        !self.array.is_empty() || !self.installed.is_empty()
    }
}

/// A buffer that the broker takes back together with a reply. It leaves the map first, because its address
/// may be reused before the replying thread continues.
#[derive(Debug)]
pub(super) struct GivenBack {
    pub(super) address: u64,
    pub(super) buffer: Buffer,
    /// The buffer's size for its trace event.
    pub(super) traced: Option<trace_events::BufferSizes>,
}

/// Delivered buffers by address.
#[derive(Debug)]
pub(super) struct DeliveredBuffers(QuickMap<u64, Buffer>);

impl DeliveredBuffers {
    pub(super) fn new() -> Self {
        Self(QuickMap::with_capacity_and_hasher(16, BuildHasherDefault::default()))
    }

    pub(super) fn insert(&mut self, address: u64, buffer: Buffer) {
        self.0.insert(address, buffer);
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<Buffer> {
        self.0.remove(&address)
    }

    /// Takes the descriptor of the FD object at an address.
    pub(super) fn take_descriptor(&mut self, address: u64) -> Option<OwnedFd> {
        self.0.values_mut().find_map(|buffer| {
            let place = buffer.descriptors.iter().position(|(at, _)| *at == address)?;
            Some(buffer.descriptors.swap_remove(place).1)
        })
    }
}
