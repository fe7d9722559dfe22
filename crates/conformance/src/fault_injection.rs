//! Fault injection between suite and driver, to prove that the tests can fail.
//! Not here: the tests.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, Once};

use abi::codes::{bc, br};
use abi::layout::TransactionData;
use abi::{CommandWord, ReturnWord};
use driver::{Connection, Exchange};
use sys::binder_fd::BinderFd;
use zerocopy::{FromBytes, IntoBytes};

use super::probe::Probe;

/// Declares the faults: the name on the command line, then the variant.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:literal $fault:ident,)*) => {
        /// An injected violation of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        const FAULTS: &[(&str, Fault)] = &[$(($name, Fault::$fault)),*];
    };
}

faults! {
    /// Removes the `BR_NOOP` at the start of reads.
    "drop-noop" DropNoop,
    /// Returns a reply before the completion of its call.
    "reply-first" ReplyFirst,
    /// Reports every write as completely consumed.
    "claim-all-written" ClaimAllWritten,
    /// Reports a dead peer as a failed call.
    "fail-for-dead" FailForDead,
    /// Never requests a thread.
    "never-spawn" NeverSpawn,
    /// Drops reference notifications to node owners.
    "mute-references" MuteReferences,
    /// Reports refused commands as accepted.
    "hide-errors" HideErrors,
    /// Drops death notifications.
    "lose-deaths" LoseDeaths,
    /// Drops objects from payloads, except to the context manager: they arrive as plain bytes.
    "drop-offsets" DropOffsets,
    /// Drops all processes from the state text.
    "mute-state" MuteState,
    /// Reports a frozen peer as a failed call.
    "fail-for-frozen" FailForFrozen,
    /// Drops freeze notifications.
    "lose-freezes" LoseFreezes,
    /// Never changes a thread's nice value.
    "keep-nice" KeepNice,
    /// Ignores the exit of threads.
    "forget-exit" ForgetExit,
    /// Acknowledges oneway calls to frozen and flooded processes like any others.
    "plain-completions" PlainCompletions,
    /// Reports a wrong sender in deliveries.
    "forge-sender" ForgeSender,
    /// Reports every thread as readable at any time.
    "always-readable" AlwaysReadable,
    /// Blocks forever in a read without data.
    "hang" Hang,
    /// Writes a line to the kernel's log that reads as a fault of the kernel, once in each process.
    "log-a-bug" LogABug,
    /// Makes the kernel of a guest panic.
    "panic" Panic,
}

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

/// Splits a return stream into words with their payloads, as far as it is complete.
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

/// Copies a command stream without the object lists of replies, and of calls to others than the manager.
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
            // Cannot fail: the structure was read from there.
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

/// Copies a return stream with other sender IDs in each transaction and reply.
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
    /// Applies the fault to a return stream; never makes it longer.
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
            // Faults of the write side, or of more than one stream.
            _ => {}
        }
        parts.iter().flat_map(|(word, payload)| [&word.to_ne_bytes()[..], payload].concat()).collect()
    }
}

/// Whether this machine is a guest of `binderperf vm`.
fn is_in_guest() -> bool {
    std::fs::read_to_string("/proc/cmdline").is_ok_and(|line| line.contains("binderperf_guest=1"))
}

/// A connection with injected faults.
pub(super) struct FaultyConnection {
    inner: Arc<dyn Probe>,
    faults: Vec<Fault>,
}

impl FaultyConnection {
    pub(super) fn new(inner: Arc<dyn Probe>, faults: Vec<Fault>) -> Self {
        Self { inner, faults }
    }

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
        };
        let result = self.inner.write_read(&mut inner);
        (exchange.write_consumed, exchange.read_consumed) = (inner.write_consumed, inner.read_consumed);
        result
    }
}

impl Connection for FaultyConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        static LOGGED: Once = Once::new();
        if self.has(Fault::LogABug) {
            // Where it cannot be written, the test of this fault finds no failure.
            LOGGED.call_once(|| drop(host::klog::plant_alarm()));
        }
        if self.has(Fault::Panic) && is_in_guest() {
            std::fs::write("/proc/sysrq-trigger", "c")?;
        }
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
        // A refused command revokes what was read before (contract WR-11).
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

    fn thread_exit(&self) -> io::Result<()> {
        if self.has(Fault::ForgetExit) { Ok(()) } else { self.inner.thread_exit() }
    }

    driver::forward_connection!(inner);
}

impl Probe for FaultyConnection {
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

#[cfg(test)]
mod tests;
