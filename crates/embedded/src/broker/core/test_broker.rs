//! A core on a host that records writes and items in vectors, with shorthands for clients' requests: for tests and
//! fuzz targets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;

use abi::codes::{bc, br, object, tf};
use abi::layout::ExtendedError;

use super::arena::Arena;
use super::host::DirectCall;
use super::{Client, Core, Host, ProcSnapshot, ThreadSnapshot};
use crate::rpc::protocol::{
    Delivery, Item, Lineage, Link, ProcId, Request, Sched, ThreadKey, Transact, TransactKind,
};
use crate::shm::lease::Range;

/// The thread that most tests use.
pub(crate) const T1: ThreadKey = ThreadKey { slot: 0, generation: 1 };
/// Another thread.
pub(crate) const T2: ThreadKey = ThreadKey { slot: 1, generation: 1 };
/// Bytes of an area.
pub(crate) const MAP: usize = 131_072;
/// Address of the receiving areas.
pub(crate) const BASE: u64 = 0x7000_0000_0000;

#[derive(Default)]
pub(crate) struct RecordingHost {
    pub(crate) areas: BTreeMap<ProcId, Vec<u8>>,
    pub(crate) items: BTreeMap<ProcId, VecDeque<Item>>,
    pub(crate) busy: BTreeSet<ProcId>,
    pub(crate) now_ms: u64,
    /// Ranges placed by processes with a lease.
    pub(crate) placed: BTreeMap<ProcId, Vec<Range>>,
    /// The gaps that were last leased, the largest first.
    pub(crate) leased: BTreeMap<ProcId, Vec<Range>>,
    pub(crate) gates: BTreeMap<u32, u32>,
    /// Processes that `settle` was called for, with the gates at that time.
    pub(crate) settled: Vec<(ProcId, BTreeMap<u32, u32>)>,
    pub(crate) no_channels: bool,
    pub(crate) dropped: Vec<u32>,
    /// Threads that have exited.
    pub(crate) exited: Vec<Link>,
    /// State of each process's only thread.
    pub(crate) serving: [u32; 6],
    pub(crate) direct_calls: Vec<DirectCall>,
    /// Channel and binding of calls that no thread has read.
    pub(crate) unread_calls: Vec<(u32, u32)>,
    /// Tags of the buffers that each process has placed.
    pub(crate) tagged: BTreeMap<ProcId, Vec<u32>>,
}

impl Host for RecordingHost {
    fn write(&mut self, proc: ProcId, offset: u64, bytes: &[u8]) {
        let area = self.areas.get_mut(&proc).expect("opened");
        area[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    }
    fn zero(&mut self, proc: ProcId, offset: u64, len: u64) {
        self.write(proc, offset, &vec![0; len as usize]);
    }
    fn has_thread(&self, link: Link) -> bool {
        !self.exited.contains(&link)
    }
    fn suspend_lease(&mut self, proc: ProcId) -> Option<&[Range]> {
        self.placed.get(&proc).map(Vec::as_slice)
    }
    fn resume_lease(&mut self, proc: ProcId, arena: &Arena) {
        let gaps: Vec<Range> = arena.largest_gaps(usize::MAX).collect();
        self.leased.insert(proc, gaps);
    }
    fn placed(&self, proc: ProcId) -> Vec<Range> {
        self.placed.get(&proc).cloned().unwrap_or_default()
    }
    fn busy(&self, proc: ProcId) -> bool {
        self.busy.contains(&proc)
    }
    fn settle(&mut self, proc: ProcId) -> bool {
        self.settled.push((proc, self.gates.clone()));
        !self.busy(proc)
    }
    fn now_ms(&self) -> u64 {
        self.now_ms
    }
    fn threads(&self, _proc: ProcId) -> Vec<ThreadSnapshot> {
        let serving = self.serving;
        vec![ThreadSnapshot {
            key: T1,
            tid: 77,
            looper: 2,
            need_return: false,
            depth: 0,
            ready: true,
            serving,
        }]
    }
    fn snapshot(&self, _proc: ProcId) -> ProcSnapshot {
        let words = [(bc::TRANSACTION, 5), (br::FAILED_REPLY, 1)].into();
        ProcSnapshot { requested: 1, started: 2, untaken: 3, threads_ever: 4, words }
    }
    fn unread_calls(&self, _callee: ProcId) -> Vec<(u32, u32)> {
        self.unread_calls.clone()
    }
    fn tagged(&self, proc: ProcId, tag: u32) -> u64 {
        self.tagged.get(&proc).map_or(0, |all| all.iter().filter(|other| **other == tag).count() as u64)
    }
    fn direct_calls(&mut self) -> Vec<DirectCall> {
        self.direct_calls.clone()
    }
    fn item(&mut self, to: ProcId, item: Item) {
        self.items.entry(to).or_default().push_back(item);
    }
    fn make_channel(&mut self, channel: u32, _bit: u32, _caller: ProcId, _callee: ProcId) -> bool {
        self.gates.insert(channel, 0);
        !self.no_channels
    }
    fn set_gate(&mut self, channel: u32, gate: u32) {
        self.gates.insert(channel, gate);
    }
    fn wake_all(&mut self, _proc: ProcId) {}
    fn drop_channel(&mut self, channel: u32) {
        self.dropped.push(channel);
    }
}

/// An answer, and the items that came with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) errno: i32,
    pub(crate) outcome: u32,
    pub(crate) stops: bool,
    pub(crate) id: u32,
    pub(crate) error: ExtendedError,
    pub(crate) words: [u64; 4],
}

impl Said {
    /// The errno of a refused transaction.
    pub(crate) fn failed(&self) -> (u32, i32) {
        assert!(self.stops && self.error.command == self.outcome);
        (self.outcome, -self.error.param)
    }
}

#[derive(Default)]
pub(crate) struct TestBroker {
    pub(crate) core: Core,
    pub(crate) host: RecordingHost,
    pids: u32,
}

impl TestBroker {
    /// Opens a process with a mapped area.
    pub(crate) fn open(&mut self) -> ProcId {
        self.pids += 1;
        self.open_as(|_| {})
    }

    pub(crate) fn pid(&self, proc: ProcId) -> u32 {
        self.core.procs[&proc].client.pid
    }

    pub(crate) fn open_as(&mut self, change: impl FnOnce(&mut Client)) -> ProcId {
        let mut client = Client {
            pid: 1000 + self.pids,
            euid: 50,
            context: "binder".into(),
            map_size: MAP,
            security_context: None,
            call_slots: false,
        };
        change(&mut client);
        let (size, proc) = (client.map_size, self.core.open(client));
        self.host.areas.insert(proc, vec![0xaa; size]);
        if size > 0 {
            self.tell(proc, Request::Mapped { base: BASE });
        }
        proc
    }

    /// A broker with a manager and another process.
    pub(crate) fn pair(flags: u32) -> (Self, ProcId, ProcId) {
        let mut broker = Self::default();
        let server = broker.manager(flags);
        let client = broker.open();
        (broker, server, client)
    }

    /// A manager with this flags word for its node.
    pub(crate) fn manager(&mut self, flags: u32) -> ProcId {
        let proc = self.open();
        assert_eq!(self.become_manager(proc, 0x11, flags).errno, 0);
        proc
    }

    pub(crate) fn become_manager(&mut self, proc: ProcId, ptr: u64, flags: u32) -> Said {
        let node = abi::layout::FlatBinderObject { kind: 0, flags, binder: ptr, cookie: ptr + 1 };
        self.ask(proc, Request::BecomeManager { node })
    }

    /// A request without an answer.
    pub(crate) fn tell(&mut self, proc: ProcId, request: Request) {
        self.core.request(proc, T1, 0, request, &[], Vec::new(), &mut self.host);
    }

    pub(crate) fn ask(&mut self, proc: ProcId, request: Request) -> Said {
        self.ask_with(proc, T1, request, &[], Vec::new())
    }

    pub(crate) fn ask_with(
        &mut self,
        proc: ProcId,
        thread: ThreadKey,
        request: Request,
        bytes: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Said {
        self.core.request(proc, thread, 5, request, bytes, fds, &mut self.host);
        let line = self.host.items.entry(proc).or_default();
        let answers = |item: &Item| matches!(item, Item::Answer { .. });
        assert_eq!(line.iter().filter(|item| answers(item)).count(), 1, "one answer each");
        let at = line.iter().position(answers).expect("counted");
        let Some(Item::Answer { seq: 5, errno, outcome, sender_stops, transaction, error, words, .. }) =
            line.remove(at)
        else {
            panic!("the answer has the request's number");
        };
        Said { errno, outcome, stops: sender_stops, id: transaction, error, words }
    }

    /// A call without objects.
    pub(crate) fn call(&mut self, from: ProcId, handle: u32, flags: u32, data: &[u8]) -> Said {
        self.send(from, &Message::call(handle).flags(flags).data(data))
    }

    pub(crate) fn send(&mut self, from: ProcId, message: &Message) -> Said {
        self.send_fds(from, message, Vec::new())
    }

    pub(crate) fn send_fds(&mut self, from: ProcId, message: &Message, fds: Vec<OwnedFd>) -> Said {
        let request = Request::Transact { transact: message.transact() };
        self.ask_with(from, message.thread, request, &message.bytes(), fds)
    }

    /// The next item of a process.
    pub(crate) fn next(&mut self, proc: ProcId) -> Option<Item> {
        self.host.items.get_mut(&proc)?.pop_front()
    }

    pub(crate) fn nothing(&mut self, proc: ProcId) {
        assert_eq!(self.next(proc), None);
    }

    /// The next item, which is a call.
    pub(crate) fn delivered(&mut self, proc: ProcId) -> Delivery {
        match self.next(proc) {
            Some(Item::Deliver { delivery }) => delivery,
            other => panic!("expected a call, not {other:?}"),
        }
    }

    /// The next item, which is a reply: where it lies, its data and offsets sizes.
    pub(crate) fn replied(&mut self, proc: ProcId) -> (u64, u64, u64) {
        match self.next(proc) {
            Some(Item::Reply { buffer, data_size, offsets_size, .. }) => (buffer, data_size, offsets_size),
            other => panic!("expected a reply, not {other:?}"),
        }
    }

    /// The next item, a refusal.
    pub(crate) fn refused(&mut self, proc: ProcId) -> (u32, ExtendedError) {
        match self.next(proc) {
            Some(Item::Refused { outcome, error, .. }) => (outcome, error),
            other => panic!("expected a refusal, not {other:?}"),
        }
    }

    /// The next item, which is work: its number, for whom, whether deferred.
    pub(crate) fn work(&mut self, proc: ProcId) -> (u64, Option<ThreadKey>, bool) {
        match self.next(proc) {
            Some(Item::Work { work, thread, deferred }) => (work, thread, deferred),
            other => panic!("expected work, not {other:?}"),
        }
    }

    /// Returns of a work number.
    pub(crate) fn take(&mut self, proc: ProcId, work: u64) -> Vec<(u32, [u64; 2])> {
        self.core.request(proc, T1, 6, Request::TakeWork { work }, &[], Vec::new(), &mut self.host);
        match self.host.items.get_mut(&proc).and_then(VecDeque::pop_back) {
            Some(Item::Answer { errno: 0, returns, .. }) => returns.as_slice().to_vec(),
            other => panic!("expected what the work tells, not {other:?}"),
        }
    }

    /// Returns of the next item, which is work of the whole process.
    pub(crate) fn told(&mut self, proc: ProcId) -> Vec<(u32, [u64; 2])> {
        let (work, thread, deferred) = self.work(proc);
        assert_eq!((thread, deferred), (None, false));
        self.take(proc, work)
    }

    /// The owner is notified of a node that it just sent, and acknowledges.
    pub(crate) fn hear(&mut self, owner: ProcId) {
        let (work, _, _) = self.work(owner);
        for (word, [ptr, cookie]) in self.take(owner, work) {
            let command = if word == br::ACQUIRE { bc::ACQUIRE_DONE } else { bc::INCREFS_DONE };
            self.ask(owner, Request::CountDone { command, ptr, cookie });
        }
    }

    pub(crate) fn count(&mut self, proc: ProcId, command: u32, handle: u32) -> i32 {
        self.ask(proc, Request::Count { command, handle }).errno
    }

    pub(crate) fn free(&mut self, proc: ProcId, offset: u64) {
        assert_eq!(self.ask(proc, Request::FreeBuffer { offset }).errno, 0);
    }

    pub(crate) fn reply(&mut self, from: ProcId, transaction: u32, data: &[u8]) -> Said {
        self.send(from, &Message::reply(transaction).data(data))
    }

    pub(crate) fn area(&self, proc: ProcId, at: u64, len: usize) -> &[u8] {
        &self.host.areas[&proc][at as usize..at as usize + len]
    }

    pub(crate) fn word(&self, proc: ProcId, at: u64) -> u64 {
        u64::from_ne_bytes(self.area(proc, at, 8).try_into().expect("8 bytes"))
    }

    pub(crate) fn word32(&self, proc: ProcId, at: u64) -> u32 {
        u32::from_ne_bytes(self.area(proc, at, 4).try_into().expect("4 bytes"))
    }

    /// `from` sends its node to `to`, the owner of the node behind `handle`; `to` gets the lasting handle `gives`:
    /// the buffer is freed after an ACQUIRE.
    pub(crate) fn export(&mut self, from: ProcId, handle: u32, to: ProcId, ptr: u64, flags: u32) -> u32 {
        let said = self.send(from, &Message::call(handle).oneway().node(ptr, ptr + 1, flags));
        assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
        let delivery = self.delivered(to);
        let gives = self.word32(to, delivery.buffer + 8);
        assert_eq!(self.count(to, bc::ACQUIRE, gives), 0);
        self.free(to, delivery.buffer);
        self.hear(from);
        gives
    }
}

/// Closes everything; the core must be empty then.
impl Drop for TestBroker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for proc in self.core.procs().map(|(proc, _)| proc).collect::<Vec<_>>() {
            self.core.close(proc, &mut self.host);
        }
        let Core { nodes, calls, buffer_of, channels, routes, pids, .. } = &self.core;
        assert!(self.core.is_empty() && nodes.is_empty(), "{nodes:?}");
        assert!(calls.is_empty() && buffer_of.is_empty());
        assert!(channels.is_empty() && routes.is_empty() && pids.is_empty());
    }
}

/// Builder of a transaction.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) kind: TransactKind,
    pub(crate) thread: ThreadKey,
    pub(crate) code: u32,
    pub(crate) flags: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) offsets: Vec<u64>,
    pub(crate) gathered: Vec<u8>,
    pub(crate) buffers_size: Option<u64>,
    pub(crate) fault: (u32, i32),
    pub(crate) data_fault: i32,
    pub(crate) frees: Option<u64>,
    pub(crate) out_of_turn: bool,
    pub(crate) lineage: Lineage,
}

impl Message {
    pub(crate) fn of(kind: TransactKind) -> Self {
        Self {
            kind,
            thread: T1,
            code: 3,
            flags: 0,
            data: Vec::new(),
            offsets: Vec::new(),
            gathered: Vec::new(),
            buffers_size: None,
            fault: (u32::MAX, 0),
            data_fault: 0,
            frees: None,
            out_of_turn: false,
            lineage: Lineage::EMPTY,
        }
    }
    pub(crate) fn call(handle: u32) -> Self {
        Self::of(TransactKind::Call { handle })
    }
    pub(crate) fn reply(transaction: u32) -> Self {
        Self::of(TransactKind::Reply { transaction })
    }
    pub(crate) fn flags(mut self, flags: u32) -> Self {
        self.flags |= flags;
        self
    }
    pub(crate) fn oneway(self) -> Self {
        self.flags(tf::ONE_WAY)
    }
    pub(crate) fn code(mut self, code: u32) -> Self {
        self.code = code;
        self
    }
    pub(crate) fn data(mut self, data: &[u8]) -> Self {
        self.data.extend_from_slice(data);
        self
    }
    /// An object of these words, found by an offset.
    pub(crate) fn object(mut self, words: &[u64]) -> Self {
        self.offsets.push(self.data.len() as u64);
        words.iter().for_each(|word| self.data.extend_from_slice(&word.to_ne_bytes()));
        self
    }
    pub(crate) fn flat(self, kind: u32, flags: u32, binder: u64, cookie: u64) -> Self {
        self.object(&[u64::from(kind) | u64::from(flags) << 32, binder, cookie])
    }
    pub(crate) fn node(self, ptr: u64, cookie: u64, flags: u32) -> Self {
        self.flat(object::BINDER, flags, ptr, cookie)
    }
    pub(crate) fn handle(self, handle: u32) -> Self {
        self.flat(object::HANDLE, 0, handle.into(), 0)
    }
    pub(crate) fn fd(self) -> Self {
        self.flat(object::FD, 0, 0xffff_0000_0003, 9)
    }
    /// A scattered buffer, with a parent (index, offset) or none.
    pub(crate) fn ptr(mut self, bytes: &[u8], parent: Option<(u64, u64)>) -> Self {
        let (index, offset) = parent.unwrap_or_default();
        let flags = u64::from(parent.is_some());
        let made = [u64::from(object::PTR) | flags << 32, 0x5000, bytes.len() as u64, index, offset];
        self = self.object(&made);
        self.gathered.extend_from_slice(bytes);
        self.gathered.resize(self.gathered.len().next_multiple_of(8), 0);
        self
    }
    pub(crate) fn fda(self, count: u64, parent: u64, offset: u64) -> Self {
        self.object(&[object::FDA.into(), count, parent, offset])
    }
    pub(crate) fn transact(&self) -> Transact {
        Transact {
            kind: self.kind,
            code: self.code,
            flags: self.flags,
            data_size: self.data.len() as u64,
            offsets_size: self.offsets.len() as u64 * 8,
            buffers_size: self.buffers_size.unwrap_or(self.gathered.len() as u64),
            gathered: self.gathered.len() as u64,
            fault_object: self.fault.0,
            fault_errno: self.fault.1,
            data_fault: self.data_fault,
            frees: self.frees,
            out_of_turn: self.out_of_turn,
            sched: Sched::default(),
            lineage: self.lineage,
        }
    }
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.data.clone();
        bytes.resize(bytes.len().next_multiple_of(8), 0x55);
        self.offsets.iter().for_each(|offset| bytes.extend_from_slice(&offset.to_ne_bytes()));
        bytes.extend_from_slice(&self.gathered);
        bytes
    }
}
