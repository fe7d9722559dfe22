//! Room: payloads that end with one vector or string, as most calls of HIDL do: what of them need not be
//! sent, because it follows from the rest.
//! Not here: any others (`few`, `super::Walk`), where the rest lies in a lane (`channel::lane::shape`).
//! Facts: contract OBJ-01, OBJ-15 to OBJ-18; `hidl_vec` and `hidl_string` are 16 bytes, a pointer first.
//!
//! The data ends with two PTR objects: a structure of two words, and what its first word points to. A
//! receiver that knows how long data and elements are makes objects, offsets and pointer by itself, so
//! that no claim of its sender's is left to be checked. `fuzz::scattered` holds them to the walk's.

use abi::layout::BufferObject;

use super::{BUFFER_SIZE, Layout, POINTER};

/// Bytes of both objects.
pub(in crate::embedded) const PAIR: usize = 2 * BUFFER_SIZE;
/// Bytes of the structure.
pub(in crate::embedded) const STRUCTURE: u64 = 2 * POINTER;

/// What is to be known of such a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Vector {
    /// Bytes of data in front of the objects: some, since an object at 0 is no parent; a multiple of 4.
    pub(in crate::embedded) head: usize,
    /// Bytes that the structure points to.
    pub(in crate::embedded) elements: u64,
}

impl Vector {
    /// Whether a payload is one, and the addresses that its sender gave to structure and elements. `data`
    /// and `offsets` are as long as `layout` says. `None`: it is another, or breaks a rule.
    #[inline]
    pub(in crate::embedded) fn of(layout: &Layout, data: &[u8], offsets: &[u8]) -> Option<(Self, [u64; 2])> {
        let listed: [u64; 2] = zerocopy::transmute!(*offsets.as_array::<16>()?);
        let (head, objects) = data.split_last_chunk::<PAIR>()?;
        let objects: [BufferObject; 2] = zerocopy::transmute!(*objects);
        let buffers = [objects[0].buffer, objects[1].buffer];
        let vector = Self { head: head.len(), elements: objects[1].length };
        let room = layout.end - layout.scattered;
        let fits = room >= STRUCTURE && vector.elements <= room - STRUCTURE;
        // Without a branch for each word: most payloads that come so far are one.
        let same: [BufferObject; 2] = vector.objects(buffers);
        let difference = differs(listed, vector.listed())
            | differs::<{ PAIR / 8 }>(zerocopy::transmute!(objects), zerocopy::transmute!(same));
        (vector.is_sound() && fits && difference == 0).then_some((vector, buffers))
    }

    /// Whether objects can stand behind so many bytes of data.
    #[inline]
    pub(in crate::embedded) fn is_sound(&self) -> bool {
        self.head != 0 && self.head.is_multiple_of(4)
    }

    /// Where the objects stand.
    #[inline]
    fn listed(&self) -> [u64; 2] {
        let at = self.head as u64;
        [at, at + BUFFER_SIZE as u64]
    }

    /// The objects, with these addresses.
    #[inline]
    fn objects(&self, addresses: [u64; 2]) -> [BufferObject; 2] {
        BufferObject::of_vector(addresses, self.elements, 0)
    }

    /// What stands behind the head, if the structure arrives at this address.
    #[inline]
    pub(in crate::embedded) fn objects_at(&self, structure: u64) -> [u32; PAIR / 4] {
        zerocopy::transmute!(self.objects([structure, structure + STRUCTURE]))
    }

    /// The offsets, and behind them the first word of the structure at this address.
    #[inline]
    pub(in crate::embedded) fn offsets_at(&self, structure: u64) -> [u32; 6] {
        let [first, other] = self.listed();
        zerocopy::transmute!([first, other, structure + STRUCTURE])
    }
}

/// 0 if they are the same.
#[inline]
fn differs<const N: usize>(one: [u64; N], other: [u64; N]) -> u64 {
    one.into_iter().zip(other).fold(0, |difference, (one, other)| difference | (one ^ other))
}
