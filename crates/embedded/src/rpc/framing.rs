//! Messages on a client's socket as bytes: the handshake (hello and reception), requests framed with their thread,
//! and answers that carry descriptors.
//! Not here: the requests themselves (`protocol`), sending and receiving (`connection`, `broker::serve`).
//!
//! All numbers are in native byte order: both ends run on one machine.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::codec::Message;
use super::protocol::{ProcId, RECORD_SIZE, Request, ThreadKey, VERSION};

/// First bytes of a client's first message. They tell a foreign program from an old version.
const MAGIC: [u8; 8] = *b"bpembed\0";

/// Longest name of a context, in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// Whether a context may have this name: a valid name of a binderfs file without the characters that separate the
/// words of an address or the lines of a text.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |c: char| !c.is_control() && !['/', ':'].contains(&c);
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain) && ![".", ".."].contains(&name)
}

/// Fixed part of a hello; the context's name follows.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HelloHeader {
    magic: [u8; 8],
    version: u32,
    call_slots: u32,
    name_len: u64,
    pid: u32,
    unused: u32,
}

/// Largest size of a hello, in bytes.
pub(crate) const HELLO_MAX: usize = size_of::<HelloHeader>() + NAME_MAX;

/// First message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Name of the context.
    pub(crate) context: String,
    /// Whether the client uses channels.
    pub(crate) call_slots: bool,
    /// The process that the client speaks for; 0: itself.
    pub(crate) pid: u32,
}

/// Error: a first message is not a valid hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHello {
    /// The client uses another version of this protocol.
    Version(u32),
    /// The message is not a hello.
    Garbage,
}

impl Hello {
    /// Encodes the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (call_slots, name_len) = (self.call_slots.into(), self.context.len() as u64);
        let (magic, version, pid) = (MAGIC, VERSION, self.pid);
        let header = HelloHeader { magic, version, call_slots, name_len, pid, unused: 0 };
        [header.as_bytes(), self.context.as_bytes()].concat()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadHello> {
        let (header, name) = HelloHeader::read_from_prefix(bytes).map_err(|_| BadHello::Garbage)?;
        if header.magic != MAGIC {
            return Err(BadHello::Garbage);
        }
        if header.version != VERSION {
            return Err(BadHello::Version(header.version));
        }
        let context = std::str::from_utf8(name).ok().filter(|name| is_name(name));
        let context = context.filter(|name| name.len() as u64 == header.name_len);
        Ok(Self {
            context: context.ok_or(BadHello::Garbage)?.to_owned(),
            call_slots: header.call_slots != 0,
            pid: header.pid,
        })
    }
}

/// Bytes of the memories that come with a welcome, in this order: inbox, outbox, doorbells.
pub(crate) type Sizes = [u64; 3];

/// Answer of the broker to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reception {
    /// The client is admitted.
    Welcome {
        /// Number of the client.
        proc: ProcId,
        /// Pid of the client, from the broker's kernel.
        pid: u32,
        /// Bytes of the memories whose descriptors come with this message.
        sizes: Sizes,
    },
    /// The client is not admitted.
    Refused {
        /// Errno of the failed system call; 0 if none failed.
        errno: i32,
        /// Failed step and remedy.
        why: String,
    },
}

/// Fixed part of a reception; the reason of a refusal follows.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ReceptionHeader {
    magic: [u8; 8],
    version: u32,
    refused: u32,
    /// Number of the client, or the errno of a refusal.
    number: u32,
    pid: u32,
    sizes: Sizes,
    unused: [u64; 2],
}

/// Longest reason of a refusal, in bytes.
const REASON_MAX: usize = 1024;
/// Largest size of a reception, in bytes.
pub(crate) const RECEPTION_MAX: usize = size_of::<ReceptionHeader>() + REASON_MAX;

impl Reception {
    /// Encodes the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (refused, number, pid, sizes, why) = match self {
            Self::Welcome { proc, pid, sizes } => (0, proc.0, *pid, *sizes, ""),
            Self::Refused { errno, why } => {
                (1, *errno as u32, 0, Sizes::default(), &why[..why.floor_char_boundary(REASON_MAX)])
            }
        };
        let (magic, version, unused) = (MAGIC, VERSION, [0; 2]);
        let header = ReceptionHeader { magic, version, refused, number, pid, sizes, unused };
        [header.as_bytes(), why.as_bytes()].concat()
    }

    /// Decodes a reception. The version is not checked, so that a client understands a refusal because of its
    /// version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, why) = ReceptionHeader::read_from_prefix(bytes).ok()?;
        let ReceptionHeader { magic, refused, number, pid, sizes, .. } = header;
        (magic == MAGIC).then(|| match refused {
            0 => Self::Welcome { proc: ProcId(number), pid, sizes },
            _ => Self::Refused { errno: number as i32, why: String::from_utf8_lossy(why).into_owned() },
        })
    }
}

/// A framed request: thread, sequence number, request.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Frame {
    thread: [u32; 2],
    seq: u32,
    unused: u32,
    record: [u8; RECORD_SIZE],
}

/// Bytes of a framed request.
pub(crate) const FRAME: usize = size_of::<Frame>();

/// Frames a request.
pub(crate) fn frame(thread: ThreadKey, seq: u32, request: &Request) -> [u8; FRAME] {
    let thread = [thread.slot, thread.generation];
    zerocopy::transmute!(Frame { thread, seq, unused: 0, record: request.encode() })
}

/// Decodes a framed request; `None` if the bytes are no request.
pub(crate) fn unframe(bytes: &[u8]) -> Option<(ThreadKey, u32, Request)> {
    let Frame { thread: [slot, generation], seq, record, .. } = Frame::read_from_bytes(bytes).ok()?;
    Some((ThreadKey { slot, generation }, seq, Request::decode(&record).ok()?))
}

/// Bytes of an answer on the socket; its descriptors are ancillary data.
pub(crate) const FETCHED: usize = 8;

/// Encodes an answer on the socket: its errno (0 for none) and number of descriptors.
pub(crate) fn fetched(errno: i32, descriptors: u32) -> [u8; FETCHED] {
    zerocopy::transmute!([errno as u32, descriptors])
}

pub(crate) fn unfetched(bytes: &[u8]) -> Option<(i32, u32)> {
    let [errno, descriptors]: [u32; 2] = zerocopy::transmute!(*bytes.as_array::<FETCHED>()?);
    Some((errno as i32, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_comes_back_and_a_stranger_or_an_old_version_is_recognised() {
        let hello = Hello { context: "hwbinder".into(), call_slots: true, pid: 77 };
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
        let welcome = Reception::Welcome { proc: ProcId(7), pid: 8, sizes: [1, 2, u64::MAX] };
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
