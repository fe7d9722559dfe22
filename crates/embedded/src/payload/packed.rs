//! Packed form of payloads that end with one vector or string, like most HIDL calls: a call slot carries them
//! without their objects.
//! Not here: all other payloads (`scatter::Walk`), positions in a call slot (`shape`).
//! Facts: contract OBJ-01, OBJ-15 to OBJ-18; `hidl_vec` and `hidl_string` are 16 bytes, a pointer first.
//!
//! The data ends with two PTR objects: a structure of two words, and the buffer that its first word points to. A
//! receiver that knows the lengths of data and elements makes objects, offsets and pointer itself, so no claim of
//! the sender is left to check. `fuzz::scattered` compares the result with the walk's.
//!
//! This form keeps hwbinder near binder at 4 B between two spinning CPUs: each cache line costs about 60 ns there,
//! and objects and offsets would add two lines to a request and two to a reply. A general form with 8 bytes for each
//! object reached 1.5 times binder instead of 1.2.

use abi::codes::object;
use abi::layout::BufferObject;

use super::scatter::{BUFFER_SIZE, Layout, POINTER};

/// Bytes of both objects.
pub(crate) const PAIR: usize = 2 * BUFFER_SIZE;
/// Bytes of the structure.
pub(crate) const STRUCTURE: u64 = 2 * POINTER;

/// Sizes of a packed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vector {
    /// Bytes of data in front of the objects: at least one, since an object at 0 cannot be a parent; a multiple of
    /// 4.
    pub(crate) head: usize,
    /// Bytes that the structure points to.
    pub(crate) elements: u64,
}

impl Vector {
    /// Recognises a payload of this form, and returns the sender's addresses of structure and elements. `data` and
    /// `offsets` have the sizes of `layout`. `None`: another form, or a broken rule.
    pub(crate) fn of(layout: &Layout, data: &[u8], offsets: &[u8]) -> Option<(Self, [u64; 2])> {
        let listed: [u64; 2] = zerocopy::transmute!(*offsets.as_array::<16>()?);
        let (head, objects) = data.split_last_chunk::<PAIR>()?;
        let objects: [BufferObject; 2] = zerocopy::transmute!(*objects);
        let buffers = [objects[0].buffer, objects[1].buffer];
        let vector = Self { head: head.len(), elements: objects[1].length };
        let room = layout.end - layout.scattered;
        let fits = room >= STRUCTURE && vector.elements <= room - STRUCTURE;
        // No branch for each word: most payloads that get here match.
        let same: [BufferObject; 2] = vector.objects(buffers);
        let difference = differs(listed, vector.listed())
            | differs::<{ PAIR / 8 }>(zerocopy::transmute!(objects), zerocopy::transmute!(same));
        (vector.is_sound() && fits && difference == 0).then_some((vector, buffers))
    }

    /// Whether objects may follow `data` bytes.
    pub(crate) fn is_sound(&self) -> bool {
        self.head != 0 && self.head.is_multiple_of(4)
    }

    /// Offset of the objects.
    fn listed(&self) -> [u64; 2] {
        let at = self.head as u64;
        [at, at + BUFFER_SIZE as u64]
    }

    /// The objects, with these addresses.
    fn objects(&self, addresses: [u64; 2]) -> [BufferObject; 2] {
        let [buffer, elements] = addresses;
        let structure = BufferObject { kind: object::PTR, buffer, length: STRUCTURE, ..Default::default() };
        let flags = object::BUFFER_FLAG_HAS_PARENT;
        [structure, BufferObject { flags, buffer: elements, length: self.elements, ..structure }]
    }

    /// Bytes behind the head for a structure at this address.
    pub(crate) fn objects_at(&self, structure: u64) -> [u32; PAIR / 4] {
        zerocopy::transmute!(self.objects([structure, structure + STRUCTURE]))
    }

    /// Offsets, followed by the first word of the structure at this address.
    pub(crate) fn offsets_at(&self, structure: u64) -> [u32; 6] {
        let [first, other] = self.listed();
        zerocopy::transmute!([first, other, structure + STRUCTURE])
    }
}

/// Returns 0 for equal words.
fn differs<const N: usize>(one: [u64; N], other: [u64; N]) -> u64 {
    one.into_iter().zip(other).fold(0, |difference, (one, other)| difference | (one ^ other))
}
