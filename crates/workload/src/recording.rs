//! The load in a trace: its calls, who made which for which, and when its threads ran.
//! Not here: reading a trace (crate `trace`), a description of it (`from_trace`), its figures (`figures`).
//!
//! A recording holds numbers only: no name of a thread, a process or a method gets in, so none can get out.

mod nest;
mod select;
mod threads;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::text;
use trace::event::{Binder, Event, Flavour, Kind, Mark, Names, Prio};
use trace::model::{Gap, Model, Outcome, Transaction};

pub use select::{CannotSelect, Half, LeftOut, Selected, Selection};
use threads::Threads;
pub(crate) use threads::{Does, Slice};

/// Maximum number of calls; the recording ends with the call before the next.
const MOST_CALLS: usize = 1 << 19;
/// Maximum number of steps of threads, of 16 bytes each; the recording ends there.
const MOST_STEPS: usize = 1 << 23;
/// Maximum number of transactions whose descriptors are counted at one time.
const MOST_CARRYING: usize = 1 << 14;
/// Maximum number of processes that a replay names.
const MOST_NAMES: usize = 1 << 16;

/// Subject of the marks by which a replay names its processes (`process=NAME`), the begin of its first round and the
/// end (`load=begin`, `load=end`).
pub const SUBJECT: &str = "workload";

/// Size of a request or a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of data and of scattered buffers, with objects.
    pub bytes: u64,
    /// Objects and descriptors; 0 where buffers are scattered, whose entries cannot be counted apart.
    pub objects: u32,
}

impl Size {
    fn of(buffer: trace::event::Buffer) -> Self {
        let bytes = buffer.data_size.saturating_add(buffer.extra_size);
        let objects = if buffer.extra_size > 0 { 0 } else { buffer.offsets_size / 8 };
        Self { bytes, objects: u32::try_from(objects).unwrap_or(u32::MAX) }
    }
}

/// A call that came to its end. Times are nanoseconds of the trace's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Calling thread.
    pub client: i32,
    /// Its process: the process ID, or the negative thread ID if the trace does not show it.
    pub caller: i32,
    /// Serving thread.
    pub server: Option<i32>,
    /// Its process.
    pub callee: i32,
    /// Whether nobody waits for an answer.
    pub oneway: bool,
    /// When it was sent.
    pub sent: u64,
    /// When its sender went on: the end of a call; of a oneway call, when it left the driver, or `sent` if no event shows that.
    pub free: u64,
    /// When it was received.
    pub received: u64,
    /// When its receiver was done: the reply; of a oneway call, when its thread gave the buffer back, waited for other work, took the
    /// next call, or slept.
    pub done: u64,
    /// Its end: the reply was received; of a oneway call, `received`.
    pub end: u64,
    /// Size of the request, if an event shows it.
    pub request: Option<Size>,
    /// Size of the reply, if an event shows it.
    pub reply: Option<Size>,
    /// Descriptors in the request.
    pub descriptors: u32,
    /// Priority of the caller when it sent the call.
    pub prio: Option<Prio>,
    /// Index of the call that its thread served when it made this one.
    pub parent: Option<usize>,
    /// Whether it came to a thread that waited for an answer itself, so that it needed no further thread.
    pub(crate) back: bool,
    /// Whether it was made for a call that the recording does not have.
    pub(crate) orphan: bool,
}

/// Calls of a trace that are not in its recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfit {
    /// They failed, or their receiver was dead or frozen.
    pub failed: u64,
    /// They had no end when the trace ended, or the trace does not show it.
    pub cut: u64,
    /// Events may be missing in them.
    pub doubtful: u64,
    /// They came after the limits of a recording.
    pub beyond: u64,
}

/// Kinds of events that a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// `sched_switch`: when threads ran.
    pub switches: bool,
    /// `sched_waking` or `sched_wakeup`.
    pub wakeups: bool,
    /// `binder_transaction_alloc_buf`: sizes.
    pub sizes: bool,
}

/// Calls of a trace and the history of its threads.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Calls in order of their sending.
    pub(crate) calls: Vec<Call>,
    pub(crate) threads: Threads,
    /// Calls that it lacks.
    pub unfit: Unfit,
    /// Kinds of events.
    pub shown: Shown,
    /// Times of the first and of the last event.
    pub(crate) span: (u64, u64),
    /// When a replay says that its load begins, and ends.
    pub(crate) load: (Option<u64>, Option<u64>),
    /// Names that the processes of a replay give themselves.
    pub(crate) named: BTreeMap<i32, String>,
}

impl Recording {
    /// Calls in order of their sending.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }
}

/// Makes a recording of events.
#[derive(Debug)]
pub struct Recorder {
    model: Model,
    calls: Vec<Kept>,
    threads: Threads,
    unfit: Unfit,
    shown: Shown,
    closed: bool,
    load: (Option<u64>, Option<u64>),
    named: BTreeMap<i32, String>,
    /// Descriptors by transaction.
    carried: HashMap<(bool, i32), u32>,
    /// Oneway calls whose senders are in the driver, by thread: when they were sent.
    sending: HashMap<i32, u64>,
    /// When they left it, by thread and time of sending.
    freed: HashMap<(i32, u64), u64>,
    /// Calls on their way to a process, not to one of its threads. A thread that takes one is done with the oneway call before it.
    to_process: HashSet<(bool, i32)>,
    /// Oneway calls that threads serve: number and time of receipt.
    serving: HashMap<i32, (i32, u64)>,
    /// When these were done, by thread and time of receipt; with `false`, at the latest.
    served: HashMap<(i32, u64), (u64, bool)>,
}

/// A call before all is known of it.
#[derive(Clone, Debug)]
struct Kept {
    call: Call,
    doubtful: bool,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            model: Model::of_calls(1 << 20),
            calls: Vec::new(),
            threads: Threads::default(),
            unfit: Unfit::default(),
            shown: Shown::default(),
            closed: false,
            load: (None, None),
            named: BTreeMap::new(),
            carried: HashMap::new(),
            sending: HashMap::new(),
            to_process: HashSet::new(),
            freed: HashMap::new(),
            serving: HashMap::new(),
            served: HashMap::new(),
        }
    }
}

impl Recorder {
    /// Takes the next event, in order of time. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names) {
        self.closed |= self.calls.len() >= MOST_CALLS || self.threads.steps() >= MOST_STEPS;
        if !self.closed {
            self.note(event);
        }
        let mut ended = Vec::new();
        self.model.take(event, names, &mut |call| ended.push(call));
        for call in ended {
            self.keep(&call);
        }
        if let (Kind::Lost { .. }, Some(gap)) = (&event.kind, self.model.last_gap()) {
            self.doubt(gap);
        }
    }

    /// Ends the trace.
    #[must_use]
    pub fn finish(mut self, names: &Names) -> Recording {
        while let Some(call) = self.model.end_next(names) {
            self.keep(&call);
        }
        let span = self.model.span().unwrap_or_default();
        let mut unfit = self.unfit;
        let waits = self.waits();
        let mut calls = Vec::with_capacity(self.calls.len());
        for Kept { mut call, doubtful } in std::mem::take(&mut self.calls) {
            if doubtful {
                unfit.doubtful += 1;
                continue;
            }
            if call.oneway {
                let free = self.freed.get(&(call.client, call.sent)).copied();
                // A clock may go backwards.
                call.free = free.unwrap_or(call.sent).max(call.sent);
                call.done = self.done(&call, &waits).max(call.received);
            }
            calls.push(call);
        }
        calls.sort_by_key(|call| call.sent);
        nest::nest(&mut calls);
        let (threads, shown, load, named) = (self.threads, self.shown, self.load, self.named);
        Recording { calls, threads, unfit, shown, span, load, named }
    }

    /// When the threads of the trace wait for answers, in order.
    fn waits(&self) -> HashMap<i32, Vec<(u64, u64)>> {
        let mut waits: HashMap<i32, Vec<(u64, u64)>> = HashMap::new();
        for call in self.calls.iter().map(|kept| &kept.call).filter(|call| !call.oneway) {
            waits.entry(call.client).or_default().push((call.sent, call.end));
        }
        for waits in waits.values_mut() {
            waits.sort_unstable();
            // Calls within calls: the outer one's wait goes on behind the inner one's.
            let mut last = 0;
            for (_, end) in waits {
                last = last.max(*end);
                *end = last;
            }
        }
        waits
    }

    /// When the receiver of a oneway call was done; its receipt if the trace does not show it.
    fn done(&self, call: &Call, waits: &HashMap<i32, Vec<(u64, u64)>>) -> u64 {
        let server = call.server.unwrap_or(-1);
        let waits = waits.get(&server).map_or(&[][..], Vec::as_slice);
        let slept = || self.threads.sleeps_after(server, call.received, waits);
        match self.served.get(&(server, call.received)) {
            Some((done, true)) => *done,
            // It may have slept before it took the next call.
            Some((done, false)) if self.shown.switches => slept().map_or(*done, |slept| slept.min(*done)),
            _ => slept().unwrap_or(call.received),
        }
    }

    /// Takes from an event all but its call.
    fn note(&mut self, event: &Event) {
        match &event.kind {
            Kind::Switch { .. } => self.shown.switches = true,
            Kind::Waking(_) | Kind::Wakeup(_) | Kind::WakeupNew(_) => self.shown.wakeups = true,
            Kind::Binder(flavour, binder) => self.binder(event, *flavour, binder),
            Kind::Print(text) => self.mark(event, text),
            _ => {}
        }
        self.threads.take(event);
    }

    fn mark(&mut self, event: &Event, text: &str) {
        let Some(mark @ Mark::Own { verb: SUBJECT, .. }) = Mark::parse(text) else { return };
        match mark.value("load") {
            Some("begin") => self.load.0 = self.load.0.or(Some(event.ts)),
            Some("end") => self.load.1 = Some(event.ts),
            _ => {}
        }
        let neutral = |name: &&str| crate::is_name(name) && *name != text::MEASURING;
        if let Some(name) = mark.value("process").filter(neutral)
            && self.named.len() < MOST_NAMES
        {
            self.named.insert(event.tgid.unwrap_or(event.tid), without_copy(name).to_owned());
        }
    }

    fn binder(&mut self, event: &Event, flavour: Flavour, binder: &Binder) {
        let (ts, tid) = (event.ts, event.tid);
        let numbered = |debug_id: i32| (flavour == Flavour::Embedded, debug_id);
        if let Binder::Transaction(sent) = *binder
            && !sent.reply
            && sent.to_thread == 0
            && self.to_process.len() < MOST_CALLS
        {
            self.to_process.insert(numbered(sent.debug_id));
        }
        let leaves = match *binder {
            Binder::Transaction(sent) if sent.is_oneway() => {
                self.sending.insert(tid, ts);
                false
            }
            Binder::AllocBuf(_) => {
                self.shown.sizes = true;
                false
            }
            Binder::FdSend { debug_id, .. } => {
                if self.carried.len() >= MOST_CARRYING {
                    self.carried.clear();
                }
                *self.carried.entry(numbered(debug_id)).or_default() += 1;
                false
            }
            Binder::Received { debug_id } => {
                if self.to_process.remove(&numbered(debug_id)) {
                    self.is_done(tid, ts, false);
                }
                false
            }
            Binder::BufferRelease(buffer) => {
                if self.serving.get(&tid).is_some_and(|(of, _)| *of == buffer.debug_id) {
                    self.is_done(tid, ts, true);
                }
                false
            }
            Binder::WaitForWork { proc_work, .. } => {
                if proc_work {
                    self.is_done(tid, ts, true);
                }
                true
            }
            Binder::WriteDone { .. } | Binder::IoctlDone { .. } | Binder::Return { .. } => true,
            _ => false,
        };
        if leaves
            && let Some(sent) = self.sending.remove(&tid)
            && self.freed.len() < MOST_CALLS
        {
            self.freed.insert((tid, sent), ts);
        }
    }

    /// A thread is done with the oneway call that it served: now, or some time before.
    fn is_done(&mut self, tid: i32, ts: u64, now: bool) {
        if let Some((_, received)) = self.serving.remove(&tid)
            && self.served.len() < MOST_CALLS
        {
            self.served.insert((tid, received), (ts, now));
        }
    }

    fn keep(&mut self, call: &Transaction) {
        let numbered = (call.flavour == Flavour::Embedded, call.debug_id);
        let descriptors = self.carried.remove(&numbered);
        self.to_process.remove(&numbered);
        if let (true, Some(server)) = (call.outcome == Outcome::Delivered, call.server) {
            self.serving.insert(server.tid, (call.debug_id, call.end));
        }
        let unfit = match call.outcome {
            Outcome::Failed | Outcome::Dead | Outcome::Frozen => &mut self.unfit.failed,
            _ if call.doubtful => &mut self.unfit.doubtful,
            Outcome::Replied | Outcome::Delivered if self.closed => &mut self.unfit.beyond,
            Outcome::Replied | Outcome::Delivered => {
                self.calls.push(Kept { call: kept(call, descriptors.unwrap_or(0)), doubtful: false });
                return;
            }
            _ => &mut self.unfit.cut,
        };
        *unfit += 1;
    }

    /// Calls within a gap may lack events of it.
    fn doubt(&mut self, gap: Gap) {
        let late = self.calls.iter_mut().rev().take_while(|kept| kept.call.end > gap.begin);
        for kept in late {
            kept.doubtful |= kept.call.sent < gap.end;
        }
    }
}

/// Name of a process without the number of its copy: copies are one process in figures.
fn without_copy(name: &str) -> &str {
    let is_number = |copy: &str| !copy.is_empty() && copy.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once('.')
        .filter(|(name, copy)| !name.is_empty() && is_number(copy))
        .map_or(name, |(name, _)| name)
}

fn kept(call: &Transaction, descriptors: u32) -> Call {
    let received = call.received.unwrap_or(call.end).clamp(call.sent, call.end.max(call.sent));
    let done = call.replied.unwrap_or(call.end).clamp(received, call.end.max(received));
    Call {
        client: call.client.tid,
        caller: call.client.tgid.unwrap_or(call.client.tid.wrapping_neg()),
        server: call.server.map(|server| server.tid),
        callee: call.to_proc,
        oneway: call.oneway,
        sent: call.sent,
        free: call.end.max(call.sent),
        received,
        done,
        end: call.end.max(call.sent),
        request: call.request.map(Size::of),
        reply: call.reply.map(Size::of),
        descriptors,
        prio: call.client.prio,
        parent: None,
        back: false,
        orphan: call.nested,
    }
}
