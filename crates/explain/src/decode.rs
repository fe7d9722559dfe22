//! Meaning of the driver's return words and errnos: the checks that can have failed, and the next step.
//! Not here: which were seen (`read`), sentences about them (`find`).
//! Facts: the contract's items that each row names; `binder.c` of Linux 3.18 to 7.2, `thread.rs` and `transaction.rs` of 7.2.

use abi::codes::br;

use crate::system::{Driver, Hint, Refusal, Sort};

pub(crate) const DEAD_REPLY: u32 = br::DEAD_REPLY;
pub(crate) const FAILED_REPLY: u32 = br::FAILED_REPLY;
pub(crate) const FROZEN_REPLY: u32 = br::FROZEN_REPLY;

/// The driver's name of a word, such as `BR_DEAD_REPLY`.
pub(crate) fn name_of(word: u32) -> Option<&'static str> {
    br::ALL.iter().find(|(_, known)| *known == word).map(|(name, _)| *name)
}

/// The word of a name.
pub(crate) fn word_of(name: &str) -> Option<u32> {
    br::ALL.iter().find(|(known, _)| *known == name).map(|(_, word)| *word)
}

/// The number of an errno's name, positive.
pub(crate) fn errno_of(name: &str) -> Option<i32> {
    (1..200).find(|number| sys::errno::name(*number) == Some(name))
}

/// A name of an errno, or its number.
pub(crate) fn errno_name(errno: i32) -> String {
    sys::errno::name(errno.abs()).map_or_else(|| format!("errno {}", errno.abs()), str::to_owned)
}

/// A break of the driver's rules, by words of its line.
pub(crate) struct Misuse {
    words: &'static str,
    pub(crate) why: &'static str,
    pub(crate) item: &'static str,
}

const fn misuse_of(words: &'static str, why: &'static str, item: &'static str) -> Misuse {
    Misuse { words, why, item }
}

/// Lines of the C and the Rust driver about a caller's own error. The first that fits is meant.
pub(crate) const MISUSES: &[Misuse] = &[
    misuse_of(
        "cannot find target node",
        "the target is gone: handle 0 has no context manager, or the called object's process is dead",
        "TX-07",
    ),
    misuse_of(
        "transaction to invalid handle",
        "it called a handle that it does not have, or holds only weakly",
        "TX-08",
    ),
    misuse_of(
        "context manager from process owning it",
        "the context manager's own process called handle 0",
        "CTX-05",
    ),
    misuse_of("reply transaction with no transaction stack", "it replied without a call to answer", "TX-16"),
    misuse_of("reply transaction with bad target", "its caller is no longer in that call", "TX-17"),
    misuse_of(
        "reply transaction with bad transaction stack",
        "it replied to a call that another thread serves",
        "TX-16",
    ),
    misuse_of(
        "new transaction with bad transaction stack",
        "the thread began a call while it waits for a reply",
        "TX-13",
    ),
    misuse_of(
        "new transaction not",
        "the thread began a call before it read one that was given to it",
        "TX-15",
    ),
    misuse_of(
        "invalid data ptr",
        "the data cannot be read: a wrong address, or memory that was freed",
        "OBJ-01",
    ),
    misuse_of("invalid offsets ptr", "the offsets or a scattered buffer cannot be read", "OBJ-01"),
    misuse_of("invalid offsets size", "the size of the offsets is no multiple of 8", "OBJ-02"),
    misuse_of("unaligned buffers size", "the size of the scattered buffers is no multiple of 8", "OBJ-02"),
    misuse_of(
        "invalid offset",
        "an offset is out of order, outside the data, or no object is there",
        "OBJ-01",
    ),
    misuse_of("invalid object type", "an object has an unknown type", "OBJ-01"),
    misuse_of(
        "invalid parent",
        "a scattered buffer or descriptor array names no earlier buffer as its parent",
        "OBJ-17",
    ),
    misuse_of(
        "out-of-order buffer fixup",
        "scattered buffers are patched in another order than that of their offsets",
        "OBJ-17",
    ),
    misuse_of(
        "validate_parent_fixup",
        "scattered buffers are patched in another order than that of their offsets, or past their parent's end",
        "OBJ-17",
    ),
    misuse_of(
        "too large buffer",
        "scattered buffers are larger than the space that the command asks for",
        "OBJ-15",
    ),
    misuse_of("does not allow fds", "it sent a descriptor to an object that takes none", "OBJ-09"),
    misuse_of("invalid fd", "it sent a number that is no open descriptor", "OBJ-10"),
    misuse_of(
        "cookie mismatch",
        "it sent an object's address with another cookie: the object was freed and its memory used again",
        "OBJ-05",
    ),
    misuse_of(
        "transaction with invalid handle",
        "it passed on a handle of which it has no count of that strength",
        "OBJ-07",
    ),
    misuse_of("weak ref as strong", "it used a weak handle as a strong one", "OBJ-07"),
    misuse_of(
        "tried to acquire reference to desc",
        "the context manager was replaced while it held the old one's handle 0",
        "REF-07",
    ),
    misuse_of(
        "refcount change on invalid ref",
        "it changed the count of a handle that it does not have",
        "REF-03",
    ),
    misuse_of("no such ref", "it changed the count of a handle that it does not have", "REF-03"),
    misuse_of("invalid decrement on ref", "it gave back more counts of a handle than it had", "REF-03"),
    misuse_of("tried to decrement", "it gave back more counts of a handle than it had", "REF-03"),
    misuse_of("BC_FREE_BUFFER", "it freed a buffer that it does not have, or freed one twice", "BUF-05"),
    misuse_of(
        "BC_REGISTER_LOOPER called",
        "a thread entered the pool without being asked, or twice",
        "LP-05",
    ),
    misuse_of("BC_ENTER_LOOPER called", "a thread entered the pool twice", "LP-05"),
    misuse_of(
        "death notification already set",
        "it asked twice for the death notice of one handle",
        "DTH-02",
    ),
    misuse_of(
        "death notification",
        "it asked for or cleared a death notice of a handle that has none",
        "DTH-01",
    ),
    misuse_of(
        "DEATH_NOTIFICATION invalid ref",
        "it asked for the death notice of a handle that it does not have",
        "DTH-01",
    ),
    misuse_of("BC_DEAD_BINDER_DONE", "it acknowledged a death notice that it did not get", "DTH-05"),
    misuse_of("_DONE", "it acknowledged counts of a node that it was not asked for", "REF-11"),
    misuse_of(
        "SET_CONTEXT_MGR already set",
        "a second context manager was refused: another service manager serves this context",
        "CTX-01",
    ),
    misuse_of("CONTEXT_MGR bad uid", "a context manager of another user was refused", "CTX-02"),
    misuse_of(
        "failed to get security context",
        "the called object asks for security contexts, and the kernel has no source of them",
        "OBJ-22",
    ),
    misuse_of("error while translating object", "an object in the data could not be passed on", "OBJ-01"),
    misuse_of("frozen process or thread", "the target is frozen", "FRZ-01"),
    misuse_of("dead process or thread", "the target died while it was called", "TX-11"),
    misuse_of("reply target not found", "the thread that waits for this reply is gone", "TX-18"),
];

/// The misuse that a line is about, as an index in [`MISUSES`].
pub(crate) fn misuse(text: &str) -> Option<usize> {
    MISUSES.iter().position(|misuse| text.contains(misuse.words))
}

/// A check that can have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) why: &'static str,
    pub(crate) item: &'static str,
}

/// Word, errno, and checks with the contract's items.
type Row = (u32, i32, &'static [(&'static str, &'static str)]);

/// Checks by the driver's word and errno (positive, 0 for none), the likeliest first.
const CHECKS: &[Row] = &[
    (
        DEAD_REPLY,
        22,
        &[
            ("handle 0 has no context manager: no service manager runs in this context", "TX-07"),
            ("the process of the called object is gone; the caller still holds its handle", "TX-09"),
        ],
    ),
    (
        DEAD_REPLY,
        3,
        &[
            ("the receiver is dying: its area is unmapped", "OPN-10"),
            ("the receiver opened the device and never mapped its area", "OPN-09"),
        ],
    ),
    (
        DEAD_REPLY,
        0,
        &[
            ("the called process or thread ended while it was called, or before it replied", "TX-10"),
            ("it ended with the call still in its queue", "TX-11"),
            ("the thread that waited for this reply ended", "TX-18"),
        ],
    ),
    (FROZEN_REPLY, 0, &[("the called process is frozen: calls are refused until it is thawed", "FRZ-01")]),
    (
        FAILED_REPLY,
        1,
        &[
            ("it sends a descriptor to an object, or in a reply to a caller, that takes none", "OBJ-09"),
            ("the security module (SELinux) forbids this call, object or file", "OBJ-23"),
        ],
    ),
    (
        FAILED_REPLY,
        2,
        &[
            ("it called a handle that it does not have (Rust driver)", "TX-08"),
            ("it passed on a handle that it does not have (Rust driver)", "OBJ-07"),
        ],
    ),
    (FAILED_REPLY, 3, &[("the receiver's area is unmapped: it is dying, or unmapped it", "OPN-10")]),
    (FAILED_REPLY, 9, &[("it sent a number that is no open descriptor", "OBJ-10")]),
    (
        FAILED_REPLY,
        12,
        &[("the kernel had no memory for the transaction or for pages of the receiver's area", "BUF-01")],
    ),
    (
        FAILED_REPLY,
        14,
        &[("the data, the offsets or a scattered buffer cannot be read: a wrong address or size", "OBJ-01")],
    ),
    (
        FAILED_REPLY,
        22,
        &[
            ("it called a handle that it does not have or holds only weakly", "TX-08"),
            ("an object in the data is malformed: its offset, type or order", "OBJ-01"),
            ("it passed on a handle of which it has no count", "OBJ-07"),
            ("it sent an object's address with another cookie: freed and used again", "OBJ-05"),
            ("scattered buffers name a wrong parent, or are patched out of order", "OBJ-17"),
            ("scattered buffers are larger than the space that the command asks for", "OBJ-15"),
            ("the size of the offsets or of the scattered buffers is no multiple of 8", "OBJ-02"),
            ("the context manager's process called handle 0", "CTX-05"),
            ("it replied without a call to answer", "TX-16"),
        ],
    ),
    (FAILED_REPLY, 24, &[("the receiver can open no more descriptors", "OBJ-12")]),
    (
        FAILED_REPLY,
        28,
        &[
            (
                "the receiver's area has no gap for it: buffers that it has not freed fill the area, or it is larger than the area",
                "BUF-04",
            ),
            ("oneway calls fill the receiver's half for them", "OW-06"),
        ],
    ),
    (
        FAILED_REPLY,
        71,
        &[
            ("the thread began a call while it waits for a reply", "TX-13"),
            ("it replied without a call to answer", "TX-16"),
            ("it began a call before it read one that was given to it", "TX-15"),
        ],
    ),
    (
        br::TRANSACTION_PENDING_FROZEN,
        0,
        &[("a oneway call waits until the frozen process is thawed", "OW-09")],
    ),
    (
        br::ONEWAY_SPAM_SUSPECT,
        0,
        &[("the sender holds much of the receiver's half for oneway calls", "OW-07")],
    ),
];

/// The checks that can have refused a transaction, the likeliest first; one if a line of the driver says which.
pub(crate) fn candidates(refusal: &Refusal) -> Vec<Candidate> {
    let of = |(why, item): &(&'static str, &'static str)| Candidate { why, item };
    let errno = refusal.errno.map(i32::abs);
    let rows = CHECKS
        .iter()
        .filter(|(word, number, _)| *word == refusal.word && errno.is_none_or(|errno| errno == *number));
    let mut all: Vec<Candidate> = rows.flat_map(|(_, _, checks)| checks.iter().map(of)).collect();
    all.retain(|check| fits(check.item, refusal));
    match refusal.hint {
        // "Cannot find target node" is written for both.
        Some(Hint::Misuse(which)) if MISUSES[which].item != "TX-07" => {
            let Misuse { why, item, .. } = &MISUSES[which];
            all = vec![Candidate { why, item }];
        }
        Some(Hint::NoSpace(_)) => all.retain(|check| check.item == "BUF-04"),
        Some(Hint::NoOnewaySpace(_)) => all.retain(|check| check.item == "OW-06"),
        Some(Hint::NoMapping) => all.retain(|check| check.item.starts_with("OPN")),
        // The half for them is full before the area is.
        _ if refusal.sort == Sort::Oneway => all.sort_by_key(|check| check.item == "BUF-04"),
        _ => {}
    }
    all
}

/// Further items that describe a refusal.
pub(crate) fn related(refusal: &Refusal) -> &'static [&'static str] {
    match (refusal.sort, refusal.word) {
        (Sort::Reply, FAILED_REPLY) => &["TX-17"],
        (_, FROZEN_REPLY) => &["TX-22"],
        _ => &[],
    }
}

/// Code of the ping with which programs look for the context manager.
const PING: u32 = u32::from_be_bytes(*b"_PNG");

/// Whether a check applies to what is known of a transaction.
fn fits(item: &str, refusal: &Refusal) -> bool {
    let to_manager = match refusal.handle {
        Some(handle) => Some(handle == 0),
        None => (refusal.code == Some(PING)).then_some(true),
    };
    match item {
        "TX-07" => to_manager != Some(false) && refusal.sort != Sort::Reply,
        "TX-09" => to_manager != Some(true) && refusal.sort != Sort::Reply,
        "TX-10" | "TX-11" => refusal.sort != Sort::Reply,
        "TX-18" => refusal.sort == Sort::Reply || refusal.sort == Sort::Unknown,
        "CTX-05" => {
            to_manager != Some(false)
                && refusal.sort != Sort::Reply
                && (refusal.to == 0 || refusal.to == refusal.from.pid)
        }
        // With a receiver the handle was found.
        "TX-08" => refusal.handle != Some(0) && refusal.sort != Sort::Reply && refusal.to == 0,
        // The C driver gives EPROTO for it.
        "TX-16" if refusal.errno == Some(-22) => refusal.driver == Driver::Rust && refusal.to == 0,
        "TX-16" => refusal.sort != Sort::Call && refusal.sort != Sort::Oneway,
        "TX-13" | "TX-15" => refusal.sort != Sort::Reply && refusal.sort != Sort::Oneway,
        "OW-06" => refusal.sort != Sort::Call && refusal.sort != Sort::Reply,
        // Without offsets there is no object.
        "OBJ-05" | "OBJ-07" | "OBJ-09" | "OBJ-10" | "OBJ-12" | "OBJ-15" | "OBJ-17" => {
            refusal.size.is_none_or(|(_, offsets)| offsets > 0 && offsets % 8 == 0)
        }
        "OBJ-02" => refusal.size.is_none_or(|(_, offsets)| offsets > 0),
        "OBJ-01" => {
            refusal.errno != Some(-22)
                || refusal.size.is_none_or(|(_, offsets)| offsets > 0 && offsets % 8 == 0)
        }
        _ => true,
    }
}

/// Returns the next step after a failure, by the item of its likeliest check.
pub(crate) fn next_step(item: &str) -> &'static str {
    match item {
        "TX-07" => {
            "start the context's service manager, or wait for it; `binderperf doctor` says which contexts have one"
        }
        "TX-09" | "TX-10" | "TX-11" | "OPN-10" => {
            "look in the log why the called process ended; look the service up again: one that came back is a new object"
        }
        "TX-18" => {
            "look in the log why the caller ended; the driver drops the reply, and the service need do nothing"
        }
        "OPN-09" => "let the receiver map its area before it registers or passes on an object",
        "FRZ-01" | "TX-22" => "find who freezes it (on Android the cached-apps freezer), or call it oneway",
        "BUF-04" => {
            "send less at once (a file or shared memory for large data), and see who holds the receiver's buffers: `binderperf explain` on its state"
        }
        "OW-06" => {
            "send fewer oneway calls, or answer them faster; see who fills the half: `binderperf explain` on the receiver's state"
        }
        "OBJ-23" => "look for a denial (avc: denied) in the log at the same moment",
        "OBJ-12" => "look at the receiver's open descriptors: ls /proc/PID/fd",
        _ => {
            "look at what the caller sends: its code, or a parcel that was built from freed memory; BINDER_GET_EXTENDED_ERROR tells the errno in the caller"
        }
    }
}

/// A failure that is explained, for the table in the documentation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Explanation {
    /// Item of the contract.
    pub item: &'static str,
    /// The driver's word and errno, or words of its line in the kernel's log.
    pub sign: String,
    /// Its cause.
    pub why: &'static str,
    /// The next step.
    pub next: &'static str,
}

/// All failures that are explained, by item.
#[must_use]
pub fn explanations() -> Vec<Explanation> {
    let row = |item, sign, why| Explanation { item, sign, why, next: next_step(item) };
    let checks = CHECKS.iter().flat_map(|(word, errno, checks)| {
        let name = name_of(*word).unwrap_or_default();
        let sign = if *errno == 0 { name.to_owned() } else { format!("{name}, {}", errno_name(*errno)) };
        checks.iter().map(move |(why, item)| row(*item, sign.clone(), *why))
    });
    let lines = MISUSES.iter().map(|misuse| row(misuse.item, format!("\"{}\"", misuse.words), misuse.why));
    let mut all: Vec<Explanation> = checks.chain(lines).collect();
    all.sort();
    all
}
