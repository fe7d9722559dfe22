//! Headers of a call and a reply in a call slot, as values and as words. Both follow the call slot's word,
//! which is not part of the header.
//! Not here: their position (`super`).

use zerocopy::IntoBytes;

use super::super::Corrupt;
use super::Shape;
use crate::rpc::objects::LINEAGE_MAX;
use crate::rpc::protocol::{Lineage, Link, ProcId, Sched, ThreadKey};

/// Size of a request's header without its lineage, in bytes.
pub(super) const REQUEST_FIXED: usize = 48;
/// Words of a request's header after the call slot's word.
pub(super) type RequestWords = [u32; REQUEST_FIXED / 4 - 1];
const LINK: usize = 12;
/// Largest encoded lineage in bytes.
pub(super) const REQUEST_MORE: usize = (LINEAGE_MAX * LINK).next_multiple_of(8);
/// Size of a reply's header in bytes.
pub(super) const REPLY_FIXED: usize = 24;
/// Words of a reply's header after the call slot's word.
pub(super) type ReplyWords = [u32; REPLY_FIXED / 4 - 1];

/// Bits of the CPU number in a request's word; the number of links is above them.
const CPU: u32 = (1 << LINKS_AT) - 1;
const LINKS_AT: u32 = 24;

/// Bits of the policy in a request's word; the nice and the priority are above them, with their signs.
const POLICY: u32 = (1 << NICE_AT) - 1;
const NICE_AT: u32 = 8;
const PRIORITY_AT: u32 = 16;

/// Header of a call. Every field is an unchecked claim of the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// The called node, as a binding of this channel.
    pub binding: u32,
    /// The method's code.
    pub code: u32,
    /// `TF_*` bits.
    pub flags: u32,
    /// Sizes of the payload's parts.
    pub shape: Shape,
    /// The calling thread.
    pub thread: ThreadKey,
    /// The calling thread's CPU. A hint.
    pub cpu: u32,
    /// The calling thread's scheduling.
    pub sched: Sched,
    /// The call's number in trace events, 0 if its caller does not trace. The reply has the next number.
    pub mark: u32,
    /// Records that the callee's inbox had been given when the call was published (`Doorbells::records`).
    pub behind: u32,
    /// The threads that wait for the call; `None` for a call that is not nested.
    pub lineage: Option<Box<Lineage>>,
}

impl RequestHeader {
    fn links(&self) -> &[Link] {
        self.lineage.as_deref().map_or(&[], Lineage::links)
    }

    /// Encoded size in bytes, a multiple of 8.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        len_with(self.links().len())
    }

    /// Encodes the fixed part after the call slot's word. Uses the argument `shape`, not the field.
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
            encode_sched(self.sched),
            self.behind,
            rest,
            self.mark,
        ]
    }

    /// Decodes the fixed part; returns the number of links in the lineage.
    pub(super) fn decode(&mut self, word: impl Fn(usize) -> u32) -> Result<usize, Corrupt> {
        self.binding = word(0);
        self.code = word(1);
        self.flags = word(2);
        self.shape = Shape::decode([word(3), word(9)])?;
        self.thread = ThreadKey { slot: word(4), generation: word(5) };
        let cpu = word(6);
        self.cpu = cpu & CPU;
        self.sched = decode_sched(word(7));
        self.behind = word(8);
        self.mark = word(10);
        self.lineage = None;
        match (cpu >> LINKS_AT) as usize {
            links @ 0..=LINEAGE_MAX => Ok(links),
            _ => Err(Corrupt::Lineage),
        }
    }

    /// Decodes `count` links of the lineage from the bytes after the fixed part.
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

/// Packs a thread's scheduling into a word: the kernel's policies, nice values and priorities fit.
fn encode_sched(Sched { policy, priority, nice }: Sched) -> u32 {
    (policy & POLICY) | u32::from(nice as u8) << NICE_AT | (priority as u32) << PRIORITY_AT
}

fn decode_sched(word: u32) -> Sched {
    let nice = (word >> NICE_AT) as u8 as i8;
    Sched { policy: word & POLICY, priority: (word as i32) >> PRIORITY_AT, nice: nice.into() }
}

/// Encodes the lineage.
pub(super) fn encode_links(links: &[Link]) -> [u8; REQUEST_MORE] {
    let mut more = [0; REQUEST_MORE];
    for (place, link) in more.chunks_exact_mut(LINK).zip(links) {
        place.copy_from_slice([link.proc.0, link.thread.slot, link.thread.generation].as_bytes());
    }
    more
}

/// Size in bytes of a header with this many links.
pub(super) fn len_with(links: usize) -> usize {
    (REQUEST_FIXED + links * LINK).next_multiple_of(8)
}

/// Header of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyHeader {
    /// The reply's code.
    pub code: u32,
    /// `TF_*` bits (`TF_STATUS_CODE`).
    pub flags: u32,
    /// Sizes of the payload's parts.
    pub shape: Shape,
    /// The replying thread's CPU. A hint.
    pub cpu: u32,
}

impl ReplyHeader {
    /// Encodes the header after the call slot's word. Uses the argument `shape`, not the field.
    pub(super) fn encode(&self, shape: Shape) -> ReplyWords {
        let [data_size, rest] = shape.encode();
        [self.code, self.flags, data_size, rest, self.cpu]
    }

    pub(super) fn decode(words: &ReplyWords) -> Result<Self, Corrupt> {
        let [_, _, data_size, rest, _] = *words;
        Ok(Self { shape: Shape::decode([data_size, rest])?, ..Self::decode_failure(words) })
    }

    /// Decodes the header of an answer without a payload.
    pub(super) fn decode_failure(&[code, flags, _, _, cpu]: &ReplyWords) -> Self {
        Self { code, flags, shape: Shape::default(), cpu }
    }
}
