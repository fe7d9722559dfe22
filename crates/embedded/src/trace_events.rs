//! Trace events of the embedded driver: the kernel driver's events, with its names and words, written as marks among
//! the kernel's own events, so that one reader understands both.
//! Not here: which thread writes what and when (`client::trace`), reading a trace.
//! Facts: contract section 18; `binder_trace.h`, Linux 7.2; `binder_set_priority` in the format of Android's
//! kernels; `trace_marker`: `Documentation/trace/ftrace.rst`.
//!
//! A process writes marks if that was requested when it opened its context: by [`TRACING`] in its environment, or by
//! [`announce`] for all processes of this user. The state of `tracing_on` is no request, since it is on in every
//! kernel. Each mark is one write of one line. A failed write, because tracing is off, is ignored.
//!
//! A write takes longer than a call. A recorder that reads the marks itself therefore takes the events of calls as
//! [`records`] in memory, with time stamps of their own.

mod record;
pub mod records;
mod request;

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abi::codes::{bc, br};
use abi::{CommandWord, ReturnWord};

pub use request::{MARKS, TRACING, announce, marks, requested, withdraw};

use self::records::RecordWriter;
use super::priority::kernel_priority;
use super::rpc::protocol::Sched;

/// Name of the tracefs file that accepts marks.
const MARKER: &str = "trace_marker";

/// Largest mark, in bytes.
const LONGEST: usize = 256;

/// A pid and a tid; a tid of 0 is any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskId {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// A transaction at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) number: u32,
    /// Number of the called node; 0 for a reply.
    pub(super) node: u32,
    pub(super) to: TaskId,
    pub(super) reply: bool,
    pub(super) what: CodeAndFlags,
}

/// Code and flags of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CodeAndFlags {
    pub(super) flags: u32,
    pub(super) code: u32,
}

/// A buffer: its transaction and the sizes of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferSizes {
    /// Number of the transaction.
    pub(super) number: u32,
    pub(super) data: u64,
    pub(super) offsets: u64,
    pub(super) extra: u64,
}

/// An event without which no call can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEvent {
    /// A call or reply at its sender.
    Transaction(Sent),
    /// The call or reply with this number at its receiver.
    Received(u32),
}

impl fmt::Display for CallEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transaction(Sent { number, node, to, reply, what }) => write!(
                f,
                "binder_transaction: transaction={number} dest_node={node} dest_proc={} dest_thread={} reply={} \
                 flags={:#x} code={:#x}",
                to.pid,
                to.tid,
                u32::from(*reply),
                what.flags,
                what.code
            ),
            Self::Received(number) => write!(f, "binder_transaction_received: transaction={number}"),
        }
    }
}

/// Event in the life of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Taken,
    Released,
    /// The transaction failed after the allocation.
    Failed,
}

/// Which events a process writes. Each costs a system call, some microseconds in a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// All that the kernel's driver has.
    All,
    /// Those that figures of calls need: sent and received, the sizes of buffers, and the commands and returns that show how a
    /// call failed.
    Figures,
    /// The least from which a call can be reconstructed: sent and received, for a call and its reply.
    CallsOnly,
}

/// Writer of marks.
#[derive(Debug)]
pub(super) struct TraceWriter {
    file: File,
    amount: Amount,
    /// Takes the events of calls in place of `file`.
    records: Option<RecordWriter>,
    /// Delivered buffers by address, for the event that frees them.
    buffers: Mutex<HashMap<u64, BufferSizes>>,
    /// Reserved numbers: the next one, and the end in the upper half.
    numbers: AtomicU64,
    /// Second range of reserved numbers, used after the first; empty at 0.
    spare: AtomicU64,
    /// Whether the broker was asked for a second range.
    asked: AtomicBool,
}

impl TraceWriter {
    /// Opens the writer for this tracefs directory.
    pub(super) fn open(folder: &Path, amount: Amount) -> io::Result<Self> {
        let file = File::options().write(true).open(folder.join(MARKER))?;
        Ok(Self::writing_to(file, amount))
    }

    /// This writer with the events of calls in the [`records`] at this path. If they cannot be opened, or have no room for
    /// one more process, those events stay marks.
    pub(super) fn with_records(self, path: &Path) -> Self {
        Self { records: RecordWriter::open(path).ok().flatten(), ..self }
    }

    fn writing_to(file: File, amount: Amount) -> Self {
        Self {
            file,
            amount,
            records: None,
            buffers: Mutex::default(),
            numbers: AtomicU64::new(0),
            spare: AtomicU64::new(0),
            asked: AtomicBool::new(false),
        }
    }

    /// Opens the writer if tracing was requested. A directory that cannot be written to is no reason to refuse the
    /// context: the missing events show it.
    pub(super) fn as_requested() -> Option<Self> {
        let (folder, amount) = request::wanted()?;
        Self::open(&folder, amount).ok()
    }

    /// This writer, if it writes more than the events of calls. For events whose fields cost system calls.
    pub(super) fn of_details(&self) -> Option<&Self> {
        (self.amount == Amount::All).then_some(self)
    }

    /// Writes an event that only [`Amount::All`] has.
    fn detail(&self, text: fmt::Arguments<'_>) {
        self.of_figures(false, text);
    }

    /// Writes an event that [`Amount::Figures`] has, too, if it is among those that matter to figures.
    fn of_figures(&self, matters: bool, text: fmt::Arguments<'_>) {
        if self.amount == Amount::All || self.amount == Amount::Figures && matters {
            self.write(text);
        }
    }

    fn call(&self, event: CallEvent) {
        match &self.records {
            Some(records) => records.write(&event),
            None => self.write(format_args!("{event}")),
        }
    }

    fn write(&self, text: fmt::Arguments<'_>) {
        let mut line = LineBuffer { bytes: [0; LONGEST], len: 0 };
        // No mark is longer; a truncated one would still be a line.
        let _ = line.write_fmt(text);
        let _ = (&self.file).write(&line.bytes[..line.len]);
    }

    /// Whether to ask the broker for numbers now: no second range is left, and it was not asked yet. Under the
    /// process's lock.
    pub(super) fn wants_numbers(&self) -> bool {
        self.spare.load(Ordering::Relaxed) == 0 && !self.asked.swap(true, Ordering::Relaxed)
    }

    /// Adds a range that the broker reserved. Under the process's lock.
    pub(super) fn give_numbers(&self, first: u32, count: u32) {
        let end = first.saturating_add(count);
        let given = u64::from(end) << 32 | u64::from(first);
        self.asked.store(false, Ordering::Relaxed);
        let place =
            if is_used_up(self.numbers.load(Ordering::Relaxed)) { &self.numbers } else { &self.spare };
        place.store(given, Ordering::Relaxed);
    }

    /// Takes a number for a call; the next one is for its reply. 0 if none is left. Under the process's lock.
    pub(super) fn take_pair(&self) -> u32 {
        if is_used_up(self.numbers.load(Ordering::Relaxed)) {
            let spare = self.spare.swap(0, Ordering::Relaxed);
            if is_used_up(spare) {
                return 0;
            }
            self.numbers.store(spare, Ordering::Relaxed);
        }
        self.numbers.fetch_add(2, Ordering::Relaxed) as u32
    }

    fn buffers(&self) -> MutexGuard<'_, HashMap<u64, BufferSizes>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a delivered buffer by its address.
    pub(super) fn keep(&self, address: u64, buffer: BufferSizes) {
        if self.amount == Amount::All {
            self.buffers().insert(address, buffer);
        }
    }

    /// Forgets a buffer without an event.
    pub(super) fn forget(&self, address: u64) -> Option<BufferSizes> {
        if self.amount == Amount::All { self.buffers().remove(&address) } else { None }
    }

    /// Writes the event that frees a buffer.
    pub(super) fn release(&self, address: u64) {
        if let Some(buffer) = self.forget(address) {
            self.buffer(Fate::Released, buffer);
        }
    }
}

/// The events.
impl TraceWriter {
    pub(super) fn ioctl(&self, request: u32) {
        // The embedded driver has no such address.
        self.detail(format_args!("binder_ioctl: cmd={request:#x} arg=0x0"));
    }

    /// Writes that an ioctl, or its write or read part, is done.
    pub(super) fn done(&self, part: &str, errno: i32) {
        self.detail(format_args!("binder_{part}_done: ret={}", -errno));
    }

    pub(super) fn command(&self, word: u32) {
        let is_call = matches!(word, bc::TRANSACTION | bc::TRANSACTION_SG);
        self.of_figures(is_call, format_args!("binder_command: cmd={word:#x} {}", CommandWord(word)));
    }

    pub(super) fn returned(&self, word: u32) {
        // The kernel's event names only the number.
        let name = ReturnWord(if word == br::TRANSACTION_SEC_CTX { br::TRANSACTION } else { word });
        let is_failure = matches!(word, br::FAILED_REPLY | br::DEAD_REPLY | br::FROZEN_REPLY);
        self.of_figures(is_failure, format_args!("binder_return: cmd={word:#x} {name}"));
    }

    pub(super) fn wait_for_work(&self, proc: bool, stack: bool, todo: bool) {
        let [proc, stack, todo] = [proc, stack, todo].map(u32::from);
        self.detail(format_args!(
            "binder_wait_for_work: proc_work={proc} transaction_stack={stack} thread_todo={todo}"
        ));
    }

    pub(super) fn transaction(&self, sent: &Sent) {
        self.call(CallEvent::Transaction(*sent));
    }

    pub(super) fn received(&self, number: u32) {
        self.call(CallEvent::Received(number));
    }

    /// The labels of the last two fields are swapped, as in the kernel (contract TP-09), so that one rule reads
    /// both. By then the sender has left the buffer, as in the kernel.
    pub(super) fn freed(&self, number: u32, to: TaskId, what: CodeAndFlags) {
        self.detail(format_args!(
            "binder_txn_latency_free: transaction={number} from 0:0 to {}:{} flags={:#x} code={:#x}",
            to.pid, to.tid, what.code, what.flags
        ));
    }

    pub(super) fn buffer(&self, fate: Fate, buffer: BufferSizes) {
        let name = match fate {
            Fate::Taken => "alloc_buf",
            Fate::Released => "buffer_release",
            Fate::Failed => "failed_buffer_release",
        };
        let BufferSizes { number, data, offsets, extra } = buffer;
        self.of_figures(
            !matches!(fate, Fate::Released),
            format_args!(
                "binder_transaction_{name}: transaction={number} data_size={data} offsets_size={offsets} \
                 extra_buffers_size={extra}"
            ),
        );
    }

    /// Writes the event of a priority change, unless nothing changed. Ask [`Self::of_details`] before looking up priorities.
    pub(super) fn priority(&self, thread: TaskId, old: Sched, new: Sched, desired: Sched) {
        let [old, new, desired] = [old, new, desired].map(kernel_priority);
        if old == desired {
            return;
        }
        let TaskId { pid, tid } = thread;
        self.detail(format_args!(
            "binder_set_priority: proc={pid} thread={tid} old={old} => new={new} desired={desired}"
        ));
    }
}

/// Whether a range of numbers holds no pair any more.
fn is_used_up(numbers: u64) -> bool {
    (numbers as u32).saturating_add(1) >= (numbers >> 32) as u32
}

/// A line under construction, without heap allocation.
struct LineBuffer {
    bytes: [u8; LONGEST],
    len: usize,
}

impl fmt::Write for LineBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(amount: Amount) -> TraceWriter {
        let file = File::options().write(true).open("/dev/null").expect("it is everywhere");
        TraceWriter::writing_to(file, amount)
    }

    fn marks() -> TraceWriter {
        writer(Amount::All)
    }

    #[test]
    fn a_writer_of_calls_alone_wants_no_details() {
        assert!(writer(Amount::CallsOnly).of_details().is_none() && marks().of_details().is_some());
    }

    #[test]
    fn figures_have_the_events_of_calls_buffers_and_failures_alone() {
        let own = sys::private_folder::PrivateFolder::new("amount").expect("a folder");
        let place = own.path().join(MARKER);
        File::create(&place).expect("a marker");
        let marks = TraceWriter::open(own.path(), Amount::Figures).expect("a marker");
        let buffer = BufferSizes { number: 7, data: 4, offsets: 0, extra: 0 };
        marks.ioctl(1);
        marks.command(bc::FREE_BUFFER);
        marks.command(bc::TRANSACTION_SG);
        marks.received(7);
        marks.buffer(Fate::Taken, buffer);
        marks.keep(1, buffer);
        marks.release(1);
        marks.returned(br::REPLY);
        marks.returned(br::DEAD_REPLY);
        marks.done("ioctl", 0);
        let text = std::fs::read_to_string(place).expect("marks");
        let names: Vec<&str> =
            text.split("binder_").skip(1).filter_map(|mark| mark.split(':').next()).collect();
        assert_eq!(names, ["command", "transaction_received", "transaction_alloc_buf", "return"]);
        assert!(text.contains("BC_TRANSACTION_SG") && text.contains("BR_DEAD_REPLY"), "{text}");
    }

    #[test]
    fn numbers_are_asked_for_once_and_long_before_they_are_used_up() {
        let marks = marks();
        assert_eq!(marks.take_pair(), 0, "none yet");
        assert!(marks.wants_numbers() && !marks.wants_numbers(), "asked once");
        marks.give_numbers(10, 4);
        assert_eq!(marks.take_pair(), 10);
        assert!(marks.wants_numbers(), "there is a pair left, and nothing in reserve");
        marks.give_numbers(50, 4);
        assert!(!marks.wants_numbers());
        assert_eq!([marks.take_pair(), marks.take_pair()], [12, 50]);
        assert!(marks.wants_numbers(), "the reserve is in use");
        assert_eq!([marks.take_pair(), marks.take_pair()], [52, 0], "nobody waits: a call goes without");
        marks.give_numbers(90, 2);
        assert_eq!([marks.take_pair(), marks.take_pair()], [90, 0]);
    }

    #[test]
    fn numbers_at_the_end_of_all_are_no_trap() {
        let marks = marks();
        marks.give_numbers(u32::MAX - 2, 1 << 16);
        assert_eq!([marks.take_pair(), marks.take_pair()], [u32::MAX - 2, 0]);
    }
}
