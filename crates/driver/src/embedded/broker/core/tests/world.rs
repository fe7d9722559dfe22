//! Room: a world of vectors around a core: what is written, what is sent, and shorthands for what
//! clients say.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;

use abi::codes::{bc, br, object, tf};
use abi::layout::ExtendedError;

use super::super::{Client, Core, Outside, Shown, ThreadLine};
use crate::embedded::protocol::{
    Delivery, Item, Lineage, ProcId, Request, Sched, ThreadKey, Transact, TransactKind,
};

/// The thread that most tests speak for.
pub(super) const T1: ThreadKey = ThreadKey { slot: 0, generation: 1 };
/// Another one.
pub(super) const T2: ThreadKey = ThreadKey { slot: 1, generation: 1 };
/// Bytes of an area.
pub(super) const MAP: usize = 131_072;
/// Where areas are mapped.
pub(super) const BASE: u64 = 0x7000_0000_0000;

#[derive(Default)]
pub(super) struct Vectors {
    pub(super) areas: BTreeMap<ProcId, Vec<u8>>,
    pub(super) items: BTreeMap<ProcId, VecDeque<Item>>,
    pub(super) busy: BTreeSet<ProcId>,
    pub(super) gates: BTreeMap<u32, u32>,
    /// Who was asked to settle, and the gates as they stood then.
    pub(super) settled: Vec<(ProcId, BTreeMap<u32, u32>)>,
    pub(super) no_channels: bool,
    pub(super) dropped: Vec<u32>,
    /// What the only thread of each process shows.
    pub(super) serving: [u32; 6],
}

impl Outside for Vectors {
    fn write(&mut self, proc: ProcId, offset: u64, bytes: &[u8]) {
        let area = self.areas.get_mut(&proc).unwrap();
        area[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
    }
    fn zero(&mut self, proc: ProcId, offset: u64, len: u64) {
        self.write(proc, offset, &vec![0; len as usize]);
    }
    fn busy(&self, proc: ProcId) -> bool {
        self.busy.contains(&proc)
    }
    fn settle(&mut self, proc: ProcId) -> bool {
        self.settled.push((proc, self.gates.clone()));
        !self.busy(proc)
    }
    fn now_ms(&self) -> u64 {
        0
    }
    fn threads(&self, _proc: ProcId) -> Vec<ThreadLine> {
        let serving = self.serving;
        vec![ThreadLine { key: T1, tid: 77, looper: 2, need_return: false, depth: 0, ready: true, serving }]
    }
    fn shown(&self, _proc: ProcId) -> Shown {
        let words = [(bc::TRANSACTION, 5), (br::FAILED_REPLY, 1)].into();
        Shown { requested: 1, started: 2, untaken: 3, threads_ever: 4, words }
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

/// What an answer said, and what else came with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) errno: i32,
    pub(super) outcome: u32,
    pub(super) stops: bool,
    pub(super) id: u32,
    pub(super) error: ExtendedError,
    pub(super) words: [u64; 4],
}

impl Said {
    /// The errno of a refused transaction.
    pub(super) fn failed(&self) -> (u32, i32) {
        assert!(self.stops && self.error.command == self.outcome);
        (self.outcome, -self.error.param)
    }
}

#[derive(Default)]
pub(super) struct World {
    pub(super) core: Core,
    pub(super) out: Vectors,
    pids: u32,
}

impl World {
    /// A process of its own with a mapped area.
    pub(super) fn open(&mut self) -> ProcId {
        self.pids += 1;
        self.open_as(|_| {})
    }

    pub(super) fn open_as(&mut self, change: impl FnOnce(&mut Client)) -> ProcId {
        let mut client = Client {
            pid: 1000 + self.pids,
            euid: 50,
            context: "binder".into(),
            map_size: MAP,
            security_context: None,
            lanes: false,
        };
        change(&mut client);
        let (size, proc) = (client.map_size, self.core.open(client));
        self.out.areas.insert(proc, vec![0xaa; size]);
        if size > 0 {
            self.tell(proc, Request::Mapped { base: BASE });
        }
        proc
    }

    /// A manager with this flags word for its node.
    pub(super) fn manager(&mut self, flags: u32) -> ProcId {
        let proc = self.open();
        assert_eq!(self.become_manager(proc, 0x11, flags).errno, 0);
        proc
    }

    pub(super) fn become_manager(&mut self, proc: ProcId, ptr: u64, flags: u32) -> Said {
        let node = abi::layout::FlatBinderObject { kind: 0, flags, binder: ptr, cookie: ptr + 1 };
        self.ask(proc, Request::BecomeManager { node })
    }

    /// A request without an answer.
    pub(super) fn tell(&mut self, proc: ProcId, request: Request) {
        self.core.request(proc, T1, 0, request, &[], Vec::new(), &mut self.out);
    }

    pub(super) fn ask(&mut self, proc: ProcId, request: Request) -> Said {
        self.ask_with(proc, T1, request, &[], Vec::new())
    }

    pub(super) fn ask_with(
        &mut self,
        proc: ProcId,
        thread: ThreadKey,
        request: Request,
        bytes: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Said {
        self.core.request(proc, thread, 5, request, bytes, fds, &mut self.out);
        let line = self.out.items.entry(proc).or_default();
        let answers = |item: &Item| matches!(item, Item::Answer { .. });
        assert_eq!(line.iter().filter(|item| answers(item)).count(), 1, "one answer each");
        let at = line.iter().position(answers).unwrap();
        let Some(Item::Answer { seq: 5, errno, outcome, sender_stops, transaction, error, words, .. }) =
            line.remove(at)
        else {
            panic!("the answer has the request's number");
        };
        Said { errno, outcome, stops: sender_stops, id: transaction, error, words }
    }

    /// A call without objects.
    pub(super) fn call(&mut self, from: ProcId, handle: u32, flags: u32, data: &[u8]) -> Said {
        self.send(from, &Message::call(handle).flags(flags).data(data))
    }

    pub(super) fn send(&mut self, from: ProcId, message: &Message) -> Said {
        self.send_fds(from, message, Vec::new())
    }

    pub(super) fn send_fds(&mut self, from: ProcId, message: &Message, fds: Vec<OwnedFd>) -> Said {
        let request = Request::Transact { transact: message.transact() };
        self.ask_with(from, message.thread, request, &message.bytes(), fds)
    }

    /// The next item of a process.
    pub(super) fn next(&mut self, proc: ProcId) -> Option<Item> {
        self.out.items.get_mut(&proc)?.pop_front()
    }

    pub(super) fn nothing(&mut self, proc: ProcId) {
        assert_eq!(self.next(proc), None);
    }

    /// The next item, which is a call.
    pub(super) fn delivered(&mut self, proc: ProcId) -> Delivery {
        match self.next(proc) {
            Some(Item::Deliver { delivery }) => delivery,
            other => panic!("expected a call, not {other:?}"),
        }
    }

    /// The next item, which is a reply: where it lies, its data and offsets sizes.
    pub(super) fn replied(&mut self, proc: ProcId) -> (u64, u64, u64) {
        match self.next(proc) {
            Some(Item::Reply { buffer, data_size, offsets_size, .. }) => (buffer, data_size, offsets_size),
            other => panic!("expected a reply, not {other:?}"),
        }
    }

    /// The next item, which says that there will be no reply.
    pub(super) fn refused(&mut self, proc: ProcId) -> (u32, ExtendedError) {
        match self.next(proc) {
            Some(Item::Refused { outcome, error, .. }) => (outcome, error),
            other => panic!("expected a refusal, not {other:?}"),
        }
    }

    /// The next item, which is work: its number, for whom, whether deferred.
    pub(super) fn work(&mut self, proc: ProcId) -> (u64, Option<ThreadKey>, bool) {
        match self.next(proc) {
            Some(Item::Work { work, thread, deferred }) => (work, thread, deferred),
            other => panic!("expected work, not {other:?}"),
        }
    }

    /// What work tells.
    pub(super) fn take(&mut self, proc: ProcId, work: u64) -> Vec<(u32, [u64; 2])> {
        self.core.request(proc, T1, 6, Request::TakeWork { work }, &[], Vec::new(), &mut self.out);
        match self.out.items.get_mut(&proc).unwrap().pop_back() {
            Some(Item::Answer { errno: 0, returns, .. }) => returns.as_slice().to_vec(),
            other => panic!("expected what the work tells, not {other:?}"),
        }
    }

    /// What the next item, which is work of the whole process, tells.
    pub(super) fn told(&mut self, proc: ProcId) -> Vec<(u32, [u64; 2])> {
        let (work, thread, deferred) = self.work(proc);
        assert_eq!((thread, deferred), (None, false));
        self.take(proc, work)
    }

    /// The owner hears of a node that it just sent, and acknowledges.
    pub(super) fn hear(&mut self, owner: ProcId) {
        let (work, _, _) = self.work(owner);
        for (word, [ptr, cookie]) in self.take(owner, work) {
            let command = if word == br::ACQUIRE { bc::ACQUIRE_DONE } else { bc::INCREFS_DONE };
            self.ask(owner, Request::CountDone { command, ptr, cookie });
        }
    }

    pub(super) fn count(&mut self, proc: ProcId, command: u32, handle: u32) -> i32 {
        self.ask(proc, Request::Count { command, handle }).errno
    }

    pub(super) fn free(&mut self, proc: ProcId, offset: u64) {
        assert_eq!(self.ask(proc, Request::FreeBuffer { offset }).errno, 0);
    }

    pub(super) fn reply(&mut self, from: ProcId, transaction: u32, data: &[u8]) -> Said {
        self.send(from, &Message::reply(transaction).data(data))
    }

    pub(super) fn area(&self, proc: ProcId, at: u64, len: usize) -> &[u8] {
        &self.out.areas[&proc][at as usize..at as usize + len]
    }

    pub(super) fn word(&self, proc: ProcId, at: u64) -> u64 {
        u64::from_ne_bytes(self.area(proc, at, 8).try_into().unwrap())
    }

    pub(super) fn word32(&self, proc: ProcId, at: u64) -> u32 {
        u32::from_ne_bytes(self.area(proc, at, 4).try_into().unwrap())
    }

    /// `from` sends its node to `to`, which owns what `handle` names, and gets handle `gives` of it
    /// that stays: the buffer is freed after an ACQUIRE.
    pub(super) fn export(&mut self, from: ProcId, handle: u32, to: ProcId, ptr: u64, flags: u32) -> u32 {
        let said = self.send(from, &Message::call(handle).oneway().node(ptr, ptr + 1, flags));
        assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
        let delivery = self.delivered(to);
        let gives = self.word32(to, delivery.buffer + 8);
        assert_eq!(self.count(to, bc::ACQUIRE, gives), 0);
        self.free(to, delivery.buffer);
        self.hear(from);
        gives
    }

    /// Everything is over: all is closed, and the core knows nothing more.
    pub(super) fn end(mut self) {
        for proc in self.core.procs().map(|(proc, _)| proc).collect::<Vec<_>>() {
            self.core.close(proc, &mut self.out);
        }
        assert!(self.core.is_empty());
        assert!(self.core.nodes.is_empty(), "{:?}", self.core.nodes);
        assert!(self.core.calls.is_empty() && self.core.buffer_of.is_empty());
        assert!(self.core.channels.is_empty() && self.core.routes.is_empty() && self.core.pids.is_empty());
    }
}

/// A transaction in the making.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) kind: TransactKind,
    pub(super) thread: ThreadKey,
    pub(super) code: u32,
    pub(super) flags: u32,
    pub(super) data: Vec<u8>,
    pub(super) offsets: Vec<u64>,
    pub(super) gathered: Vec<u8>,
    pub(super) buffers_size: Option<u64>,
    pub(super) fault: (u32, i32),
    pub(super) data_fault: i32,
    pub(super) frees: Option<u64>,
    pub(super) lineage: Lineage,
}

impl Message {
    pub(super) fn of(kind: TransactKind) -> Self {
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
            lineage: Lineage::EMPTY,
        }
    }
    pub(super) fn call(handle: u32) -> Self {
        Self::of(TransactKind::Call { handle })
    }
    pub(super) fn reply(transaction: u32) -> Self {
        Self::of(TransactKind::Reply { transaction })
    }
    pub(super) fn flags(mut self, flags: u32) -> Self {
        self.flags |= flags;
        self
    }
    pub(super) fn oneway(self) -> Self {
        self.flags(tf::ONE_WAY)
    }
    pub(super) fn code(mut self, code: u32) -> Self {
        self.code = code;
        self
    }
    pub(super) fn data(mut self, data: &[u8]) -> Self {
        self.data.extend_from_slice(data);
        self
    }
    /// An object of these words, found by an offset.
    pub(super) fn object(mut self, words: &[u64]) -> Self {
        self.offsets.push(self.data.len() as u64);
        words.iter().for_each(|word| self.data.extend_from_slice(&word.to_ne_bytes()));
        self
    }
    pub(super) fn flat(self, kind: u32, flags: u32, binder: u64, cookie: u64) -> Self {
        self.object(&[u64::from(kind) | u64::from(flags) << 32, binder, cookie])
    }
    pub(super) fn node(self, ptr: u64, cookie: u64, flags: u32) -> Self {
        self.flat(object::BINDER, flags, ptr, cookie)
    }
    pub(super) fn handle(self, handle: u32) -> Self {
        self.flat(object::HANDLE, 0, handle.into(), 0)
    }
    pub(super) fn fd(self) -> Self {
        self.flat(object::FD, 0, 0xffff_0000_0003, 9)
    }
    /// A scattered buffer, with a parent (index, offset) or none.
    pub(super) fn ptr(mut self, bytes: &[u8], parent: Option<(u64, u64)>) -> Self {
        let (index, offset) = parent.unwrap_or_default();
        let flags = u64::from(parent.is_some());
        let made = [u64::from(object::PTR) | flags << 32, 0x5000, bytes.len() as u64, index, offset];
        self = self.object(&made);
        self.gathered.extend_from_slice(bytes);
        self.gathered.resize(self.gathered.len().next_multiple_of(8), 0);
        self
    }
    pub(super) fn fda(self, count: u64, parent: u64, offset: u64) -> Self {
        self.object(&[object::FDA.into(), count, parent, offset])
    }
    pub(super) fn transact(&self) -> Transact {
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
            sched: Sched::default(),
            lineage: self.lineage,
        }
    }
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.data.clone();
        bytes.resize(bytes.len().next_multiple_of(8), 0x55);
        self.offsets.iter().for_each(|offset| bytes.extend_from_slice(&offset.to_ne_bytes()));
        bytes.extend_from_slice(&self.gathered);
        bytes
    }
}
