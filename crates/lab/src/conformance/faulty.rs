//! Room: faults put in front of a driver, to prove that the suite's tests can fail.
//! Not here: the tests.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use abi::codes::{bc, br};
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
    TransactionData,
};
use abi::{CommandWord, ReturnWord};
use driver::embedded::Inherit;
use driver::kernel_state::{StateError, StateFile};
use driver::{Connection, Exchange, OpenError, OpenOptions};
use sys::binder_fd::BinderFd;
use zerocopy::{FromBytes, IntoBytes};

use super::subject::{Probe, Subject};

/// A way to break a driver's promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads lose the filler at their head.
    DropNoop,
    /// A reply comes before the acknowledgement of its call.
    ReplyFirst,
    /// Every write claims to have been taken whole.
    ClaimAllWritten,
    /// A dead peer is reported as a failed call.
    FailForDead,
    /// No thread is ever asked for.
    NeverSpawn,
    /// Owners hear nothing of their nodes' references.
    MuteReferences,
    /// Refused commands are reported as taken.
    HideErrors,
    /// Nobody hears of a death.
    LoseDeaths,
    /// Payloads for anybody but the context manager arrive without their objects: as plain bytes.
    DropOffsets,
    /// What the driver says of itself has no processes in it.
    MuteState,
    /// A frozen peer is reported as a failed call.
    FailForFrozen,
    /// Nobody hears of a freeze.
    LoseFreezes,
    /// No thread's nice is ever changed.
    KeepNice,
    /// A thread that exits is not forgotten.
    ForgetExit,
    /// Oneway calls of frozen and flooded processes are acknowledged like any other.
    PlainCompletions,
    /// Deliveries name another sender than the one that sent them.
    ForgeSender,
    /// Every thread is readable at any time.
    AlwaysReadable,
    /// A read with nothing to return never returns.
    Hang,
}

const FAULTS: &[(&str, Fault)] = &[
    ("drop-noop", Fault::DropNoop),
    ("reply-first", Fault::ReplyFirst),
    ("claim-all-written", Fault::ClaimAllWritten),
    ("fail-for-dead", Fault::FailForDead),
    ("never-spawn", Fault::NeverSpawn),
    ("mute-references", Fault::MuteReferences),
    ("hide-errors", Fault::HideErrors),
    ("lose-deaths", Fault::LoseDeaths),
    ("drop-offsets", Fault::DropOffsets),
    ("mute-state", Fault::MuteState),
    ("fail-for-frozen", Fault::FailForFrozen),
    ("lose-freezes", Fault::LoseFreezes),
    ("keep-nice", Fault::KeepNice),
    ("forget-exit", Fault::ForgetExit),
    ("plain-completions", Fault::PlainCompletions),
    ("forge-sender", Fault::ForgeSender),
    ("always-readable", Fault::AlwaysReadable),
    ("hang", Fault::Hang),
];

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || FAULTS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let found = FAULTS.iter().find(|(name, _)| *name == text).map(|(_, fault)| *fault);
        found.ok_or_else(|| format!("unknown fault {text:?}; known are {}", known()))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FAULTS.iter().find(|(_, fault)| fault == self).map_or("?", |(name, _)| name))
    }
}

/// The words of a stream of returns, each with its payload, as far as it is whole.
fn split(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let mut parts = Vec::new();
    while let Some((word, behind)) = bytes.split_first_chunk::<4>() {
        let word = u32::from_ne_bytes(*word);
        let Some((payload, rest)) = behind.split_at_checked(ReturnWord(word).payload_len()) else { break };
        parts.push((word, payload));
        bytes = rest;
    }
    parts
}

/// A stream of commands whose replies, and calls of others than the context manager, list no objects.
fn without_objects(commands: &[u8]) -> Vec<u8> {
    let mut commands = commands.to_vec();
    let mut at = 0;
    while let Some((word, behind)) = commands.get_mut(at..).and_then(<[u8]>::split_first_chunk_mut::<4>) {
        let word = CommandWord(u32::from_ne_bytes(*word));
        let reply = [bc::REPLY, bc::REPLY_SG].contains(&word.0);
        if (reply || [bc::TRANSACTION, bc::TRANSACTION_SG].contains(&word.0))
            && let Ok((data, _)) = TransactionData::read_from_prefix(behind)
            && (reply || data.target as u32 != 0)
        {
            // It was read from there, so there is room to write it.
            let _ = TransactionData { offsets_size: 0, ..data }.write_to_prefix(behind);
        }
        at += 4 + word.payload_len();
    }
    commands
}

fn replace(parts: &mut [(u32, &[u8])], from: u32, to: u32) {
    for part in parts.iter_mut().filter(|part| part.0 == from) {
        part.0 = to;
    }
}

/// The same stream, with other numbers for the sender of each transaction and reply.
fn forged(parts: &[(u32, &[u8])]) -> Vec<u8> {
    let forge = |&(word, payload): &(u32, &[u8])| {
        let mut payload = payload.to_vec();
        let carries_a_sender = [br::TRANSACTION, br::TRANSACTION_SEC_CTX, br::REPLY].contains(&word);
        if let (true, Ok((data, rest))) = (carries_a_sender, TransactionData::read_from_prefix(&payload)) {
            let (sender_pid, sender_euid) = (data.sender_pid + 1, data.sender_euid ^ 1);
            payload = [TransactionData { sender_pid, sender_euid, ..data }.as_bytes(), rest].concat();
        }
        [&word.to_ne_bytes()[..], &payload].concat()
    };
    parts.iter().flat_map(forge).collect()
}

impl Fault {
    /// Breaks a stream of returns; never makes it longer.
    fn spoil(self, bytes: &[u8]) -> Vec<u8> {
        let mut parts = split(bytes);
        match self {
            Self::DropNoop if parts.first().is_some_and(|part| part.0 == br::NOOP) => drop(parts.remove(0)),
            Self::ReplyFirst => {
                let at = |word| parts.iter().position(|part| part.0 == word);
                if let (Some(complete), Some(reply)) = (at(br::TRANSACTION_COMPLETE), at(br::REPLY)) {
                    parts.swap(complete, reply);
                }
            }
            Self::FailForDead => replace(&mut parts, br::DEAD_REPLY, br::FAILED_REPLY),
            Self::NeverSpawn => replace(&mut parts, br::SPAWN_LOOPER, br::NOOP),
            Self::MuteReferences => {
                let of_references = [br::INCREFS, br::ACQUIRE, br::RELEASE, br::DECREFS];
                parts.retain(|part| !of_references.contains(&part.0));
            }
            Self::LoseDeaths => parts.retain(|part| part.0 != br::DEAD_BINDER),
            Self::FailForFrozen => replace(&mut parts, br::FROZEN_REPLY, br::FAILED_REPLY),
            Self::LoseFreezes => parts.retain(|part| part.0 != br::FROZEN_BINDER),
            Self::PlainCompletions => {
                replace(&mut parts, br::TRANSACTION_PENDING_FROZEN, br::TRANSACTION_COMPLETE);
                replace(&mut parts, br::ONEWAY_SPAM_SUSPECT, br::TRANSACTION_COMPLETE);
            }
            Self::ForgeSender => return forged(&parts),
            // Of the write side, or of more than one stream.
            _ => {}
        }
        parts.iter().flat_map(|(word, payload)| [&word.to_ne_bytes()[..], payload].concat()).collect()
    }
}

/// A connection with faults.
struct Faulty {
    inner: Arc<dyn Probe>,
    faults: Vec<Fault>,
}

impl Faulty {
    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    fn write_without_objects(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        let commands = without_objects(exchange.write);
        let mut inner = Exchange {
            write: &commands,
            write_consumed: exchange.write_consumed,
            read: &mut *exchange.read,
            read_consumed: exchange.read_consumed,
            payload: exchange.payload,
            takes_vectors: exchange.takes_vectors,
            vector: None,
        };
        let result = self.inner.write_read(&mut inner);
        exchange.vector = inner.vector;
        (exchange.write_consumed, exchange.read_consumed) = (inner.write_consumed, inner.read_consumed);
        result
    }
}

impl Connection for Faulty {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        let before = exchange.read_consumed;
        let nice = self.has(Fault::KeepNice).then(|| sys::sched::nice_of(0)).transpose()?;
        let mut result = if self.has(Fault::DropOffsets) {
            self.write_without_objects(exchange)
        } else {
            self.inner.write_read(exchange)
        };
        nice.map_or(Ok(()), |nice| sys::sched::set_nice(0, nice))?;
        match result.as_ref().map_err(io::Error::kind) {
            Err(io::ErrorKind::WouldBlock) if self.has(Fault::Hang) => loop {
                std::thread::park();
            },
            Err(io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) if self.has(Fault::HideErrors) => result = Ok(()),
            Ok(()) if self.has(Fault::ClaimAllWritten) => exchange.write_consumed = exchange.write.len(),
            _ => {}
        }
        // A refused command takes back what was read before (contract WR-11).
        let from = before.min(exchange.read_consumed);
        let returned = exchange.read[from..exchange.read_consumed].to_vec();
        let spoilt = self.faults.iter().fold(returned, |bytes, fault| fault.spoil(&bytes));
        exchange.read_consumed = from + spoilt.len();
        exchange.read[from..exchange.read_consumed].copy_from_slice(&spoilt);
        result
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        if self.has(Fault::AlwaysReadable) { Ok(true) } else { self.inner.poll_readable(timeout_ms) }
    }

    fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.inner.lent(address, len)
    }

    fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        self.inner.take_fd(address)
    }

    fn wake_readers(&self) -> io::Result<()> {
        self.inner.wake_readers()
    }

    fn map_size(&self) -> usize {
        self.inner.map_size()
    }

    fn version(&self) -> io::Result<i32> {
        self.inner.version()
    }

    fn set_max_threads(&self, threads: u32) -> io::Result<()> {
        self.inner.set_max_threads(threads)
    }

    fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()> {
        self.inner.become_context_manager(node)
    }

    fn thread_exit(&self) -> io::Result<()> {
        if self.has(Fault::ForgetExit) { Ok(()) } else { self.inner.thread_exit() }
    }

    fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        self.inner.enable_oneway_spam_detection(enable)
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        self.inner.extended_error()
    }

    fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        self.inner.node_debug_info(above)
    }

    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        self.inner.node_info_for_ref(info)
    }

    fn freeze(&self, info: FreezeInfo) -> io::Result<()> {
        self.inner.freeze(info)
    }

    fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        self.inner.frozen_info(pid)
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.inner.set_nonblocking(on)
    }
}

impl Probe for Faulty {
    fn device(&self) -> Option<&BinderFd> {
        self.inner.device()
    }

    fn map_base(&self) -> Option<u64> {
        self.inner.map_base()
    }

    fn unmap(&mut self) -> bool {
        Arc::get_mut(&mut self.inner).is_some_and(Probe::unmap)
    }
}

/// A context all of whose connections have faults.
pub(super) struct FaultySubject {
    inner: Box<dyn Subject>,
    faults: Vec<Fault>,
}

impl FaultySubject {
    pub(super) fn new(inner: Box<dyn Subject>, faults: Vec<Fault>) -> Self {
        Self { inner, faults }
    }
}

impl Subject for FaultySubject {
    fn open(&self, options: OpenOptions) -> Result<Arc<dyn Probe>, OpenError> {
        Ok(Arc::new(Faulty { inner: self.inner.open(options)?, faults: self.faults.clone() }))
    }

    fn device(&self) -> Option<&Path> {
        self.inner.device()
    }

    fn address(&self) -> String {
        self.inner.address()
    }

    fn without_lanes(&self) -> Option<Box<dyn Subject>> {
        Some(Box::new(Self { inner: self.inner.without_lanes()?, faults: self.faults.clone() }))
    }

    fn inheriting(&self, inherit: Inherit) -> Option<Box<dyn Subject>> {
        Some(Box::new(Self { inner: self.inner.inheriting(inherit)?, faults: self.faults.clone() }))
    }

    fn traced(&self, folder: &Path) -> Option<Box<dyn Subject>> {
        Some(Box::new(Self { inner: self.inner.traced(folder)?, faults: self.faults.clone() }))
    }

    fn inherit(&self) -> Option<Inherit> {
        self.inner.inherit()
    }

    fn describe(&self) -> String {
        format!("{} with the faults {:?}", self.inner.describe(), self.faults)
    }

    fn state(&self, which: StateFile) -> Result<Option<String>, StateError> {
        let muted = self.faults.contains(&Fault::MuteState);
        Ok(self.inner.state(which)?.map(|text| match muted {
            true => text.lines().next().unwrap_or_default().to_owned(),
            false => text,
        }))
    }
}

#[cfg(test)]
mod tests;
