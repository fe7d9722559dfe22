//! Sizes of a payload's parts in a call slot.
//! Not here: which objects are allowed (`scatter`), the position (`shm::call_slot`).
//!
//! A payload in a call slot has the receiver's layout: data, offsets, scattered buffers, each rounded up to 8 bytes.
//! The padding bytes are undefined.
//!
//! A small payload that is a [`Vector`] is packed: the data in front of its objects, rounded up to 8 bytes; space
//! for a pointer; the second word of the structure; the elements. The receiver makes the rest. So a call of 4 B
//! fills two cache lines instead of four, like a call of binder, and its reply one instead of three.

use std::fmt;

use super::packed::{PAIR, STRUCTURE, Vector};
use super::scatter::{ALIGN, Layout};

/// Most bytes of a payload in a call slot; larger ones go through the broker.
pub const LARGEST: usize = 128 << 10;

/// Error: sizes that are invalid in a call slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// More than [`LARGEST`] bytes.
    TooLarge,
    /// A packed payload that no sender makes, or buffers without objects.
    Objects,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "a payload larger than a call slot holds",
            Self::Objects => "a packed payload that no sender packs, or buffers without objects",
        })
    }
}

impl std::error::Error for ShapeError {}

/// Sizes of a payload's parts, in two words: [`LARGEST`] is small enough, and many structs on the path of a call
/// contain one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of data, with the bit [`PACKED`].
    data: u32,
    /// Number of offsets: one for each object.
    pub objects: u16,
    /// Bytes of scattered buffers, in units of 8; of a packed payload bytes of elements.
    scattered: u16,
}

/// Flag in the word of the data's size.
const PACKED: u32 = 1 << 31;

/// Most bytes in front of the objects of a packed payload, and most bytes of its elements.
const MOST_HEAD: usize = 4 << 10;
pub(crate) const MOST_ELEMENTS: u64 = 8 << 10;

impl Shape {
    /// Shape of a payload of data only.
    ///
    /// # Errors
    /// [`ShapeError::TooLarge`] for more than [`LARGEST`] bytes.
    pub fn plain(data: usize) -> Result<Self, ShapeError> {
        if data > LARGEST {
            return Err(ShapeError::TooLarge);
        }
        Ok(Self { data: data as u32, ..Self::default() })
    }

    /// Shape of a layout whose scattered buffers end at `end`.
    pub(crate) fn of(layout: &Layout, end: u64) -> Result<Self, ShapeError> {
        if end > LARGEST as u64 {
            return Err(ShapeError::TooLarge);
        }
        Ok(Self {
            data: layout.data_size as u32,
            objects: (layout.offsets_size / ALIGN) as u16,
            scattered: ((end - layout.scattered) / ALIGN) as u16,
        })
    }

    /// Shape of a packed payload; `None` for a large one, where packing saves nothing.
    pub(crate) fn packed(vector: Vector) -> Option<Self> {
        let Vector { head, elements } = vector;
        let data = (head.wrapping_add(PAIR)) as u32 | PACKED;
        let small = head <= MOST_HEAD && elements <= MOST_ELEMENTS;
        small.then_some(Self { data, objects: 2, scattered: elements as u16 })
    }

    /// Sizes of a packed payload; `None` for another.
    pub(crate) fn vector(&self) -> Option<Vector> {
        let head = self.data_size().wrapping_sub(PAIR);
        self.is_packed().then_some(Vector { head, elements: self.scattered.into() })
    }

    /// Whether the bytes in the call slot differ from those that arrive.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.data & PACKED != 0
    }

    fn data_size(&self) -> usize {
        (self.data & !PACKED) as usize
    }

    /// Bytes in the call slot.
    #[must_use]
    pub fn sent(&self) -> usize {
        match self.vector() {
            None => self.len(),
            Some(Vector { head, elements }) => behind_head(head) + STRUCTURE as usize + elements as usize,
        }
    }

    /// Bytes of the payload after its arrival.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.objects {
            0 => self.data as usize,
            _ => self.layout().end as usize,
        }
    }

    /// Whether the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Layout of the parts.
    pub(crate) fn layout(&self) -> Layout {
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

    /// Encodes the shape as two words: the data's size, the rest.
    pub(crate) fn encode(self) -> [u32; 2] {
        [self.data, u32::from(self.objects) | u32::from(self.scattered) << 16]
    }

    /// # Errors
    /// [`ShapeError::TooLarge`]: no call slot holds so much. [`ShapeError::Objects`]: packed without being packable,
    /// or buffers without objects. A correct sender never sends these: a payload without objects is plain, whatever
    /// its command declares. The receiver would reserve space for bytes that do not come.
    pub(crate) fn decode([data, rest]: [u32; 2]) -> Result<Self, ShapeError> {
        let shape = Self { data, objects: rest as u16, scattered: (rest >> 16) as u16 };
        if rest == 0 {
            // The usual case of data only; with the packed bit the size would be too large.
            return if data as usize > LARGEST { Err(ShapeError::TooLarge) } else { Ok(shape) };
        }
        if let Some(vector) = shape.vector() {
            let sound = vector.is_sound() && Self::packed(vector) == Some(shape);
            return if sound { Ok(shape) } else { Err(ShapeError::Objects) };
        }
        if shape.objects == 0 {
            return Err(ShapeError::Objects);
        }
        if data as usize > LARGEST || shape.len() > LARGEST { Err(ShapeError::TooLarge) } else { Ok(shape) }
    }
}

/// Offset of a packed payload's second part.
pub(crate) fn behind_head(head: usize) -> usize {
    head.next_multiple_of(ALIGN as usize)
}

/// A payload to send, in one or more parts.
pub trait Source {
    /// The sizes of its parts.
    ///
    /// # Errors
    /// [`ShapeError::TooLarge`]: no call slot holds so much.
    fn shape(&self) -> Result<Shape, ShapeError>;

    /// Passes each part with its offset to `put`, in order.
    fn parts(&self, give: impl FnMut(usize, &[u8]));
}

impl<B: AsRef<[u8]> + ?Sized> Source for B {
    fn shape(&self) -> Result<Shape, ShapeError> {
        Shape::plain(self.as_ref().len())
    }

    fn parts(&self, mut give: impl FnMut(usize, &[u8])) {
        give(0, self.as_ref());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A size in bytes between the smallest and the largest.
    const SOME: usize = 16 << 10;

    #[test]
    fn what_is_packed_arrives_as_large_as_it_would_unpacked() {
        for (head, elements) in [(4, 0), (4, 1), (56, 4), (60, 8), (8, 9), (1000, 5001)] {
            let shape = Shape::packed(Vector { head, elements }).expect("small");
            let data = (head + PAIR) as u64;
            let layout = Layout::of(data, 16, STRUCTURE + elements.next_multiple_of(8)).expect("small");
            assert_eq!((shape.layout(), shape.len() as u64), (layout, layout.end));
            assert_eq!(shape.sent() as u64, head.next_multiple_of(8) as u64 + 16 + elements);
            assert_eq!(Shape::decode(shape.encode()), Ok(shape));
            assert_eq!(shape.vector(), Some(Vector { head, elements }));
            let plain = Shape::of(&layout, layout.end).expect("small");
            assert_eq!((plain.layout(), plain.sent(), plain.vector()), (layout, plain.len(), None));
        }
    }

    #[test]
    fn buffers_without_objects_are_refused() {
        for data in [0, 4, SOME as u32, LARGEST as u32] {
            assert_eq!(
                Shape::decode([data, 0]).map(|shape| shape.layout().end),
                Ok(u64::from(data).next_multiple_of(8))
            );
            for scattered in [1, 2, u32::from(u16::MAX)] {
                assert_eq!(
                    Shape::decode([data, scattered << 16]),
                    Err(ShapeError::Objects),
                    "{data}, {scattered}"
                );
            }
        }
        // One object more, and it depends upon what that is.
        assert!(Shape::decode([40, 1 | 1 << 16]).is_ok());
    }

    proptest! {
        /// Whatever its words, what is taken for a shape needs no more room than a call slot has, and comes whole.
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
        for data in [0, 4, pair - 4, pair, pair + 2, SOME as u32, SOME as u32 + pair, LARGEST as u32, !PACKED]
        {
            assert_eq!(Shape::decode([data | PACKED, rest]), Err(ShapeError::Objects), "{data}");
        }
        assert_eq!(Shape::decode([data, 0]), Err(ShapeError::TooLarge), "the bit alone is a size beyond all");
        for rest in [1 | 4 << 16, 3 | 4 << 16, 2 | (MOST_ELEMENTS as u32 + 1) << 16, 2 | 0xffff << 16] {
            assert_eq!(Shape::decode([data, rest]), Err(ShapeError::Objects), "{rest:#x}");
        }
        let packed = |head, elements| Shape::packed(Vector { head, elements });
        let most = packed(MOST_HEAD, MOST_ELEMENTS).expect("as much as may be");
        assert!(Shape::decode(most.encode()).is_ok());
        let more = [(MOST_HEAD + 4, 4), (4, MOST_ELEMENTS + 1), (usize::MAX - 3, 4), (4, u64::MAX)];
        assert!(more.iter().all(|&(head, elements)| packed(head, elements).is_none()));
    }
}
