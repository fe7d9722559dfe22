//! Room: how large the parts of a payload in a lane are, and where its sender has them.
//! Not here: which objects may be in it (`embedded::objects`), where it lies (`super::Place`).
//!
//! A payload in a lane is laid out as its receiver will have it: data, offsets, scattered buffers, each
//! rounded up to 8 bytes. Between them may be anything that the sender left there before.
//!
//! Or it is packed: of a small one that is a [`Vector`] there are the data in front of its objects, rounded
//! up to 8 bytes, the structure's second word, and the elements. The receiver makes the rest. A call of 4 B
//! so fills two lines of the cache, as one of binder's, and not four, its reply one and not three.

use super::super::Corrupt;
use super::{CUT_FROM, LARGEST};
use crate::embedded::objects::{ALIGN, Layout, PAIR, STRUCTURE, Vector};

/// Sizes of a payload's parts. [`LARGEST`] bytes are few enough for the numbers to fit. Two words, in the lane
/// as here: many a struct on a call's way has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of data, and [`PACKED`].
    data: u32,
    /// Offsets: one for each object.
    pub objects: u16,
    /// Bytes of scattered buffers, in units of 8; of a packed payload bytes of elements.
    scattered: u16,
}

/// Bit beside the data's size.
const PACKED: u32 = 1 << 31;

impl Shape {
    /// Data and nothing else.
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`] for more than [`LARGEST`] bytes.
    #[inline]
    pub fn plain(data: usize) -> Result<Self, Corrupt> {
        if data > LARGEST {
            return Err(Corrupt::LaneSize);
        }
        Ok(Self { data: data as u32, ..Self::default() })
    }

    /// The parts of a layout whose scattered buffers end at `end`.
    pub(in crate::embedded) fn of(layout: &Layout, end: u64) -> Result<Self, Corrupt> {
        if end > LARGEST as u64 {
            return Err(Corrupt::LaneSize);
        }
        Ok(Self {
            data: layout.data_size as u32,
            objects: (layout.offsets_size / ALIGN) as u16,
            scattered: ((end - layout.scattered) / ALIGN) as u16,
        })
    }

    /// A packed payload. `None` for one that is large, where packing saves nothing.
    #[inline]
    pub(in crate::embedded) fn packed(vector: Vector) -> Option<Self> {
        let Vector { head, elements } = vector;
        if head >= CUT_FROM || elements >= CUT_FROM as u64 {
            return None;
        }
        let shape = Self { data: (head + PAIR) as u32 | PACKED, objects: 2, scattered: elements as u16 };
        (shape.len() < CUT_FROM).then_some(shape)
    }

    /// What is to be known of a packed payload.
    #[inline]
    pub(in crate::embedded) fn vector(&self) -> Option<Vector> {
        let head = self.data_size().wrapping_sub(PAIR);
        self.is_packed().then_some(Vector { head, elements: self.scattered.into() })
    }

    /// Whether what lies in the lane is not yet what arrives.
    #[must_use]
    #[inline]
    pub fn is_packed(&self) -> bool {
        self.data & PACKED != 0
    }

    #[inline]
    fn data_size(&self) -> usize {
        (self.data & !PACKED) as usize
    }

    /// Bytes that a lane holds of it.
    #[must_use]
    #[inline]
    pub fn sent(&self) -> usize {
        match self.vector() {
            None => self.len(),
            Some(Vector { head, elements }) => behind_head(head) + size_of::<u64>() + elements as usize,
        }
    }

    /// Bytes in all, once it has arrived.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        match self.objects {
            0 => self.data as usize,
            _ => self.layout().end as usize,
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the parts begin.
    #[inline]
    pub(in crate::embedded) fn layout(&self) -> Layout {
        let data_size = self.data_size() as u64;
        let offsets = data_size.next_multiple_of(ALIGN);
        let offsets_size = u64::from(self.objects) * ALIGN;
        let scattered = offsets + offsets_size;
        let buffers = match self.is_packed() {
            false => u64::from(self.scattered) * ALIGN,
            true => STRUCTURE + u64::from(self.scattered).next_multiple_of(ALIGN),
        };
        Layout { data_size, offsets, offsets_size, scattered, end: scattered + buffers }
    }

    /// As two words: the data's bytes, the rest.
    pub(super) fn encode(self) -> [u32; 2] {
        [self.data, u32::from(self.objects) | u32::from(self.scattered) << 16]
    }

    /// # Errors
    /// [`Corrupt::LaneSize`]: no lane holds so much. [`Corrupt::Objects`]: nothing that can be packed.
    pub(super) fn decode([data, rest]: [u32; 2]) -> Result<Self, Corrupt> {
        let shape = Self { data, objects: rest as u16, scattered: (rest >> 16) as u16 };
        if shape.is_packed() {
            return shape.packed_soundly().ok_or(Corrupt::Objects);
        }
        if data as usize > LARGEST || shape.len() > LARGEST { Err(Corrupt::LaneSize) } else { Ok(shape) }
    }

    /// Itself, if it is packed as a sender would.
    #[inline]
    fn packed_soundly(self) -> Option<Self> {
        let vector = self.vector()?;
        (vector.is_sound() && Self::packed(vector) == Some(self)).then_some(self)
    }
}

/// Where a packed payload's second part begins.
#[inline]
pub(in crate::embedded) fn behind_head(head: usize) -> usize {
    head.next_multiple_of(ALIGN as usize)
}

/// A payload to be sent, in one part or several.
pub trait Source {
    /// The sizes of its parts.
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`]: no lane holds so much.
    fn shape(&self) -> Result<Shape, Corrupt>;

    /// Gives each part with its place among what is sent, in order.
    fn parts(&self, give: impl FnMut(usize, &[u8]));
}

impl<B: AsRef<[u8]> + ?Sized> Source for B {
    #[inline]
    fn shape(&self) -> Result<Shape, Corrupt> {
        Shape::plain(self.as_ref().len())
    }

    #[inline]
    fn parts(&self, mut give: impl FnMut(usize, &[u8])) {
        give(0, self.as_ref());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_arrives_as_large_as_it_would_unpacked() {
        for (head, elements) in [(4, 0), (4, 1), (56, 4), (60, 8), (8, 9), (1000, 5001)] {
            let shape = Shape::packed(Vector { head, elements }).expect("small");
            let data = (head + PAIR) as u64;
            let layout = Layout::of(data, 16, STRUCTURE + elements.next_multiple_of(8)).expect("small");
            assert_eq!((shape.layout(), shape.len() as u64), (layout, layout.end));
            assert_eq!(shape.sent() as u64, head.next_multiple_of(8) as u64 + 8 + elements);
            assert_eq!(Shape::decode(shape.encode()), Ok(shape));
            assert_eq!(shape.vector(), Some(Vector { head, elements }));
            let plain = Shape::of(&layout, layout.end).expect("small");
            assert_eq!((plain.layout(), plain.sent(), plain.vector()), (layout, plain.len(), None));
        }
    }

    #[test]
    fn what_no_sender_packs_is_refused() {
        let [data, rest] = Shape::packed(Vector { head: 56, elements: 4 }).expect("small").encode();
        assert!(Shape::decode([data, rest]).is_ok());
        let pair = PAIR as u32;
        for data in
            [0, 4, pair - 4, pair, pair + 2, CUT_FROM as u32, CUT_FROM as u32 + pair, LARGEST as u32, !PACKED]
        {
            assert_eq!(Shape::decode([data | PACKED, rest]), Err(Corrupt::Objects), "{data}");
        }
        for rest in [0, 1 | 4 << 16, 3 | 4 << 16, 2 | (CUT_FROM as u32) << 16, 2 | 0xffff << 16] {
            assert_eq!(Shape::decode([data, rest]), Err(Corrupt::Objects), "{rest:#x}");
        }
        let most = (CUT_FROM - 56 - PAIR - 16 - 16) as u64;
        assert_eq!(Shape::packed(Vector { head: 56, elements: most }), None, "poured");
        assert!(Shape::packed(Vector { head: 56, elements: most - 8 }).is_some());
        assert_eq!(Shape::packed(Vector { head: usize::MAX - 8, elements: u64::MAX }), None);
    }
}
