//! Room: how large the parts of a payload in a lane are, and where its sender has them.
//! Not here: which objects may be in it (`embedded::objects`), where it lies (`super::Place`).
//!
//! A payload in a lane is laid out as its receiver will have it: data, offsets, scattered buffers, each
//! rounded up to 8 bytes. Between them may be anything that the sender left there before.
//!
//! Or it is packed: of a small one that is a [`Vector`] there are the data in front of its objects, rounded
//! up to 8 bytes, room for a pointer, the structure's second word, and the elements. The receiver makes the
//! rest; for a reader that needs no objects that is the pointer. A call of 4 B so fills two lines of the
//! cache, as one of binder's, and not four, its reply one and not three.

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

/// Most bytes in front of the objects of a packed payload, and most of its elements: together, and with what
/// the receiver adds, too few to be poured. Two limits, not one for the sum, as each is a glance.
const MOST_HEAD: usize = 4 << 10;
pub(in crate::embedded) const MOST_ELEMENTS: u64 = 8 << 10;
const _: () =
    assert!(MOST_HEAD + PAIR + 2 * size_of::<u64>() + STRUCTURE as usize + 8 + (8 << 10) < CUT_FROM);

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
        let data = (head.wrapping_add(PAIR)) as u32 | PACKED;
        let small = head <= MOST_HEAD && elements <= MOST_ELEMENTS;
        small.then_some(Self { data, objects: 2, scattered: elements as u16 })
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
            Some(Vector { head, elements }) => behind_head(head) + STRUCTURE as usize + elements as usize,
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

    /// Where the parts begin of a packed payload that arrives as it is sent, without objects.
    #[inline]
    pub(in crate::embedded) fn bare(&self) -> Option<(Vector, Layout)> {
        let vector = self.vector()?;
        let scattered = behind_head(vector.head) as u64;
        let (data_size, end) = (vector.head as u64, scattered + STRUCTURE + vector.elements);
        Some((vector, Layout { data_size, offsets: scattered, offsets_size: 0, scattered, end }))
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
    /// [`Corrupt::LaneSize`]: no lane holds so much. [`Corrupt::Objects`]: nothing that can be packed, or buffers that
    /// no object describes. Those are never sent: a payload without objects is plain, whatever room its command asks
    /// for. The receiver would make room for bytes that do not come.
    pub(super) fn decode([data, rest]: [u32; 2]) -> Result<Self, Corrupt> {
        let shape = Self { data, objects: rest as u16, scattered: (rest >> 16) as u16 };
        if rest == 0 {
            // Data and nothing else, as most often; with the bit of packed ones it would be too much.
            return if data as usize > LARGEST { Err(Corrupt::LaneSize) } else { Ok(shape) };
        }
        if let Some(vector) = shape.vector() {
            let sound = vector.is_sound() && Self::packed(vector) == Some(shape);
            return if sound { Ok(shape) } else { Err(Corrupt::Objects) };
        }
        if shape.objects == 0 {
            return Err(Corrupt::Objects);
        }
        if data as usize > LARGEST || shape.len() > LARGEST { Err(Corrupt::LaneSize) } else { Ok(shape) }
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_packed_arrives_as_large_as_it_would_unpacked() {
        for (head, elements) in [(4, 0), (4, 1), (56, 4), (60, 8), (8, 9), (1000, 5001)] {
            let shape = Shape::packed(Vector { head, elements }).expect("small");
            let data = (head + PAIR) as u64;
            let layout = Layout::of(data, 16, STRUCTURE + elements.next_multiple_of(8)).expect("small");
            assert_eq!((shape.layout(), shape.len() as u64), (layout, layout.end));
            assert_eq!(shape.sent() as u64, head.next_multiple_of(8) as u64 + 16 + elements);
            let (vector, bare) = shape.bare().expect("packed");
            assert_eq!(
                (vector.elements, bare.end, bare.data_size),
                (elements, shape.sent() as u64, head as u64)
            );
            assert_eq!(Some(bare), Layout::of(head as u64, 0, STRUCTURE + elements));
            assert_eq!(Shape::decode(shape.encode()), Ok(shape));
            assert_eq!(shape.vector(), Some(Vector { head, elements }));
            let plain = Shape::of(&layout, layout.end).expect("small");
            assert_eq!((plain.layout(), plain.sent(), plain.vector()), (layout, plain.len(), None));
            assert_eq!(plain.bare(), None);
        }
    }

    #[test]
    fn buffers_without_objects_are_refused() {
        for data in [0, 4, CUT_FROM as u32, LARGEST as u32] {
            assert_eq!(
                Shape::decode([data, 0]).map(|shape| shape.layout().end),
                Ok(u64::from(data).next_multiple_of(8))
            );
            for scattered in [1, 2, u32::from(u16::MAX)] {
                assert_eq!(
                    Shape::decode([data, scattered << 16]),
                    Err(Corrupt::Objects),
                    "{data}, {scattered}"
                );
            }
        }
        // One object more, and it depends upon what that is.
        assert!(Shape::decode([40, 1 | 1 << 16]).is_ok());
    }

    proptest! {
        /// Whatever its words, what is taken for a shape needs no more room than a lane has, and comes whole.
        #[test]
        fn no_words_make_a_receiver_reserve_more_than_comes(data: u32, objects: u16, scattered: u16, small: bool) {
            let data = if small { data % (LARGEST as u32 + 2) } else { data };
            let words = [data, u32::from(objects) | u32::from(scattered) << 16];
            if let Ok(shape) = Shape::decode(words) {
                let end = shape.layout().end;
                prop_assert_eq!(shape.encode(), words);
                prop_assert!(end <= LARGEST as u64);
                prop_assert!(shape.is_packed() || shape.sent().next_multiple_of(8) as u64 == end);
            }
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
        assert_eq!(Shape::decode([data, 0]), Err(Corrupt::LaneSize), "the bit alone is a size beyond all");
        for rest in [1 | 4 << 16, 3 | 4 << 16, 2 | (MOST_ELEMENTS as u32 + 1) << 16, 2 | 0xffff << 16] {
            assert_eq!(Shape::decode([data, rest]), Err(Corrupt::Objects), "{rest:#x}");
        }
        let packed = |head, elements| Shape::packed(Vector { head, elements });
        let most = packed(MOST_HEAD, MOST_ELEMENTS).expect("as much as may be");
        assert!(Shape::decode(most.encode()).is_ok() && most.len() < CUT_FROM, "not poured");
        let more = [(MOST_HEAD + 4, 4), (4, MOST_ELEMENTS + 1), (usize::MAX - 3, 4), (4, u64::MAX)];
        assert!(more.iter().all(|&(head, elements)| packed(head, elements).is_none()));
    }
}
