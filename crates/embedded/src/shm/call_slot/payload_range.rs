//! Ranges of a channel's memory that payloads occupy.
//! Not here: copying (`chunked_copy`), the rest of a call slot (`super`).

use super::header::REPLY_FIXED;
use super::{CALL_SLOTS, LARGEST, REPLY, STATE, base};

/// Offsets of the `written` counts in a call slot, one count per turn.
pub(super) const REQUEST_WRITTEN: usize = 1024;
const REPLY_WRITTEN: usize = 1152;

/// Offset of the ranges for large payloads.
const LARGE: usize = 24 << 10;
/// Bytes in a call slot for a small request or reply, header included.
pub(super) const AREA: usize = 512;
/// Number of ranges that the large requests, and the large replies, of a call slot use in turn: one is
/// prefetched ([`Ahead`](super::Ahead)) while the other is being copied.
const TURNS: u32 = 2;

/// Size of a channel's memory in bytes.
pub const SIZE: usize = LARGE + (CALL_SLOTS * 2 * TURNS) as usize * LARGEST;

const _: () = assert!(AREA < CUT_FROM, "what lies in it is not copied in chunks");

/// Smallest payload in bytes that is copied in chunks.
pub const CUT_FROM: usize = 16 << 10;

/// A readable piece of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset in the payload.
    pub at: usize,
    /// Offset in the channel's memory.
    pub from: usize,
    /// Length in bytes.
    pub len: usize,
}

/// The range of a payload.
pub(super) struct PayloadRange {
    pub(super) at: usize,
    pub(super) len: usize,
    /// Offset of the word that counts the written bytes, for a payload copied in chunks.
    pub(super) written: Option<usize>,
}

impl PayloadRange {
    /// Range of a request's `len` bytes, for call `number`. `header`: length of the header before them, which
    /// does not matter for a payload copied in chunks.
    #[inline]
    pub(super) fn request(call_slot: u32, number: u32, header: usize, len: usize) -> Self {
        let base = base(call_slot);
        match header + len <= AREA {
            true => Self { at: base + header, len, written: None },
            false => Self::beyond(len, base + REQUEST_WRITTEN + count(number), large(call_slot, 0, number)),
        }
    }

    /// Range of a reply's `len` bytes, for call `number`.
    #[inline]
    pub(super) fn reply(call_slot: u32, number: u32, len: usize) -> Self {
        let base = base(call_slot);
        match REPLY_FIXED + len <= AREA {
            true => Self { at: base + REPLY + REPLY_FIXED, len, written: None },
            false => Self::beyond(len, base + REPLY_WRITTEN + count(number), large(call_slot, 1, number)),
        }
    }

    /// The whole payload, unless it is copied in chunks.
    #[inline]
    pub(super) fn whole(&self) -> Option<Piece> {
        self.written.is_none().then_some(Piece { at: 0, from: self.at, len: self.len })
    }

    /// A range outside the call slot.
    #[inline(never)]
    fn beyond(len: usize, written: usize, at: usize) -> Self {
        Self { at, len, written: (len >= CUT_FROM).then_some(written) }
    }
}

/// The turn of a call number.
#[inline]
fn turn(number: u32) -> u32 {
    number / (STATE + 1) % TURNS
}

/// Offset of a call's count among those of its side. Each turn has its own, because a sender whose receiver
/// gave up may still count.
#[inline]
fn count(number: u32) -> usize {
    turn(number) as usize * size_of::<u32>()
}

/// Offset of the large request (`side` 0) or reply (1) of a call number.
#[inline]
pub(super) fn large(call_slot: u32, side: u32, number: u32) -> usize {
    LARGE + ((call_slot * 2 + side) * TURNS + turn(number)) as usize * LARGEST
}
