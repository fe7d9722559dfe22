//! Room: what a call and a reply in a lane carry beside their bytes, as values and as words.
//! Not here: where they lie (`super`).
//! Both begin with the lane's word, which is no part of the header.

use super::super::Corrupt;
use super::Shape;
use crate::embedded::protocol::objects::LINEAGE_MAX;
use crate::embedded::protocol::{Lineage, Link, ProcId, Sched, ThreadKey};

/// Bytes of a request's header without its lineage.
pub(super) const REQUEST_FIXED: usize = 48;
const LINK: usize = 12;
/// Most bytes behind them.
pub(super) const REQUEST_MORE: usize = (LINEAGE_MAX * LINK).next_multiple_of(8);
/// Bytes of a reply's header.
pub(super) const REPLY_FIXED: usize = 24;

/// Bits of the CPU's number in a request's word, which has the number of links above them.
const CPU: u32 = (1 << LINKS_AT) - 1;
const LINKS_AT: u32 = 24;

/// What a call says beside its bytes. All of it is the caller's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which node: a binding of this channel.
    pub binding: u32,
    /// Method number.
    pub code: u32,
    /// `TF_*` bits.
    pub flags: u32,
    /// How large the parts of its payload are.
    pub shape: Shape,
    /// The thread that waits.
    pub thread: ThreadKey,
    /// The CPU it runs on. A hint.
    pub cpu: u32,
    /// How it is scheduled.
    pub sched: Sched,
    /// Threads that wait for it; `None` for none, as in every call that is not nested.
    pub lineage: Option<Box<Lineage>>,
}

impl RequestHeader {
    fn links(&self) -> &[Link] {
        self.lineage.as_deref().map_or(&[], Lineage::links)
    }

    /// Bytes that it takes, a multiple of 8.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        len_with(self.links().len())
    }

    /// Its words behind the lane's, and how many bytes with that, of which `more` takes those behind the
    /// fixed part; `shape` is the argument, not the field.
    pub(super) fn encode(&self, shape: Shape, bytes: &mut [u8; REQUEST_FIXED], more: &mut [u8]) -> usize {
        let links = self.links();
        let [data_size, rest] = shape.encode();
        let words = [
            0,
            self.binding,
            self.code,
            self.flags,
            data_size,
            self.thread.slot,
            self.thread.generation,
            (self.cpu & CPU) | (links.len() as u32) << LINKS_AT,
            self.sched.policy,
            self.sched.priority as u32,
            rest,
            self.sched.nice as u32,
        ];
        put(bytes, &words);
        for (place, link) in more.chunks_exact_mut(LINK).zip(links) {
            put(place, &[link.proc.0, link.thread.slot, link.thread.generation]);
        }
        self.len()
    }

    /// Back from bytes of which [`request_len`] are there.
    pub(super) fn decode(bytes: &[u8; REQUEST_FIXED], more: &[u8]) -> Result<Self, Corrupt> {
        let word = |index| word(bytes, index);
        let shape = Shape::decode([word(4), word(10)])?;
        let mut lineage = None;
        let count = (word(7) >> LINKS_AT) as usize;
        if count > 0 {
            let mut links =
                [Link { proc: ProcId(0), thread: ThreadKey { slot: 0, generation: 0 } }; LINEAGE_MAX];
            let links = links.get_mut(..count).ok_or(Corrupt::Lineage)?;
            for (link, bytes) in links.iter_mut().zip(more.as_chunks::<LINK>().0) {
                let word = |index| self::word(bytes, index);
                let thread = ThreadKey { slot: word(1), generation: word(2) };
                *link = Link { proc: ProcId(word(0)), thread };
            }
            lineage = Some(Box::new(Lineage::from_links(links).ok_or(Corrupt::Lineage)?));
        }
        Ok(Self {
            binding: word(1),
            code: word(2),
            flags: word(3),
            shape,
            thread: ThreadKey { slot: word(5), generation: word(6) },
            cpu: word(7) & CPU,
            sched: Sched { policy: word(8), priority: word(9) as i32, nice: word(11) as i32 },
            lineage,
        })
    }
}

/// Bytes of the header whose fixed part is in `bytes`.
pub(super) fn request_len(bytes: &[u8; REQUEST_FIXED]) -> Result<usize, Corrupt> {
    match (word(bytes, 7) >> LINKS_AT) as usize {
        count @ 0..=LINEAGE_MAX => Ok(len_with(count)),
        _ => Err(Corrupt::Lineage),
    }
}

fn len_with(links: usize) -> usize {
    (REQUEST_FIXED + links * LINK).next_multiple_of(8)
}

/// What a reply says beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The reply's code.
    pub code: u32,
    /// `TF_*` bits (`TF_STATUS_CODE`).
    pub flags: u32,
    /// How large the parts of its payload are.
    pub shape: Shape,
    /// The CPU it runs on. A hint.
    pub cpu: u32,
    /// It is about to spin on this lane ([`super::Lanes::has_call`]): the caller's next call need not be
    /// marked unless it is not taken soon. A hint.
    pub watching: bool,
}

/// Bit of the reply's CPU word.
const WATCHING: u32 = 1 << 31;

impl ReplyHeader {
    /// Its words behind the lane's; `shape` is the argument, not the field.
    pub(super) fn encode(&self, shape: Shape) -> [u8; REPLY_FIXED] {
        let mut bytes = [0; REPLY_FIXED];
        let [data_size, rest] = shape.encode();
        let watching = if self.watching { WATCHING } else { 0 };
        put(&mut bytes, &[0, self.code, self.flags, data_size, rest, (self.cpu & !WATCHING) | watching]);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; REPLY_FIXED]) -> Result<Self, Corrupt> {
        let word = |index| word(bytes, index);
        Ok(Self { shape: Shape::decode([word(3), word(4)])?, ..Self::decode_failure(bytes) })
    }

    /// Of an answer that has no payload.
    pub(super) fn decode_failure(bytes: &[u8; REPLY_FIXED]) -> Self {
        let word = |index| word(bytes, index);
        Self {
            code: word(1),
            flags: word(2),
            shape: Shape::default(),
            cpu: word(5) & !WATCHING,
            watching: word(5) & WATCHING != 0,
        }
    }
}

fn put(bytes: &mut [u8], words: &[u32]) {
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
}

fn word(bytes: &[u8], index: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[index * 4..index * 4 + 4]);
    u32::from_ne_bytes(word)
}
