//! Room: what a call and a reply in a lane carry beside their bytes, as values and as words.
//! Not here: where they lie (`super`).
//! Both begin with the lane's word, which is no part of the header.

use zerocopy::IntoBytes;

use super::super::Corrupt;
use super::Shape;
use crate::embedded::protocol::objects::LINEAGE_MAX;
use crate::embedded::protocol::{Lineage, Link, ProcId, Sched, ThreadKey};

/// Bytes of a request's header without its lineage.
pub(super) const REQUEST_FIXED: usize = 48;
/// Its words behind the lane's.
pub(super) type RequestWords = [u32; REQUEST_FIXED / 4 - 1];
const LINK: usize = 12;
/// Most bytes behind them.
pub(super) const REQUEST_MORE: usize = (LINEAGE_MAX * LINK).next_multiple_of(8);
/// Bytes of a reply's header.
pub(super) const REPLY_FIXED: usize = 24;
/// Its words behind the lane's.
pub(super) type ReplyWords = [u32; REPLY_FIXED / 4 - 1];

/// Bits of the CPU's number in a request's word, which has the number of links above them.
const CPU: u32 = (1 << LINKS_AT) - 1;
const LINKS_AT: u32 = 24;

/// Bits of the policy in a request's word, which has the nice value above them.
const POLICY: u32 = (1 << NICE_AT) - 1;
const NICE_AT: u32 = 16;

/// What a call says beside its bytes. All of it is the caller's word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Its number in traces, 0 if its caller does not trace. Its reply has the next one.
    pub mark: u32,
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

    /// Its words behind the lane's; `shape` is the argument, not the field.
    #[inline]
    pub(super) fn encode(&self, shape: Shape) -> RequestWords {
        let [data_size, rest] = shape.encode();
        [
            self.binding,
            self.code,
            self.flags,
            data_size,
            self.thread.slot,
            self.thread.generation,
            (self.cpu & CPU) | (self.links().len() as u32) << LINKS_AT,
            (self.sched.policy & POLICY) | (self.sched.nice as u32) << NICE_AT,
            self.sched.priority as u32,
            rest,
            self.mark,
        ]
    }

    /// Back from those words, but for the lineage; the links of that.
    #[inline(always)]
    pub(super) fn decode(&mut self, word: impl Fn(usize) -> u32) -> Result<usize, Corrupt> {
        self.binding = word(0);
        self.code = word(1);
        self.flags = word(2);
        self.shape = Shape::decode([word(3), word(9)])?;
        self.thread = ThreadKey { slot: word(4), generation: word(5) };
        let cpu = word(6);
        self.cpu = cpu & CPU;
        let sched = word(7);
        self.sched =
            Sched { policy: sched & POLICY, priority: word(8) as i32, nice: (sched as i32) >> NICE_AT };
        self.mark = word(10);
        self.lineage = None;
        match (cpu >> LINKS_AT) as usize {
            links @ 0..=LINEAGE_MAX => Ok(links),
            _ => Err(Corrupt::Lineage),
        }
    }

    /// So many links, from the bytes behind the words.
    pub(super) fn decode_links(&mut self, count: usize, more: &[u8]) -> Result<(), Corrupt> {
        let mut links = [Link { proc: ProcId(0), thread: ThreadKey::NOBODY }; LINEAGE_MAX];
        let links = links.get_mut(..count).ok_or(Corrupt::Lineage)?;
        for (link, bytes) in links.iter_mut().zip(more.as_chunks::<LINK>().0) {
            let [proc, slot, generation] = zerocopy::transmute!(*bytes);
            *link = Link { proc: ProcId(proc), thread: ThreadKey { slot, generation } };
        }
        self.lineage = Some(Box::new(Lineage::from_links(links).ok_or(Corrupt::Lineage)?));
        Ok(())
    }
}

/// What follows them.
pub(super) fn encode_links(links: &[Link]) -> [u8; REQUEST_MORE] {
    let mut more = [0; REQUEST_MORE];
    for (place, link) in more.chunks_exact_mut(LINK).zip(links) {
        place.copy_from_slice([link.proc.0, link.thread.slot, link.thread.generation].as_bytes());
    }
    more
}

/// Bytes of a header with so many links.
pub(super) fn len_with(links: usize) -> usize {
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
    pub(super) fn encode(&self, shape: Shape) -> ReplyWords {
        let [data_size, rest] = shape.encode();
        let watching = if self.watching { WATCHING } else { 0 };
        [self.code, self.flags, data_size, rest, (self.cpu & !WATCHING) | watching]
    }

    pub(super) fn decode(words: &ReplyWords) -> Result<Self, Corrupt> {
        let [_, _, data_size, rest, _] = *words;
        Ok(Self { shape: Shape::decode([data_size, rest])?, ..Self::decode_failure(words) })
    }

    /// Of an answer that has no payload.
    pub(super) fn decode_failure(&[code, flags, _, _, cpu]: &ReplyWords) -> Self {
        let watching = cpu & WATCHING != 0;
        Self { code, flags, shape: Shape::default(), cpu: cpu & !WATCHING, watching }
    }
}
