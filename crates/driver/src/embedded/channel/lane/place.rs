//! Room: where the bytes of a payload lie.
//! Not here: how they get there (`pour`), what else a lane holds (`super`).

use super::header::REPLY_FIXED;
use super::{CUT_FROM, LANES, LARGEST, Piece, REPLY, STATE, base};

/// Where the `written` counts of a lane lie in it, one for each turn.
pub(super) const REQUEST_WRITTEN: usize = 1024;
const REPLY_WRITTEN: usize = 1152;

/// Where the areas of large payloads begin.
const LARGE: usize = 24 << 10;
/// Bytes of a lane's own area for a request or a reply, header included.
pub(super) const AREA: usize = 512;
/// Areas that a lane's large requests, and its large replies, take by turns: one is got ready
/// ([`Ahead`](super::Ahead)) while the other's bytes are on their way.
const TURNS: u32 = 2;

/// Bytes of a channel's memory.
pub const SIZE: usize = LARGE + (LANES * 2 * TURNS) as usize * LARGEST;

const _: () = assert!(AREA < CUT_FROM, "what lies in it is not poured");

/// Where the bytes of a payload lie.
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) len: usize,
    /// The word that counts what is written, for a payload that is poured.
    pub(super) written: Option<usize>,
}

impl Place {
    /// Of `len` bytes behind a header of `header`, in the request of the call of this number. The header does
    /// not matter for one that is poured.
    #[inline]
    pub(super) fn request(lane: u32, number: u32, header: usize, len: usize) -> Self {
        let base = base(lane);
        match header + len <= AREA {
            true => Self { at: base + header, len, written: None },
            false => Self::beyond(len, base + REQUEST_WRITTEN + count(number), large(lane, 0, number)),
        }
    }

    /// Of `len` bytes, in the reply to the call of this number.
    #[inline]
    pub(super) fn reply(lane: u32, number: u32, len: usize) -> Self {
        let base = base(lane);
        match REPLY_FIXED + len <= AREA {
            true => Self { at: base + REPLY + REPLY_FIXED, len, written: None },
            false => Self::beyond(len, base + REPLY_WRITTEN + count(number), large(lane, 1, number)),
        }
    }

    /// All of it, if it is not poured.
    #[inline]
    pub(super) fn whole(&self) -> Option<Piece> {
        self.written.is_none().then_some(Piece { at: 0, from: self.at, len: self.len })
    }

    /// Not in the lane's own area.
    #[inline(never)]
    fn beyond(len: usize, written: usize, at: usize) -> Self {
        Self { at, len, written: (len >= CUT_FROM).then_some(written) }
    }
}

/// Whose turn the call of this number is.
#[inline]
fn turn(number: u32) -> u32 {
    number / (STATE + 1) % TURNS
}

/// Where its count lies, from those of its side. One of its own, as a sender whose receiver gave up may still count.
#[inline]
fn count(number: u32) -> usize {
    turn(number) as usize * size_of::<u32>()
}

/// Where large requests (`side` 0) or replies (1) of the call of this number lie.
#[inline]
pub(super) fn large(lane: u32, side: u32, number: u32) -> usize {
    LARGE + ((lane * 2 + side) * TURNS + turn(number)) as usize * LARGEST
}
