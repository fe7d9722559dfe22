//! Payload encoder for call slots: decides whether a payload may go through one, and where its bytes are.
//! Not here: encoding for the broker (`gather`), the call slot (`shm::call_slot`), the rules (`scatter`).
//! Facts: contract OBJ-01, OBJ-02, OBJ-15 to OBJ-18.
//!
//! Scattered buffers are the only objects that a call slot carries, because they concern only its two ends. A
//! payload with other objects, or one that breaks a rule, goes through the broker, which refuses it like the kernel.
//! The receiver checks everything again.

use std::sync::OnceLock;

use abi::Payload;
use abi::layout::{BufferObject, TransactionData};

use super::packed::{STRUCTURE, Vector};
use super::scatter::{ALIGN, Layout, View, Walk};
use super::shape::{LARGEST, Shape, ShapeError, Source, behind_head};
use super::vouched::Vouched;
use crate::program::Caller;

/// A payload that a call slot carries.
#[derive(Debug)]
pub(crate) struct SlotPayload<'p> {
    shape: Shape,
    bytes: Bytes<'p>,
}

#[derive(Debug)]
enum Bytes<'p> {
    /// Data only. In this and the next two variants, the bytes are the caller's, which vouches for them.
    Plain(&'p [u8]),
    /// Sent parts of a packed payload, in order.
    Packed { head: &'p [u8], second: &'p [u8; 8], elements: &'p [u8] },
    /// Data and offsets, and the memory that the buffers are in.
    Scattered { data: &'p [u8], offsets: &'p [u8], buffers: &'p [&'p [u8]] },
    /// Bytes that were elsewhere, laid out as they are sent.
    Copied(Vec<u8>),
}

/// Encodes a command's payload; `None` if no call slot carries it. If the caller vouches for all of it, nothing is
/// copied or allocated.
pub(crate) fn encode<'p>(
    data: &TransactionData,
    buffers_size: Option<u64>,
    payload: &Payload<'p>,
    caller: Caller<'p>,
) -> Option<SlotPayload<'p>> {
    match plain(data, buffers_size, payload) {
        Some(bytes) => {
            Some(SlotPayload { shape: Shape::plain(bytes.len()).ok()?, bytes: Bytes::Plain(bytes) })
        }
        None => encode_scattered(data, buffers_size, Vouched::new(*payload, caller)),
    }
}

/// Bytes of a data-only payload that fits a call slot, if the caller vouches for exactly these.
pub(crate) fn plain<'p>(
    data: &TransactionData,
    buffers_size: Option<u64>,
    payload: &Payload<'p>,
) -> Option<&'p [u8]> {
    let bytes = payload.data;
    let same = data.buffer == bytes.as_ptr() as u64 && data.data_size == bytes.len() as u64;
    (same && data.offsets_size == 0 && buffers_size.is_none() && bytes.len() <= LARGEST).then_some(bytes)
}

/// Encodes a payload with objects, or one whose bytes are elsewhere.
fn encode_scattered<'p>(
    data: &TransactionData,
    buffers_size: Option<u64>,
    vouched: Vouched<'p>,
) -> Option<SlotPayload<'p>> {
    let layout = Layout::of(data.data_size, data.offsets_size, buffers_size.unwrap_or(0))?;
    if layout.end > LARGEST as u64 || !layout.is_aligned() {
        return None;
    }
    let encoded = match (vouched.data(data), vouched.offsets(data)) {
        (Some(bytes), _) if data.offsets_size == 0 => {
            Some(SlotPayload { shape: Shape::plain(bytes.len()).ok()?, bytes: Bytes::Plain(bytes) })
        }
        (Some(bytes), Some(offsets)) => match packed(bytes, offsets, &layout, vouched) {
            Some(encoded) => Some(encoded),
            None => scattered(data, bytes, offsets, layout, vouched),
        },
        _ => copied(data, layout, vouched),
    };
    // A command may declare more buffer space than it uses: the receiver's buffer includes it (contract BUF-01).
    encoded.filter(|encoded| encoded.shape.len().next_multiple_of(ALIGN as usize) as u64 == layout.end)
}

/// Encodes a small payload that ends with a vector. `None`: it is another form, or some bytes are elsewhere.
fn packed<'p>(
    bytes: &'p [u8],
    offsets: &'p [u8],
    layout: &Layout,
    mut vouched: Vouched<'p>,
) -> Option<SlotPayload<'p>> {
    let (vector, [structure, elements]) = Vector::of(layout, bytes, offsets)?;
    let shape = Shape::packed(vector)?;
    let second = vouched.buffer(structure, STRUCTURE)?.last_chunk()?;
    let elements = vouched.buffer(elements, vector.elements)?;
    let head = &bytes[..vector.head];
    Some(SlotPayload { shape, bytes: Bytes::Packed { head, second, elements } })
}

/// Encodes a payload whose data and offsets the caller vouches for.
fn scattered<'p>(
    command: &TransactionData,
    data: &'p [u8],
    offsets: &'p [u8],
    layout: Layout,
    mut vouched: Vouched<'p>,
) -> Option<SlotPayload<'p>> {
    let mut in_place = true;
    let end = walk(Draft { layout, data, offsets }, |_, buffer| {
        in_place &= vouched.buffer(buffer.buffer, buffer.length).is_some();
        Some(())
    })?;
    if !in_place {
        return copied(command, layout, vouched);
    }
    let shape = Shape::of(&layout, end).ok()?;
    Some(SlotPayload { shape, bytes: Bytes::Scattered { data, offsets, buffers: vouched.buffers() } })
}

fn copied<'p>(data: &TransactionData, layout: Layout, mut vouched: Vouched<'p>) -> Option<SlotPayload<'p>> {
    let mut bytes = vec![0; layout.end as usize];
    let (head, buffers) = bytes.split_at_mut(layout.scattered as usize);
    let (text, offsets) = head.split_at_mut(layout.offsets as usize);
    let text = &mut text[..data.data_size as usize];
    vouched.copy(data.buffer, text).ok()?;
    vouched.copy(data.offsets, offsets).ok()?;
    let end = walk(Draft { layout, data: text, offsets }, |at, buffer| {
        let at = (at - layout.scattered) as usize;
        vouched.copy(buffer.buffer, &mut buffers[at..at + buffer.length as usize]).ok()
    })?;
    let shape =
        if data.offsets_size == 0 { Shape::plain(data.data_size as usize) } else { Shape::of(&layout, end) };
    let shape = shape.ok()?;
    bytes.truncate(shape.len());
    Some(SlotPayload { shape, bytes: Bytes::Copied(bytes) })
}

/// Visits the buffer of each object with its offset in the payload; returns the end of the last one. `None`: not
/// allowed in a call slot, or not accepted by `each`.
fn walk(mut draft: Draft<'_>, mut each: impl FnMut(u64, &BufferObject) -> Option<()>) -> Option<u64> {
    let mut walk = Walk::new(&draft.layout);
    while let Some(pointer) = walk.next_pointer(&draft) {
        let (pointer, at) = (pointer.ok()?, walk.cursor());
        walk.place(&mut draft, pointer, 0).ok()?;
        each(at, &pointer.buffer)?;
    }
    Some(walk.cursor())
}

/// View of data and offsets as sent: only the receiver rewrites them.
struct Draft<'d> {
    layout: Layout,
    data: &'d [u8],
    offsets: &'d [u8],
}

impl View for Draft<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let (part, at) = match at.checked_sub(self.layout.offsets) {
            Some(at) => (self.offsets, at),
            None => (self.data, at),
        };
        part.get(at as usize..)?.first_chunk().copied()
    }

    fn put(&mut self, _at: u64, _bytes: &[u8]) -> Option<()> {
        Some(())
    }
}

impl Source for SlotPayload<'_> {
    fn shape(&self) -> Result<Shape, ShapeError> {
        Ok(self.shape)
    }

    fn parts(&self, mut give: impl FnMut(usize, &[u8])) {
        match &self.bytes {
            Bytes::Plain(bytes) => give(0, bytes),
            _ => self.several_parts(give),
        }
    }
}

impl SlotPayload<'_> {
    fn several_parts(&self, mut give: impl FnMut(usize, &[u8])) {
        let (data, offsets, buffers) = match &self.bytes {
            Bytes::Plain(bytes) => return give(0, bytes),
            Bytes::Copied(bytes) => return give(0, bytes),
            Bytes::Packed { head, second, elements } => {
                let behind = behind_head(head.len());
                give(0, head);
                give(behind + second.len(), *second);
                return give(behind + STRUCTURE as usize, elements);
            }
            Bytes::Scattered { data, offsets, buffers } => (*data, *offsets, *buffers),
        };
        let layout = self.shape.layout();
        give(0, data);
        give(layout.offsets as usize, offsets);
        let numbers = OnceLock::new();
        let mut vouched = Vouched::new(Payload { buffers, ..Payload::default() }, Caller::Here(&numbers));
        // Accepted before, so that each buffer is found again.
        let _ = walk(Draft { layout, data, offsets }, |at, buffer| {
            give(at as usize, vouched.buffer(buffer.buffer, buffer.length)?);
            Some(())
        });
    }
}
