//! Room: messages as bytes: a number for the kind, then every field as words of 8 bytes.
//! Not here: what they mean (`super`).
//! Nothing allocates; decoding takes any bytes and never panics.

use abi::layout::{ExtendedError, FlatBinderObject, NodeInfoForRef};

use super::objects::{LINEAGE_MAX, Lineage, Link, RETURNS_MAX, Returns, Sched};
use super::{Answers, Delivery, ProcId, ThreadKey, Transact, TransactKind};

/// Words of the longest message: its kind and 63 fields.
pub const WORDS: usize = 64;

/// Bytes of an encoded message.
pub const RECORD_SIZE: usize = WORDS * 8;

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bytes that are no message of this protocol")
    }
}

impl std::error::Error for Malformed {}

/// Takes the words of a message one after another.
#[derive(Debug)]
pub struct Writer {
    words: [u64; WORDS],
    len: usize,
}

impl Writer {
    fn new() -> Self {
        Self { words: [0; WORDS], len: 0 }
    }

    fn put(&mut self, word: u64) {
        // No message is longer; a unit test encodes the longest of each kind.
        self.words[self.len] = word;
        self.len += 1;
    }

    fn finish(self) -> [u8; RECORD_SIZE] {
        let mut bytes = [0; RECORD_SIZE];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

/// Gives the words of a message one after another.
#[derive(Debug)]
pub struct Reader<'b> {
    bytes: &'b [u8],
}

impl Reader<'_> {
    fn take(&mut self) -> Result<u64, Malformed> {
        let (word, rest) = self.bytes.split_first_chunk::<8>().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(u64::from_ne_bytes(*word))
    }
}

/// A value as words.
pub trait Field: Sized {
    /// Appends its words.
    fn put(&self, to: &mut Writer);
    /// Takes them back.
    ///
    /// # Errors
    /// Words that no value has.
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// A message with its kind.
pub trait Message: Sized {
    /// Its bytes.
    fn encode(&self) -> [u8; RECORD_SIZE];
    /// Back from bytes; what is behind the message is not looked at.
    ///
    /// # Errors
    /// An unknown kind, too few bytes, words that no value has.
    fn decode(bytes: &[u8]) -> Result<Self, Malformed>;
}

/// Declares an enum of messages with their numbers, and how they are encoded.
macro_rules! messages {
    ($(#[$doc:meta])* pub enum $name:ident {
        $($(#[$vdoc:meta])* $number:literal $variant:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? },)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "a variant's text says what its fields are")]
        #[allow(clippy::large_enum_variant, reason = "messages pass through once and must not allocate")]
        pub enum $name { $($(#[$vdoc])* $variant { $($(#[$fdoc])* $field: $ty),* },)* }

        impl $crate::embedded::protocol::codec::Message for $name {
            fn encode(&self) -> [u8; $crate::embedded::protocol::RECORD_SIZE] {
                $crate::embedded::protocol::codec::encode_with(|to| match self {
                    $(Self::$variant { $($field),* } => {
                        $crate::embedded::protocol::codec::Field::put(&($number as u64), to);
                        $($crate::embedded::protocol::codec::Field::put($field, to);)*
                    })*
                })
            }

            fn decode(bytes: &[u8]) -> Result<Self, $crate::embedded::protocol::Malformed> {
                let mut from = $crate::embedded::protocol::codec::reader(bytes);
                let from = &mut from;
                let kind: u64 = $crate::embedded::protocol::codec::Field::take(from)?;
                Ok(match kind {
                    $($number => Self::$variant {
                        $($field: $crate::embedded::protocol::codec::Field::take(from)?),*
                    },)*
                    _ => return Err($crate::embedded::protocol::Malformed),
                })
            }
        }
    };
}
pub(crate) use messages;

pub(crate) fn encode_with(write: impl FnOnce(&mut Writer)) -> [u8; RECORD_SIZE] {
    let mut to = Writer::new();
    write(&mut to);
    to.finish()
}

pub(crate) fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader { bytes }
}

/// Fields of one integer word.
macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Field for $ty {
            fn put(&self, to: &mut Writer) {
                // Signed values travel sign-extended, and `try_from` below takes them back.
                to.put(*self as i128 as u64);
            }
            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let word = from.take()?;
                <$ty>::try_from(word).or_else(|_| <$ty>::try_from(word as i64)).map_err(|_| Malformed)
            }
        }
    )*};
}
integers!(u64 u32 i32);

impl Field for bool {
    fn put(&self, to: &mut Writer) {
        to.put(u64::from(*self));
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match from.take()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, to: &mut Writer) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<const N: usize> Field for [u64; N] {
    fn put(&self, to: &mut Writer) {
        self.iter().for_each(|word| to.put(*word));
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut all = [0; N];
        for word in &mut all {
            *word = from.take()?;
        }
        Ok(all)
    }
}

/// Structures as their fields in order.
macro_rules! structures {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Field for $name {
            fn put(&self, to: &mut Writer) {
                $(self.$field.put(to);)*
            }
            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self { $($field: Field::take(from)?),* })
            }
        }
    )*};
}
structures! {
    ThreadKey { slot, generation }
    Sched { policy, priority, nice }
    Link { proc, thread }
    ExtendedError { id, command, param }
    FlatBinderObject { kind, flags, binder, cookie }
    NodeInfoForRef { handle, strong_count, weak_count, reserved1, reserved2, reserved3 }
    Transact {
        kind, code, flags, data_size, offsets_size, buffers_size, gathered, fault_object, fault_errno,
        data_fault, frees, sched, lineage
    }
    Delivery {
        transaction, to_thread, from, ptr, cookie, node_flags, code, flags, sender_pid, sender_euid, buffer,
        data_size, offsets_size, extra_size, security_context, fds, sched, lineage
    }
}

impl Field for ProcId {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Field::take(from).map(Self)
    }
}

impl Field for Lineage {
    // A link is two words here: process, then slot and generation.
    fn put(&self, to: &mut Writer) {
        (self.links().len() as u64).put(to);
        for link in self.links() {
            link.proc.put(to);
            to.put(u64::from(link.thread.slot) << 32 | u64::from(link.thread.generation));
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = usize::try_from(from.take()?).map_err(|_| Malformed)?;
        if len > LINEAGE_MAX {
            return Err(Malformed);
        }
        let mut links = [Link { proc: ProcId(0), thread: ThreadKey::NOBODY }; LINEAGE_MAX];
        for link in &mut links[..len] {
            link.proc = Field::take(from)?;
            let word = from.take()?;
            link.thread = ThreadKey { slot: (word >> 32) as u32, generation: word as u32 };
        }
        Self::from_links(&links[..len]).ok_or(Malformed)
    }
}

impl Field for Returns {
    fn put(&self, to: &mut Writer) {
        (self.as_slice().len() as u64).put(to);
        for (word, payload) in self.as_slice() {
            word.put(to);
            payload.put(to);
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = from.take()?;
        if len > RETURNS_MAX as u64 {
            return Err(Malformed);
        }
        let mut returns = Self::default();
        for _ in 0..len {
            let word = Field::take(from)?;
            returns.push(word, Field::take(from)?);
        }
        Ok(returns)
    }
}

impl Field for TransactKind {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::Call { handle } => {
                to.put(0);
                handle.put(to);
            }
            Self::Reply { transaction } => {
                to.put(1);
                transaction.put(to);
            }
            Self::LaneReply { channel, lane, thread, call_flags } => {
                to.put(2);
                channel.put(to);
                lane.put(to);
                thread.put(to);
                call_flags.put(to);
            }
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match from.take()? {
            0 => Self::Call { handle: Field::take(from)? },
            1 => Self::Reply { transaction: Field::take(from)? },
            2 => Self::LaneReply {
                channel: Field::take(from)?,
                lane: Field::take(from)?,
                thread: Field::take(from)?,
                call_flags: Field::take(from)?,
            },
            _ => return Err(Malformed),
        })
    }
}

impl Field for Answers {
    fn put(&self, to: &mut Writer) {
        match self {
            Self::Transaction(number) => {
                to.put(0);
                number.put(to);
            }
            Self::Lane { channel, lane } => {
                to.put(1);
                channel.put(to);
                lane.put(to);
            }
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match from.take()? {
            0 => Self::Transaction(Field::take(from)?),
            1 => Self::Lane { channel: Field::take(from)?, lane: Field::take(from)? },
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Item, Request};
    use super::*;

    fn long_lineage() -> Lineage {
        (0..20).fold(Lineage::EMPTY, |chain, n| {
            chain.behind(Link { proc: ProcId(n), thread: ThreadKey { slot: n + 1, generation: n + 2 } })
        })
    }

    #[test]
    fn the_longest_messages_come_back_as_they_went() {
        let thread = ThreadKey { slot: 3, generation: 9 };
        let transact = Transact {
            kind: TransactKind::LaneReply { channel: 1, lane: 2, thread, call_flags: 0x10 },
            code: u32::MAX,
            flags: 0x10,
            data_size: u64::MAX,
            offsets_size: 8,
            buffers_size: 16,
            gathered: 16,
            fault_object: u32::MAX,
            fault_errno: -7,
            data_fault: 14,
            frees: Some(u64::MAX - 7),
            sched: Sched { policy: 1, priority: 99, nice: -20 },
            lineage: long_lineage(),
        };
        let request = Request::Transact { transact };
        assert_eq!(Request::decode(&request.encode()), Ok(request));
        let delivery = Delivery {
            transaction: 1,
            to_thread: Some(thread),
            from: Link { proc: ProcId(4), thread },
            ptr: u64::MAX,
            cookie: 1,
            node_flags: 0x813,
            code: 5,
            flags: 0x11,
            sender_pid: 77,
            sender_euid: 0,
            buffer: 8,
            data_size: 64,
            offsets_size: 8,
            extra_size: 16,
            security_context: Some(72),
            fds: 2,
            sched: Sched { policy: 0, priority: 19, nice: 19 },
            lineage: long_lineage(),
        };
        let item = Item::Deliver { delivery };
        assert_eq!(Item::decode(&item.encode()), Ok(item));
        let mut returns = Returns::default();
        while returns.push(u32::MAX, [1, 2]) {}
        let item = Item::Answer {
            thread,
            seq: 1,
            errno: 22,
            outcome: 3,
            sender_stops: true,
            transaction: 4,
            error: ExtendedError { id: 1, command: 2, param: -22 },
            words: [1, 2, 3, 4],
            returns,
        };
        assert_eq!(Item::decode(&item.encode()), Ok(item));
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        assert_eq!(Request::decode(&[]), Err(Malformed));
        assert_eq!(Request::decode(&99u64.to_ne_bytes()), Err(Malformed));
        let mut bytes = Request::FreeBuffer { offset: 8 }.encode();
        assert!(Request::decode(&bytes[..15]).is_err(), "cut inside a field");
        bytes = Request::SpamDetection { enable: true }.encode();
        bytes[8] = 2;
        assert_eq!(Request::decode(&bytes), Err(Malformed), "neither true nor false");
    }

    #[test]
    fn a_chain_too_long_keeps_its_nearest() {
        let chain = long_lineage();
        assert_eq!(chain.links().len(), LINEAGE_MAX);
        assert_eq!(chain.links()[0].proc, ProcId(19));
        assert_eq!(chain.find(ProcId(4)), Some(ThreadKey { slot: 5, generation: 6 }));
        assert_eq!(chain.find(ProcId(3)), None);
    }
}
