//! Room: the messages on a client's socket as bytes: hello and welcome when it joins, requests with
//! their thread, answers that carry descriptors.
//! Not here: the requests themselves (`protocol`), sending and receiving (`line`, `broker`).
//!
//! All numbers are of this machine's byte order: both ends run on it.

use super::protocol::codec::Message;
use super::protocol::{ProcId, RECORD_SIZE, Request, ThreadKey, VERSION};

/// What a client's first message begins with, so that strangers are told apart from old versions.
const MAGIC: [u8; 8] = *b"bpembed\0";

/// Longest name of a context, in bytes.
pub(super) const NAME_MAX: usize = 255;

/// Whether a context may be called so: as a file of binderfs, but for what separates words of an address
/// and lines of a text.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| !c.is_control() && !['/', ':'].contains(&c);
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain) && ![".", ".."].contains(&name)
}

const HELLO_FIXED: usize = 32;
/// Bytes of the longest hello.
pub(super) const HELLO_MAX: usize = HELLO_FIXED + NAME_MAX;

/// What a client says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Name of the context.
    pub(crate) context: String,
    /// Bytes of receiving area; 0 for none.
    pub(crate) map_size: usize,
    /// Whether it takes part in channels.
    pub(crate) lanes: bool,
}

/// Why a first message is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHello {
    /// Of another version of this protocol.
    Version(u32),
    /// No hello at all.
    Garbage,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Hello {
    /// Its bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_ne_bytes());
        bytes.extend(u32::from(self.lanes).to_ne_bytes());
        bytes.extend((self.map_size as u64).to_ne_bytes());
        bytes.extend((self.context.len() as u64).to_ne_bytes());
        bytes.extend(self.context.as_bytes());
        bytes
    }

    /// Back from bytes.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, BadHello> {
        if !bytes.starts_with(&MAGIC) {
            return Err(BadHello::Garbage);
        }
        match word(bytes, 8).ok_or(BadHello::Garbage)? {
            VERSION => Self::fields(bytes).ok_or(BadHello::Garbage),
            other => Err(BadHello::Version(other)),
        }
    }

    fn fields(bytes: &[u8]) -> Option<Self> {
        let name = bytes.get(HELLO_FIXED..)?;
        let fits = name.len() as u64 == long(bytes, 24)?;
        Some(Self {
            context: std::str::from_utf8(name).ok().filter(|name| fits && is_name(name))?.to_owned(),
            map_size: usize::try_from(long(bytes, 16)?).ok()?,
            lanes: word(bytes, 12)? != 0,
        })
    }
}

/// Bytes of the memories that come with a welcome, in this order: inbox, outbox, doorbells, arena
/// (0: none, and no descriptor).
pub(super) type Sizes = [u64; 4];

/// How the broker answers a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reception {
    /// Come in.
    Welcome {
        /// What the client is called.
        proc: ProcId,
        /// Its pid, as the broker's kernel says it.
        pid: u32,
        /// Of the memories that come with this.
        sizes: Sizes,
    },
    /// Not possible.
    Refused {
        /// 0 if no system call failed.
        errno: i32,
        /// What was tried and what to do.
        why: String,
    },
}

const RECEPTION_FIXED: usize = 64;
/// Bytes of the longest reception.
pub(super) const RECEPTION_MAX: usize = RECEPTION_FIXED + 1024;

impl Reception {
    /// Its bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_ne_bytes());
        match self {
            Self::Welcome { proc, pid, sizes } => {
                for number in [0, proc.0, *pid] {
                    bytes.extend(number.to_ne_bytes());
                }
                sizes.iter().for_each(|size| bytes.extend(size.to_ne_bytes()));
                bytes.resize(RECEPTION_FIXED, 0);
            }
            Self::Refused { errno, why } => {
                bytes.extend(1u32.to_ne_bytes());
                bytes.extend(errno.to_ne_bytes());
                bytes.resize(RECEPTION_FIXED, 0);
                let end = why.floor_char_boundary(RECEPTION_MAX - RECEPTION_FIXED);
                bytes.extend(&why.as_bytes()[..end]);
            }
        }
        bytes
    }

    /// Back from bytes; the version may differ, so that a refusal because of it is understood.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        match word(bytes, 12)? {
            0 => {
                let mut sizes = Sizes::default();
                for (index, size) in sizes.iter_mut().enumerate() {
                    *size = long(bytes, 24 + 8 * index)?;
                }
                Some(Self::Welcome { proc: ProcId(word(bytes, 16)?), pid: word(bytes, 20)?, sizes })
            }
            _ => {
                let why = String::from_utf8_lossy(bytes.get(RECEPTION_FIXED..)?).into_owned();
                Some(Self::Refused { errno: i32::from_ne_bytes(word(bytes, 16)?.to_ne_bytes()), why })
            }
        }
    }
}

/// Bytes of a request with its head.
pub(super) const FRAME: usize = 16 + RECORD_SIZE;

/// A request as it travels: who asks, which of its questions, and what.
pub(super) fn frame(thread: ThreadKey, seq: u32, request: &Request) -> [u8; FRAME] {
    let mut bytes = [0; FRAME];
    let (head, record) = bytes.split_at_mut(16);
    for (place, number) in head.chunks_exact_mut(4).zip([thread.slot, thread.generation, seq, 0]) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    record.copy_from_slice(&request.encode());
    bytes
}

/// Back from bytes; `None` for what is no request.
pub(super) fn unframe(bytes: &[u8]) -> Option<(ThreadKey, u32, Request)> {
    let record = bytes.get(16..FRAME).filter(|_| bytes.len() == FRAME)?;
    let thread = ThreadKey { slot: word(bytes, 0)?, generation: word(bytes, 4)? };
    Some((thread, word(bytes, 8)?, Request::decode(record).ok()?))
}

/// Bytes of an answer that comes on the socket: its descriptors travel beside it.
pub(super) const FETCHED: usize = 8;

/// Such an answer: its errno (0 for none) and how many descriptors it has.
pub(super) fn fetched(errno: i32, descriptors: u32) -> [u8; FETCHED] {
    let mut bytes = [0; FETCHED];
    bytes[..4].copy_from_slice(&errno.to_ne_bytes());
    bytes[4..].copy_from_slice(&descriptors.to_ne_bytes());
    bytes
}

/// Back from bytes.
pub(super) fn unfetched(bytes: &[u8]) -> Option<(i32, u32)> {
    let errno = i32::from_ne_bytes(word(bytes, 0)?.to_ne_bytes());
    Some((errno, word(bytes, 4).filter(|_| bytes.len() == FETCHED)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_comes_back_and_a_stranger_or_an_old_version_is_recognised() {
        let hello = Hello { context: "hwbinder".into(), map_size: 1 << 20, lanes: true };
        let bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello.clone()));
        let mut old = bytes.clone();
        old[8] ^= 0x40;
        assert_eq!(Hello::decode(&old), Err(BadHello::Version(VERSION ^ 0x40)));
        for bad in [&bytes[..bytes.len() - 1], &bytes[..10], b"", &[0; 100]] {
            assert_eq!(Hello::decode(bad), Err(BadHello::Garbage), "{} bytes", bad.len());
        }
        for context in ["", &"x".repeat(NAME_MAX + 1)] {
            let bytes = Hello { context: context.into(), ..hello.clone() }.encode();
            assert_eq!(Hello::decode(&bytes), Err(BadHello::Garbage));
        }
    }

    #[test]
    fn receptions_come_back() {
        let welcome = Reception::Welcome { proc: ProcId(7), pid: 8, sizes: [1, 2, u64::MAX, 0] };
        assert_eq!(Reception::decode(&welcome.encode()), Some(welcome));
        let refused = Reception::Refused { errno: -3, why: "no room".into() };
        assert_eq!(Reception::decode(&refused.encode()), Some(refused));
        let long = Reception::Refused { errno: 0, why: "é".repeat(2000) }.encode();
        assert!(long.len() <= RECEPTION_MAX && Reception::decode(&long).is_some());
        assert_eq!(Reception::decode(&long[..20]), None);
    }

    #[test]
    fn requests_and_fetched_answers_come_back() {
        let thread = ThreadKey { slot: 1, generation: 2 };
        let bytes = frame(thread, 3, &Request::TakeFds { transaction: 4 });
        assert_eq!(unframe(&bytes), Some((thread, 3, Request::TakeFds { transaction: 4 })));
        assert_eq!(unframe(&bytes[..FRAME - 1]), None);
        assert_eq!(unframe(&[0; FRAME]), None);
        assert_eq!(unfetched(&fetched(-5, 9)), Some((-5, 9)));
        assert_eq!(unfetched(&[0; 7]), None);
    }
}
