//! Fuzz entry: payloads of scattered buffers made of choices, most of them nearly valid; and any bytes as one.
//! Not here: sending them (`channel`, `commands`).

use abi::Payload;
use abi::codes::object;
use abi::layout::BufferObject;
use zerocopy::IntoBytes;

use super::source::Source;
use crate::payload::packed::{STRUCTURE, Vector};
use crate::payload::scatter::{self, Layout, View, Walk};

/// Source bytes of the buffers.
static BYTES: [u8; 512] = [7; 512];

/// A payload in parts.
#[derive(Debug)]
pub(super) struct Scattered {
    data: Vec<u8>,
    offsets: Vec<u64>,
    buffers_size: u64,
    /// Whether the caller vouches for the bytes.
    vouched: bool,
}

impl Scattered {
    pub(super) fn new(source: &mut Source<'_>) -> Self {
        let count = source.choose(5);
        let mut made = Self {
            data: vec![1; source.choose(4) * 4],
            offsets: Vec::new(),
            buffers_size: 0,
            vouched: source.byte() < 128,
        };
        // One in three ends with a vector of two buffers.
        let vector = count == 2 && source.byte() < 85;
        for index in 0..count {
            let mut object = pointer(source, count);
            if vector && source.byte() < 250 {
                object.flags = if index == 0 { 0 } else { object::BUFFER_FLAG_HAS_PARENT };
                (object.parent, object.parent_offset) = (0, 0);
                object.length = if index == 0 { STRUCTURE } else { object.length };
            }
            let at = if source.byte() < 250 { made.data.len() as u64 } else { source.word() };
            made.offsets.push(at);
            made.data.extend_from_slice(object.as_bytes());
            made.buffers_size += object.length.min(512).next_multiple_of(8);
        }
        match source.byte() {
            0..220 => {}
            220..240 => made.buffers_size += 64,
            _ => made.buffers_size = source.word(),
        }
        made
    }

    /// The command's transaction data, and the parts that the caller vouches for.
    pub(super) fn with<T>(&self, then: impl FnOnce(Payload<'_>, Payload<'_>) -> T) -> T {
        let payload = Payload {
            data: &self.data,
            offsets: &self.offsets,
            buffers_size: Some(self.buffers_size),
            buffers: &[&BYTES[..256], &BYTES[256..]],
        };
        then(payload, if self.vouched { payload } else { Payload::default() })
    }
}

fn pointer(source: &mut Source<'_>, count: usize) -> BufferObject {
    let parented = source.byte() < 150;
    let start = source.choose(256);
    let at = if source.byte() < 245 { BYTES[start..].as_ptr() as u64 } else { source.word() };
    BufferObject {
        kind: if source.byte() < 245 { object::PTR } else { object::FDA },
        flags: if parented { object::BUFFER_FLAG_HAS_PARENT } else { 0 },
        buffer: at,
        length: if source.byte() < 240 { source.choose(64) as u64 } else { source.word() },
        parent: if source.byte() < 240 { source.choose(count) as u64 } else { source.word() },
        parent_offset: if source.byte() < 220 { source.choose(6) as u64 * 8 } else { source.word() },
    }
}

/// A payload's bytes at the receiver, or at the sender, where nothing is rewritten.
struct Bytes {
    layout: Layout,
    bytes: Vec<u8>,
    arrives: bool,
}

impl View for Bytes {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        assert!(at + N as u64 <= self.layout.scattered, "only objects and offsets are looked at");
        self.bytes.get(at as usize..)?.first_chunk().copied()
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()> {
        let end = at + bytes.len() as u64;
        let in_object = end <= self.layout.data_size;
        let in_buffer = self.arrives && at >= self.layout.scattered && end <= self.layout.end;
        assert!(in_object || in_buffer || !self.arrives, "written at {at}, outside of {:?}", self.layout);
        if self.arrives {
            self.bytes[at as usize..end as usize].copy_from_slice(bytes);
        }
        Some(())
    }
}

const BASE: u64 = 0x7000_0000;

/// Fixes up a payload at both ends of a call slot, which must agree and write nowhere else.
///
/// # Panics
/// If they disagree, or a pointer leaves the payload.
pub(super) fn any(source: &mut Source<'_>) {
    let sent = Scattered::new(source);
    let sizes = (sent.data.len() as u64, sent.offsets.len() as u64 * 8, (sent.buffers_size % 1024) & !7);
    let Some(layout) = Layout::of(sizes.0, sizes.1, sizes.2) else { return };
    let mut bytes = sent.data;
    bytes.resize(layout.offsets as usize, 0);
    bytes.extend_from_slice(sent.offsets.as_bytes());
    for _ in 0..source.choose(4) {
        let at = source.word() as usize % bytes.len().max(1);
        bytes.get_mut(at..at + 1).into_iter().flatten().for_each(|byte| *byte = source.byte());
    }
    bytes.resize(layout.end as usize, 3);
    let unpacked = unpacked(Bytes { layout, bytes: bytes.clone(), arrives: true });
    let [sent, arrived] = [false, true].map(|arrives| {
        let mut view = Bytes { layout, bytes: bytes.clone(), arrives };
        let mut walk = Walk::new(&layout);
        let mut outcome: Result<(), i32> = Ok(());
        while let (Ok(()), Some(next)) = (outcome, walk.next_pointer(&view)) {
            outcome = next.and_then(|pointer| walk.place(&mut view, pointer, if arrives { BASE } else { 0 }));
        }
        (outcome.map(|()| walk.cursor()), view)
    });
    assert_eq!(sent.0, arrived.0, "the two ends disagree");
    if arrived.0.is_ok() {
        pointers(&arrived.1);
    }
    if let Some((end, view)) = unpacked {
        assert_eq!(arrived.0, Ok(end), "it was packed");
        assert!(arrived.1.bytes == view.bytes, "fixed up otherwise");
    }
}

/// A receiver's payload from a packed vector, if this is one: everything that was not sent is rebuilt.
fn unpacked(mut view: Bytes) -> Option<(u64, Bytes)> {
    let layout = view.layout;
    let (data, offsets) = view.bytes[..layout.scattered as usize].split_at(layout.offsets as usize);
    let (vector, _) = Vector::of(&layout, &data[..layout.data_size as usize], offsets)?;
    let structure = layout.scattered as usize;
    let address = BASE + layout.scattered;
    let objects = vector.objects_at(address);
    view.bytes[vector.head..layout.data_size as usize].copy_from_slice(objects.as_bytes());
    let words = vector.offsets_at(address);
    view.bytes[layout.offsets as usize..structure + 8].copy_from_slice(words.as_bytes());
    Some((layout.scattered + STRUCTURE + vector.elements.next_multiple_of(8), view))
}

/// Checks that buffers follow one another, and that each parent holds its child's address.
fn pointers(view: &Bytes) {
    let at = |index| view.offset(index).and_then(|at| view.pointer(at)).expect("looked at before");
    let mut next = BASE + view.layout.scattered;
    for index in 0..view.layout.offsets_size / 8 {
        let buffer = at(index);
        assert_eq!(buffer.buffer, next);
        next += buffer.length.next_multiple_of(8);
        if buffer.flags & object::BUFFER_FLAG_HAS_PARENT != 0 {
            let place = scatter::inside(&at(buffer.parent), BASE, buffer.parent_offset) as usize;
            assert_eq!(view.bytes[place..place + 8], buffer.buffer.to_ne_bytes());
        }
    }
    assert!(next <= BASE + view.layout.end);
}
