//! Room: payloads of a few scattered buffers, as most calls of HIDL are: one pass that says yes, or nothing.
//! Not here: any others, and which rule is broken (`super::Walk`).
//! Facts: contract OBJ-01, OBJ-15 to OBJ-18.
//!
//! What passes here passes the walk with the same places and fix-ups (`fuzz::scattered` holds them to it);
//! what does not pass is the walk's to judge. So each rule may be stricter here: no parent but the buffer
//! just before.

use abi::codes::object;
use abi::layout::BufferObject;

use super::{ALIGN, BUFFER_SIZE, Layout, POINTER};

/// As many buffers as most payloads have.
pub(in crate::embedded) const FEW: usize = 3;

/// One of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::embedded) struct Piece {
    /// Where its object stands.
    pub(in crate::embedded) at: u64,
    /// The address that its sender gave.
    pub(in crate::embedded) buffer: u64,
    /// Bytes of it.
    pub(in crate::embedded) length: u64,
    /// Where they go in the payload.
    pub(in crate::embedded) place: u64,
    /// Where in the payload a pointer to them stands, at a multiple of 4; 0, where no buffer is, for nowhere.
    pub(in crate::embedded) pointer: u64,
}

/// Looks at a payload's objects, if they are few: fills in `pieces`, one for each, and returns where the
/// last buffer ends. `data` and `offsets` are as long as `layout` says. `None`: more of them, others, or
/// such as the walk is to judge.
#[inline]
pub(in crate::embedded) fn few(
    layout: &Layout,
    data: &[u8],
    offsets: &[u8],
    pieces: &mut [Piece; FEW],
) -> Option<u64> {
    let offsets = offsets.as_chunks::<8>().0;
    let pieces = pieces.get_mut(..offsets.len())?;
    let (mut behind, mut cursor) = (0, layout.scattered);
    let mut before = Piece::default();
    for (index, (piece, offset)) in pieces.iter_mut().zip(offsets).enumerate() {
        let at = u64::from_ne_bytes(*offset);
        if at < behind || !at.is_multiple_of(4) {
            return None;
        }
        let object = data.get(at as usize..)?.first_chunk::<BUFFER_SIZE>()?;
        let BufferObject { kind, flags, buffer, length, parent, parent_offset } =
            zerocopy::transmute!(*object);
        if kind != object::PTR || length > layout.end - cursor {
            return None;
        }
        let mut pointer = 0;
        if flags & object::BUFFER_FLAG_HAS_PARENT != 0 {
            // An object at 0 is no parent.
            let is_parent = index != 0 && parent == index as u64 - 1 && before.at != 0;
            let fits = before.length >= POINTER && parent_offset <= before.length - POINTER;
            if !is_parent || !fits || !parent_offset.is_multiple_of(4) {
                return None;
            }
            pointer = before.place + parent_offset;
        }
        before = Piece { at, buffer, length, place: cursor, pointer };
        *piece = before;
        behind = at + BUFFER_SIZE as u64;
        // Not beyond the end, which is a multiple, too.
        cursor += length.next_multiple_of(ALIGN);
    }
    Some(cursor)
}
