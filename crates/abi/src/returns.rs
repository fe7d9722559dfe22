//! Decodes a stream of `BR_*` returns. One place knows the offsets; callers only match.
//! Not here: acting on a return (`ipc`).
//! Facts: `enum binder_driver_return_protocol` in `linux/android/binder.h`; contract WR-03, WR-09.

use std::fmt;

use zerocopy::FromBytes;

use crate::codes::{ReturnWord, br};
use crate::command::TransactionFlags;
use crate::ids::{BufferAddress, Cookie, NodePtr};
use crate::layout::{FrozenStateInfo, PtrCookie, TransactionData, TransactionDataSecctx};

/// A delivered transaction or reply: where its buffer lies and who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The node called; 0 in a reply and for the context manager.
    pub node: NodePtr,
    /// The node's cookie.
    pub cookie: Cookie,
    /// The method number.
    pub code: u32,
    /// `TF_*` bits as sent.
    pub flags: TransactionFlags,
    /// The caller's process id in the reader's namespace; 0 for oneway, replies and invisible ones.
    pub sender_pid: i32,
    /// The sending thread's effective uid.
    pub sender_euid: u32,
    /// Start of the buffer; must go back with `BC_FREE_BUFFER`.
    pub buffer: BufferAddress,
    /// Bytes of data at `buffer`.
    pub data_size: u64,
    /// Address of the offsets array (meaningless when `offsets_size` is 0, contract TX-04).
    pub offsets: u64,
    /// Bytes of offsets, 8 per object.
    pub offsets_size: u64,
    /// Address of the sender's security context, if the node asked for it.
    pub security_context: Option<u64>,
}

impl Delivery {
    #[inline]
    fn new(data: &TransactionData, security_context: Option<u64>) -> Self {
        Self {
            node: NodePtr(data.target),
            cookie: Cookie(data.cookie),
            code: data.code,
            flags: TransactionFlags(data.flags),
            sender_pid: data.sender_pid,
            sender_euid: data.sender_euid,
            buffer: BufferAddress(data.buffer),
            data_size: data.data_size,
            offsets: data.offsets,
            offsets_size: data.offsets_size,
            security_context,
        }
    }

    /// Decodes the delivery that `bytes` begin with, its word included; `None` for any other return
    /// and for one that is cut short.
    #[inline]
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (word, payload) = bytes.split_first_chunk::<4>()?;
        Self::behind(u32::from_ne_bytes(*word), payload)
    }

    /// Decodes the payload of a word.
    #[inline]
    fn behind(word: u32, payload: &[u8]) -> Option<Self> {
        match word {
            br::TRANSACTION | br::REPLY => {
                let (data, _) = TransactionData::read_from_prefix(payload).ok()?;
                Some(Self::new(&data, None))
            }
            br::TRANSACTION_SEC_CTX => {
                let (with, _) = TransactionDataSecctx::read_from_prefix(payload).ok()?;
                Some(Self::new(&with.transaction_data, Some(with.secctx)))
            }
            _ => None,
        }
    }
}

/// One return from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Return {
    /// `BR_NOOP`
    Noop,
    /// `BR_SPAWN_LOOPER`: the pool wants another thread.
    SpawnLooper,
    /// `BR_TRANSACTION` or `BR_TRANSACTION_SEC_CTX`: a call to serve.
    Transaction(Delivery),
    /// `BR_REPLY`: the answer to the caller's own call.
    Reply(Delivery),
    /// `BR_TRANSACTION_COMPLETE`
    TransactionComplete,
    /// `BR_ONEWAY_SPAM_SUSPECT`: complete, but flooding.
    OnewaySpamSuspect,
    /// `BR_TRANSACTION_PENDING_FROZEN`: complete, but the receiver is frozen.
    TransactionPendingFrozen,
    /// `BR_DEAD_REPLY`
    DeadReply,
    /// `BR_FAILED_REPLY`
    FailedReply,
    /// `BR_FROZEN_REPLY`
    FrozenReply,
    /// `BR_INCREFS`: first weak reference from elsewhere.
    Increfs(NodePtr, Cookie),
    /// `BR_ACQUIRE`: first strong reference from elsewhere.
    Acquire(NodePtr, Cookie),
    /// `BR_RELEASE`: last strong reference gone.
    Release(NodePtr, Cookie),
    /// `BR_DECREFS`: last weak reference gone.
    Decrefs(NodePtr, Cookie),
    /// `BR_DEAD_BINDER`
    DeadBinder(Cookie),
    /// `BR_CLEAR_DEATH_NOTIFICATION_DONE`
    ClearDeathNotificationDone(Cookie),
    /// `BR_FROZEN_BINDER`: the registration's cookie, and whether the owner is now frozen.
    FrozenBinder(Cookie, bool),
    /// `BR_CLEAR_FREEZE_NOTIFICATION_DONE`
    ClearFreezeNotificationDone(Cookie),
    /// `BR_ERROR`: an errno.
    Error(i32),
    /// A word this decoder does not know, skipped by its size field.
    Unknown(ReturnWord),
}

/// Why a return stream cannot be decoded; offsets past this point mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Byte offset of the broken return.
    pub at: usize,
    /// Its word, if there were four bytes for one.
    pub word: Option<ReturnWord>,
    /// Bytes that stand behind the word.
    pub have: usize,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, word, have } = self;
        match word {
            Some(word) => write!(
                f,
                "return stream ends inside {word} at byte {at}: {have} payload bytes of {}",
                word.payload_len()
            ),
            None => write!(f, "return stream ends inside a word at byte {at}: {have} bytes of 4"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Iterates over the returns in a read buffer; ends after the first error.
#[derive(Clone, Debug)]
pub struct Returns<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Returns<'b> {
    /// Decodes what the driver filled in (`read_consumed` bytes).
    #[must_use]
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next return, in bytes.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    #[cold]
    fn fail(&mut self, error: DecodeError) -> Option<Result<Return, DecodeError>> {
        self.at = self.bytes.len();
        Some(Err(error))
    }
}

fn node(payload: &[u8]) -> Option<(NodePtr, Cookie)> {
    let (pair, _) = PtrCookie::read_from_prefix(payload).ok()?;
    Some((NodePtr(pair.ptr), Cookie(pair.cookie)))
}

fn cookie(payload: &[u8]) -> Option<Cookie> {
    Some(Cookie(u64::from_ne_bytes(*payload.first_chunk()?)))
}

#[inline(always)]
fn decode(word: u32, payload: &[u8]) -> Option<Return> {
    Some(match word {
        br::NOOP => Return::Noop,
        br::TRANSACTION_COMPLETE => Return::TransactionComplete,
        br::REPLY => Return::Reply(Delivery::behind(word, payload)?),
        br::TRANSACTION | br::TRANSACTION_SEC_CTX => Return::Transaction(Delivery::behind(word, payload)?),
        br::SPAWN_LOOPER => Return::SpawnLooper,
        br::ONEWAY_SPAM_SUSPECT => Return::OnewaySpamSuspect,
        br::TRANSACTION_PENDING_FROZEN => Return::TransactionPendingFrozen,
        br::DEAD_REPLY => Return::DeadReply,
        br::FAILED_REPLY => Return::FailedReply,
        br::FROZEN_REPLY => Return::FrozenReply,
        br::INCREFS => node(payload).map(|(ptr, cookie)| Return::Increfs(ptr, cookie))?,
        br::ACQUIRE => node(payload).map(|(ptr, cookie)| Return::Acquire(ptr, cookie))?,
        br::RELEASE => node(payload).map(|(ptr, cookie)| Return::Release(ptr, cookie))?,
        br::DECREFS => node(payload).map(|(ptr, cookie)| Return::Decrefs(ptr, cookie))?,
        br::DEAD_BINDER => Return::DeadBinder(cookie(payload)?),
        br::CLEAR_DEATH_NOTIFICATION_DONE => Return::ClearDeathNotificationDone(cookie(payload)?),
        br::FROZEN_BINDER => {
            let state = FrozenStateInfo::read_from_bytes(payload).ok()?;
            Return::FrozenBinder(Cookie(state.cookie), state.is_frozen != 0)
        }
        br::CLEAR_FREEZE_NOTIFICATION_DONE => Return::ClearFreezeNotificationDone(cookie(payload)?),
        br::ERROR => Return::Error(i32::from_ne_bytes(*payload.first_chunk()?)),
        unknown => Return::Unknown(ReturnWord(unknown)),
    })
}

impl Iterator for Returns<'_> {
    type Item = Result<Return, DecodeError>;

    // Inlined, most of a big value that is matched at once is never built.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let at = self.at;
        let Some((word, behind)) = rest.split_first_chunk::<4>() else {
            return self.fail(DecodeError { at, word: None, have: rest.len() });
        };
        let word = ReturnWord(u32::from_ne_bytes(*word));
        let decoded = behind.get(..word.payload_len()).and_then(|payload| decode(word.0, payload));
        let Some(decoded) = decoded else {
            return self.fail(DecodeError { at, word: Some(word), have: behind.len() });
        };
        self.at += 4 + word.payload_len();
        Some(Ok(decoded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn stream(parts: &[(u32, &[u8])]) -> Vec<u8> {
        parts.iter().flat_map(|(word, payload)| [&word.to_ne_bytes()[..], payload].concat()).collect()
    }

    #[test]
    fn a_usual_answer() {
        let data = TransactionData { sender_euid: 3, data_size: 16, buffer: 0x1000, ..Default::default() };
        let bytes = stream(&[(br::NOOP, &[]), (br::TRANSACTION_COMPLETE, &[]), (br::REPLY, data.as_bytes())]);
        let got: Vec<_> = Returns::new(&bytes).map(|item| item.expect("well formed")).collect();
        assert_eq!(got[..2], [Return::Noop, Return::TransactionComplete]);
        let Return::Reply(reply) = got[2] else { panic!("not a reply: {:?}", got[2]) };
        assert_eq!(Delivery::decode(&bytes[8..]), Some(reply));
        assert_eq!(Delivery::decode(&bytes), None, "a filler first");
        assert_eq!(Delivery::decode(&bytes[8..bytes.len() - 1]), None, "cut short");
        assert_eq!((reply.sender_euid, reply.data_size, reply.buffer), (3, 16, BufferAddress(0x1000)));
    }

    #[test]
    fn the_same_number_with_another_size_is_another_return() {
        let with = TransactionDataSecctx { secctx: 77, ..Default::default() };
        let bytes = stream(&[(br::TRANSACTION_SEC_CTX, with.as_bytes())]);
        let Some(Ok(Return::Transaction(call))) = Returns::new(&bytes).next() else { panic!("not a call") };
        assert_eq!(call.security_context, Some(77));
    }

    #[test]
    fn unknown_words_are_skipped_by_their_size() {
        let unknown = 0x8008_72ff;
        let bytes = stream(&[(unknown, &[0; 8]), (br::NOOP, &[])]);
        let got: Vec<_> = Returns::new(&bytes).collect();
        assert_eq!(got, [Ok(Return::Unknown(ReturnWord(unknown))), Ok(Return::Noop)]);
    }

    #[test]
    fn a_stream_cut_anywhere_ends_in_one_error() {
        let bytes = stream(&[(br::NOOP, &[]), (br::REPLY, &[0; 64])]);
        for cut in 0..bytes.len() {
            let items: Vec<_> = Returns::new(&bytes[..cut]).collect();
            let errors = items.iter().filter(|item| item.is_err()).count();
            assert_eq!(errors, usize::from(cut != 0 && cut != 4), "cut at {cut}");
            assert!(items.iter().rev().skip(1).all(Result::is_ok), "an error must be last, cut at {cut}");
        }
    }
}
