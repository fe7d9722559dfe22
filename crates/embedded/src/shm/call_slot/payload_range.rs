//! Ranges of a channel's memory that payloads occupy.
//! Not here: the rest of a call slot (`super`).

use super::header::REPLY_FIXED;
use super::{CALL_SLOTS, LARGEST, REPLY, base};

/// Offset of the ranges for large payloads.
const LARGE: usize = 24 << 10;
/// Bytes in a call slot for a small request or reply, header included.
pub(super) const AREA: usize = 512;

/// Size of a channel's memory in bytes.
pub const SIZE: usize = LARGE + CALL_SLOTS as usize * 2 * LARGEST;

/// The range of a payload in a channel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRange {
    /// Offset in the memory.
    pub at: usize,
    /// Length in bytes.
    pub len: usize,
}

impl PayloadRange {
    /// Range of a request's `len` bytes. `header`: length of the header before them.
    pub(super) fn request(call_slot: u32, header: usize, len: usize) -> Self {
        let at = if header + len <= AREA { base(call_slot) + header } else { large(call_slot, 0) };
        Self { at, len }
    }

    /// Range of a reply's `len` bytes.
    pub(super) fn reply(call_slot: u32, len: usize) -> Self {
        let is_small = REPLY_FIXED + len <= AREA;
        let at = if is_small { base(call_slot) + REPLY + REPLY_FIXED } else { large(call_slot, 1) };
        Self { at, len }
    }
}

/// Offset of a call slot's range for large requests (`side` 0) or replies (1).
pub(super) fn large(call_slot: u32, side: u32) -> usize {
    LARGE + (call_slot * 2 + side) as usize * LARGEST
}
