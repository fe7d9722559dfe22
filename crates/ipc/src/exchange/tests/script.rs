//! A connection that answers each exchange from a script and checks what was written.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abi::layout::{ExtendedError, PtrCookie, TransactionData};
use abi::{CommandWord, NodePtr};
use driver::fixture::IdleConnection;
use driver::{Connection, Exchange};
use sys::errno::{EINTR, ENOSPC};
use zerocopy::IntoBytes;

/// Where the script's receiving area seems to lie.
const BASE: u64 = 0x10_0000;
const AREA: usize = 4096;

/// One exchange.
#[derive(Clone)]
pub(super) struct Step {
    /// The commands taken, in order.
    takes: Vec<u32>,
    /// The commands left, in order.
    leaves: Vec<u32>,
    returns: Vec<u8>,
    fails: Option<i32>,
    reads: bool,
    resumes: bool,
}

impl Step {
    /// Takes these commands and nothing else is there; returns these bytes.
    pub(super) fn new(takes: &[u32], returns: Vec<u8>) -> Self {
        Self { takes: takes.to_vec(), leaves: vec![], returns, fails: None, reads: true, resumes: false }
    }

    /// A pure write.
    pub(super) fn write(takes: &[u32]) -> Self {
        Self { reads: false, ..Self::new(takes, vec![]) }
    }

    /// The same exchange as before, which has taken everything already.
    pub(super) fn resumed(returns: Vec<u8>) -> Self {
        Self { resumes: true, ..Self::new(&[], returns) }
    }

    pub(super) fn leaving(self, leaves: &[u32]) -> Self {
        Self { leaves: leaves.to_vec(), ..self }
    }

    pub(super) fn failing(self, kind: io::ErrorKind) -> Self {
        assert_eq!(kind, io::ErrorKind::Interrupted);
        self.failing_with(EINTR)
    }

    /// Fails; a pure write as well as a read.
    pub(super) fn failing_with(self, errno: i32) -> Self {
        Self { fails: Some(errno), ..self }
    }
}

/// A return without payload.
pub(super) fn simple(word: u32) -> Vec<u8> {
    word.to_ne_bytes().to_vec()
}

/// A return about a node.
pub(super) fn node(word: u32, ptr: u64, cookie: u64) -> Vec<u8> {
    [&word.to_ne_bytes()[..], PtrCookie { ptr, cookie }.as_bytes()].concat()
}

/// A return with a cookie.
pub(super) fn cookie(word: u32, cookie: u64) -> Vec<u8> {
    [word.to_ne_bytes().as_slice(), &cookie.to_ne_bytes()].concat()
}

/// A delivery of these bytes, `shift` bytes away from where they are. They follow the return here and
/// are put into the area by the script.
pub(super) fn delivery(word: u32, shift: u64, node: NodePtr, cookie: u64, data: &[u8]) -> Vec<u8> {
    let head = TransactionData {
        target: node.0,
        cookie,
        data_size: data.len() as u64,
        buffer: shift,
        ..TransactionData::default()
    };
    [&word.to_ne_bytes()[..], head.as_bytes(), data].concat()
}

pub(super) struct Script {
    steps: Mutex<VecDeque<Step>>,
    /// The receiving area, and the requests that are not scripted.
    rest: IdleConnection,
    exits: AtomicUsize,
}

/// The words of a stream.
fn words(mut bytes: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    while let Some((word, rest)) = bytes.split_first_chunk::<4>() {
        let word = CommandWord(u32::from_ne_bytes(*word));
        found.push(word.0);
        bytes = &rest[word.payload_len()..];
    }
    found
}

fn names(words: &[u32]) -> Vec<String> {
    words.iter().map(|word| CommandWord(*word).to_string()).collect()
}

impl Script {
    /// Deliveries get their place in the area here, one after the other.
    pub(super) fn new(mut steps: Vec<Step>) -> Self {
        let mut area = Vec::new();
        for step in &mut steps {
            place_deliveries(&mut step.returns, &mut area);
        }
        area.resize(AREA, 0);
        let error = ExtendedError { param: -ENOSPC, ..ExtendedError::default() };
        let rest = IdleConnection { base: BASE, area, error };
        Self { steps: Mutex::new(steps.into()), rest, exits: AtomicUsize::new(0) }
    }

    fn steps(&self) -> MutexGuard<'_, VecDeque<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn assert_finished(&self) {
        assert_eq!(self.left(), 0, "steps of the script were not used");
    }

    pub(super) fn left(&self) -> usize {
        self.steps().len()
    }

    /// How many threads have taken their leave.
    pub(super) fn exits(&self) -> usize {
        self.exits.load(Ordering::SeqCst)
    }
}

fn place_deliveries(returns: &mut Vec<u8>, area: &mut Vec<u8>) {
    use abi::codes::br;
    let mut at = 0;
    while let Some(word) = returns.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        let word = u32::from_ne_bytes(*word);
        let payload = abi::ReturnWord(word).payload_len();
        if word == br::REPLY || word == br::TRANSACTION {
            let number =
                |offset: usize| u64::from_ne_bytes(*returns[at + 4 + offset..].first_chunk().expect("8"));
            let (size, shift) = (number(32) as usize, number(48));
            let address = BASE + area.len() as u64 + shift;
            returns[at + 4 + 48..at + 4 + 56].copy_from_slice(&address.to_ne_bytes());
            area.extend(returns.drain(at + 68..at + 68 + size));
        }
        at += 4 + payload;
    }
}

impl Connection for Script {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        let mut steps = self.steps();
        let written = words(&exchange.write[exchange.write_consumed..]);
        // A thread that leaves when the script is over, or a test that drops what it has left.
        let Some(step) = steps.pop_front() else { return end_of_script(exchange) };
        let want = [&step.takes[..], &step.leaves].concat();
        assert_eq!(names(&written), names(&want), "commands written");
        assert_eq!(exchange.read.is_empty(), !step.reads, "a pure write, or not");
        assert_eq!(step.resumes, exchange.write_consumed > 0, "the same exchange again, or not");
        let taken: usize = step.takes.iter().map(|word| 4 + CommandWord(*word).payload_len()).sum();
        exchange.write_consumed += taken;
        if let Some(errno) = step.fails {
            return Err(io::Error::from_raw_os_error(errno));
        }
        exchange.read[..step.returns.len()].copy_from_slice(&step.returns);
        exchange.read_consumed = step.returns.len();
        Ok(())
    }

    fn poll_readable(&self, _timeout_ms: i32) -> io::Result<bool> {
        Ok(true)
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.exits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    driver::forward_connection!(rest);
}

/// Takes everything and has nothing to say; a read would wait for ever.
fn end_of_script(exchange: &mut Exchange<'_>) -> io::Result<()> {
    assert!(exchange.read.is_empty(), "the script is over and a thread waits");
    exchange.write_consumed = exchange.write.len();
    Ok(())
}
