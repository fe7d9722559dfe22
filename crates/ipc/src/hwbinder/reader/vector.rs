//! Room: a vector out of a payload, as nearly every call carries one: both of its objects and both of its
//! buffers looked at at once.
//! Not here: what else there may be, and what a vector is that is refused here (`objects`).
//! Facts: libhwbinder's `verifyBufferObject`, contract OBJ-15 to OBJ-18.

use abi::codes::object;
use abi::layout::BufferObject;

use super::objects::Seen;
use super::{PAIR, Read, Reader};
use crate::hwbinder::writer::VEC;

impl<'t> Reader<'t> {
    /// `vec<T>` of structures of this size.
    ///
    /// # Errors
    /// As [`Self::read_struct`].
    #[inline]
    pub fn read_structs(&mut self, size: usize) -> Read<Seen<'t>> {
        let taken =
            if self.vector.is_empty() { self.take_vec(size) } else { self.take_left_out(size, false) };
        match taken {
            Some(elements) => Ok(elements),
            None => self.read_structs_by_steps(size),
        }
    }

    #[cold]
    fn read_structs_by_steps(&mut self, size: usize) -> Read<Seen<'t>> {
        self.attempt(|reader| {
            let vec = reader.take_top(VEC as u64)?;
            reader.take_elements(vec, 0, size, false)
        })
    }

    /// The elements of a vector as every sender writes it and every driver delivers it, both objects and
    /// both buffers looked at at once: what most calls carry. `None`, and nothing taken, for any other,
    /// which the steps one by one accept or refuse.
    #[inline]
    fn take_vec(&mut self, size: usize) -> Option<Seen<'t>> {
        let [at, index] = [self.at as u64, self.next as u64];
        let [vec, elements]: [BufferObject; 2] = zerocopy::transmute!(*self.rest().first_chunk::<PAIR>()?);
        let listed: [u64; 2] = zerocopy::transmute!(*self.offsets.get(8 * self.next..)?.first_chunk::<16>()?);
        let is_vec = (vec.kind, vec.flags, vec.length) == (object::PTR, 0, VEC as u64);
        let is_child = (elements.kind, elements.flags) == (object::PTR, object::BUFFER_FLAG_HAS_PARENT)
            && (elements.parent, elements.parent_offset) == (index, 0);
        let is_behind = vec.buffer.checked_add(VEC as u64) == Some(elements.buffer);
        if listed != [at, at + (PAIR / 2) as u64] || !is_vec || !is_child || !is_behind {
            return None;
        }
        let both = BufferObject { length: elements.length.checked_add(VEC as u64)?, ..vec };
        let (structure, bytes) = self.described(self.next, &both).ok()?.split_first_chunk::<VEC>()?;
        let [pointer, count]: [u64; 2] = zerocopy::transmute!(*structure);
        let len = u64::from(count as u32).checked_mul(size as u64)?;
        if pointer != elements.buffer || elements.length != len {
            return None;
        }
        self.at += PAIR;
        self.next += 2;
        Some(Seen { bytes, object: index + 1 })
    }

    /// The elements of a vector whose objects were left out, or of a string with its NUL. The objects were
    /// never its sender's: nothing is to be looked at but what it says of the elements.
    #[inline]
    pub(super) fn take_left_out(&mut self, size: usize, nul: bool) -> Option<Seen<'t>> {
        let (structure, bytes) = self.vector.split_first_chunk::<VEC>()?;
        let [_, count]: [u64; 2] = zerocopy::transmute!(*structure);
        let len = u64::from(count as u32).checked_mul(size as u64)?.checked_add(nul.into())?;
        if self.at != self.data.len() || len != bytes.len() as u64 {
            return None;
        }
        (self.at, self.next) = (self.at + PAIR, 2);
        Some(Seen { bytes, object: 1 })
    }
}
