//! Room: how large the parts of a payload in a lane are, and where its sender has them.
//! Not here: which objects may be in it (`embedded::objects`), where it lies (`super::Place`).
//!
//! A payload in a lane is laid out as its receiver will have it: data, offsets, scattered buffers, each
//! rounded up to 8 bytes. Between them may be anything that the sender left there before.

use super::super::Corrupt;
use super::LARGEST;
use crate::embedded::objects::{ALIGN, Layout};

/// Sizes of a payload's parts. [`LARGEST`] bytes are few enough for the numbers to fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of data.
    pub data_size: u32,
    /// Offsets: one for each object.
    pub objects: u16,
    /// Bytes of scattered buffers, in units of 8.
    pub scattered: u16,
}

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
        Ok(Self { data_size: data as u32, ..Self::default() })
    }

    /// The parts of a layout whose scattered buffers end at `end`.
    pub(in crate::embedded) fn of(layout: &Layout, end: u64) -> Result<Self, Corrupt> {
        if end > LARGEST as u64 {
            return Err(Corrupt::LaneSize);
        }
        Ok(Self {
            data_size: layout.data_size as u32,
            objects: (layout.offsets_size / ALIGN) as u16,
            scattered: ((end - layout.scattered) / ALIGN) as u16,
        })
    }

    /// Bytes in all.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        match self.objects {
            0 => self.data_size as usize,
            objects => {
                let units = usize::from(objects) + usize::from(self.scattered);
                (self.data_size as usize).next_multiple_of(ALIGN as usize) + units * ALIGN as usize
            }
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the parts begin.
    pub(in crate::embedded) fn layout(&self) -> Layout {
        let offsets = u64::from(self.data_size).next_multiple_of(ALIGN);
        let scattered = offsets + u64::from(self.objects) * ALIGN;
        let end = scattered + u64::from(self.scattered) * ALIGN;
        let offsets_size = u64::from(self.objects) * ALIGN;
        Layout { data_size: self.data_size.into(), offsets, offsets_size, scattered, end }
    }

    /// As two words: the data's bytes, the rest.
    pub(super) fn encode(self) -> [u32; 2] {
        [self.data_size, u32::from(self.objects) | u32::from(self.scattered) << 16]
    }

    /// # Errors
    /// [`Corrupt::LaneSize`]: no lane holds so much.
    pub(super) fn decode([data_size, rest]: [u32; 2]) -> Result<Self, Corrupt> {
        let shape = Self { data_size, objects: rest as u16, scattered: (rest >> 16) as u16 };
        if data_size as usize > LARGEST || shape.len() > LARGEST { Err(Corrupt::LaneSize) } else { Ok(shape) }
    }
}

/// A payload to be sent, in one part or several.
pub trait Source {
    /// The sizes of its parts.
    ///
    /// # Errors
    /// [`Corrupt::LaneSize`]: no lane holds so much.
    fn shape(&self) -> Result<Shape, Corrupt>;

    /// Gives each part with its place in the payload, in order.
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
