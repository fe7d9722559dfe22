//! An AIDL payload under construction, with the objects that it keeps alive until the driver has read it.
//! Not here: the values (`writer`, `reader`), received payloads (`runtime::received`).
//! Facts: the wire form of `flat_binder_object` and AIDL's parcel rules.
//!
//! Parcels are recycled: dropping one keeps its memory for the thread's next, so that a steady
//! stream of calls allocates nothing.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::OwnedFd;

use abi::Payload;

use crate::release::Release;
use crate::runtime::target::Binder;

/// Parcels whose memory a thread keeps; a nested call needs two at a time.
const KEPT: usize = 4;
/// More than any payload that a driver delivers is not kept.
const LARGEST_KEPT: usize = 1 << 20;

thread_local! {
    static SPARE: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct Memory {
    data: Vec<u8>,
    offsets: Vec<u64>,
    objects: Vec<Held>,
}

/// A resource that an object in a parcel keeps alive.
pub(crate) enum Held {
    Binder(Binder),
    Fd(OwnedFd),
}

/// The arguments or results of a call, with the objects that travel along.
pub struct Parcel {
    memory: Memory,
    release: Release,
}

impl Default for Parcel {
    fn default() -> Self {
        Self::for_release(Release::default())
    }
}

impl Parcel {
    /// An empty parcel in the newest release's dialect.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty parcel in a release's dialect.
    #[inline]
    #[must_use]
    pub fn for_release(release: Release) -> Self {
        let memory = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        Self { memory: memory.unwrap_or_default(), release }
    }

    /// The release whose dialect it is written in.
    #[must_use]
    pub fn release(&self) -> Release {
        self.release
    }

    /// The bytes so far.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.memory.data
    }

    /// Where each object stands in them.
    #[must_use]
    pub fn offsets(&self) -> &[u64] {
        &self.memory.offsets
    }

    /// Removes all bytes and objects.
    pub fn clear(&mut self) {
        self.memory.clear();
    }

    /// The payload to send.
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload { data: &self.memory.data, offsets: &self.memory.offsets, ..Payload::default() }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.memory.data
    }

    /// Appends an object that is listed in the offsets and keeps something alive.
    pub(crate) fn push_object(&mut self, object: &[u8], held: Held) {
        self.memory.offsets.push(self.memory.data.len() as u64);
        self.memory.data.extend_from_slice(object);
        self.memory.objects.push(held);
    }

    /// The resource that the object at an offset keeps alive.
    pub(crate) fn held(&self, offset: u64) -> Option<&Held> {
        let index = self.memory.offsets.binary_search(&offset).ok()?;
        self.memory.objects.get(index)
    }
}

impl Memory {
    #[inline]
    fn clear(&mut self) {
        self.data.clear();
        self.offsets.clear();
        self.objects.clear();
    }
}

impl Drop for Parcel {
    #[inline]
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.memory);
        // May run the last drop of a proxy or node, so before the spare list is borrowed.
        memory.clear();
        if memory.data.capacity() > LARGEST_KEPT {
            return;
        }
        // Without local storage, at a thread's end, the memory is simply given back.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(memory);
            }
        });
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parcel")
            .field("bytes", &self.memory.data.len())
            .field("objects", &self.memory.offsets.len())
            .field("release", &self.release)
            .finish()
    }
}
