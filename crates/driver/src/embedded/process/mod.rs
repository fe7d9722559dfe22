//! Room: a process's half of the embedded driver: its threads, their transaction stacks and queues,
//! which thread gets what, and the two ways to a peer, through the broker and through a lane.
//! Not here: nodes, references, budgets and objects (`super::broker`), shared layouts
//! (`super::channel`), what the two say (`super::protocol`).
//!
//! - [`write`]: carries out commands. - [`read`], [`deliver`]: fills in returns.
//! - [`transact`]: calls and replies on their way out, with their bytes to the broker ([`gather`]) or into
//!   a lane ([`outgoing`]).
//! - [`inbox`], [`channels`]: what comes in, and whose it is. - [`wait`]: until something comes.
//! - [`lookout`]: a thread that looks after those that sleep often.
//! - [`ask`]: one request to the broker. - [`ioctls`]: everything beside `BINDER_WRITE_READ`.
//! - [`state`], [`todos`], [`spares`]: what all of them work on. - [`area`]: buffers of calls that came through lanes.
//! - [`sched`]: nice and real-time priorities. - [`marking`]: all of it in a trace, where that is asked for.
//!
//! Locks: [`Process::state`] is taken by every call. It is not held while a thread waits, nor while a large
//! payload is copied; a small one is, as letting go and taking it again costs more. Peers that sleep are
//! woken after it ([`Process::wake_later`]), but for the ends of calls that fail, and a new channel's memory
//! is fetched from the broker, which never waits for a client, under it. [`Process::outbox`] is held from filling the outbox until
//! the broker's answer, and `state` may be taken inside it, never the other way round.

mod area;
mod ask;
mod channels;
mod deliver;
mod gather;
mod inbox;
pub(super) mod ioctls;
mod lookout;
mod marking;
mod outgoing;
mod read;
mod sched;
mod spares;
mod state;
#[cfg(test)]
mod tests;
mod todos;
mod transact;
mod wait;
mod write;

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use abi::codes::ioctl;
use sys::fixed_memory::FixedMemory;
use sys::interrupt::ThreadId;
use sys::lock::{Held, Lock};
use sys::sealed_memory::{LentMemory, SealedMemory};

use super::channel::doorbell::{self, BellMemory, Doorbells};
use super::channel::ring::{self, Consumer, RingMemory};
use super::line::Line;
use super::marks::Marks;
use super::protocol::{ProcId, Request, ThreadKey};
use super::settings::{Inherit, Settings};
use super::wire::Hello;
use crate::connection::{Exchange, OpenOptions};
use crate::error::OpenError;
use area::Area;
use channels::Wake;
use lookout::LookoutThread;
use state::{Frame, Source, State, Thread};

/// The kernel's word of refusal for a thread too many; no driver has such a limit.
const EMFILE: i32 = 24;

/// Largest receiving area in use (contract OPN-06).
const MAP_MAX: usize = 4 << 20;

/// In errors.
const LOOKING: &str = "looking at the broker's shared memory";

type Guard<'p> = Held<'p, State>;

/// What a process knows of one of its threads outside the lock.
#[derive(Debug, Default)]
struct Local {
    /// The thread's next blocking read returns early (contract WR-05, EXT-07).
    need_return: AtomicBool,
    /// Something was queued for it since it looked last.
    kicked: AtomicBool,
    /// It published a call for a callee that watches the lane, and told nobody else yet.
    untold: AtomicBool,
    /// It found somebody to wake and has not done so yet.
    owes_wake: AtomicBool,
}

/// The arena and where it is mapped.
#[derive(Debug)]
struct Arena {
    memory: SealedMemory,
    lent: LentMemory,
}

/// One open connection.
#[derive(Debug)]
pub(super) struct Process {
    /// Tells this connection from others in thread-local memory.
    serial: u64,
    id: ProcId,
    settings: Settings,
    line: Line,
    bells: Doorbells<Arc<BellMemory>>,
    lookout: LookoutThread,
    arena: Option<Arena>,
    map_size: usize,
    outbox: Lock<SealedMemory>,
    nonblocking: AtomicBool,
    /// Where the last call through a lane came from: CPU + 1, 0 for none. A hint for waiting.
    caller_cpu: AtomicU32,
    locals: Box<[Local; doorbell::SLOTS as usize]>,
    area: Area,
    home: sched::Home,
    /// Where what is done here is traced; `None`, nearly always: it is not.
    marks: Option<Marks>,
    state: Lock<State>,
    inbox: Mutex<Consumer<Arc<RingMemory>>>,
    /// The same memory, to look whether there is anything without the lock.
    inbox_memory: Arc<RingMemory>,
    /// What lies there makes no sense: the broker can be heard no more.
    inbox_broken: AtomicBool,
}

thread_local! {
    /// The last connection that this thread used, and its slot there.
    static LAST: Cell<(u64, u32, u32)> = const { Cell::new((0, 0, 0)) };
}

fn tid() -> i32 {
    ThreadId::current().number()
}

impl Process {
    /// Opens a context of the broker in `directory`.
    pub(super) fn open(
        directory: &Path,
        name: &str,
        settings: Settings,
        options: OpenOptions,
        marks: Option<Marks>,
    ) -> Result<Self, OpenError> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let map_size = options.map_size.min(MAP_MAX);
        let hello = Hello { context: name.to_owned(), map_size, lanes: settings.lanes };
        let (line, welcome) = Line::open(directory, hello)?;
        let os = |call| move |source| OpenError::Os { path: directory.to_owned(), call, source };
        let broken = |_| OpenError::Os {
            path: directory.to_owned(),
            call: LOOKING,
            source: io::ErrorKind::InvalidData.into(),
        };
        let arena = match welcome.arena {
            Some(memory) => {
                let lent = memory.lend().map_err(os("mapping the receiving area"))?;
                Some(Arena { memory, lent })
            }
            None => None,
        };
        let bells = Arc::new(FixedMemory::new(welcome.doorbells).map_err(os(LOOKING))?);
        let bells = Doorbells::new(bells).map_err(broken)?;
        let inbox_memory = Arc::new(FixedMemory::new(welcome.inbox).map_err(os(LOOKING))?);
        let process = Self {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            id: welcome.proc,
            line,
            lookout: LookoutThread::new(bells.clone()),
            bells,
            inbox: Mutex::new(Consumer::new(inbox_memory.clone()).map_err(broken)?),
            inbox_memory,
            inbox_broken: AtomicBool::new(false),
            outbox: Lock::new(welcome.outbox),
            nonblocking: AtomicBool::new(options.nonblocking),
            caller_cpu: AtomicU32::new(0),
            locals: Box::new(std::array::from_fn(|_| Local::default())),
            area: Area::new(if settings.lanes { map_size } else { 0 })
                .map_err(os("making the area for calls through lanes"))?,
            home: sched::Home::find(),
            marks,
            state: Lock::new(State::new()),
            arena,
            map_size: options.map_size,
            settings,
        };
        process.bells.set_inherit(settings.inherit as u32);
        if let Some(arena) = &process.arena {
            process.post(&Request::Mapped { base: arena.lent.base() });
        }
        if let Some(marks) = &process.marks {
            process.stock_up(marks);
        }
        Ok(process)
    }

    #[inline]
    fn lock(&self) -> Guard<'_> {
        // A panic under the lock is a bug of this driver; the state is as good as ever for others.
        self.state.lock()
    }

    #[inline(always)]
    fn local(&self, slot: u32) -> &Local {
        &self.locals[state::index(slot)]
    }

    /// Where what is done here is traced. Hardly ever it is: what that takes lies apart from the rest.
    #[inline(always)]
    fn traced(&self) -> Option<&Marks> {
        let marks = self.marks.as_ref();
        if marks.is_some() {
            std::hint::cold_path();
        }
        marks
    }

    /// Has a peer woken once the lock is free: a system call under it would hold up the other threads,
    /// and taking it once more for that costs as much as everything else that is left to do.
    #[inline]
    fn wake_later(&self, thread: &mut Thread, wake: Wake) {
        self.local(thread.key.slot).owes_wake.store(true, Ordering::Relaxed);
        if let Some(earlier) = thread.wake.replace(wake) {
            earlier.carry_out(self.marks.as_ref());
        }
    }

    /// Lets go of the lock and wakes whom [`Self::wake_later`] was told of.
    #[inline]
    fn unlock(&self, mut st: Guard<'_>, slot: u32) -> Option<Wake> {
        let owes = &self.local(slot).owes_wake;
        if !owes.load(Ordering::Relaxed) {
            return None;
        }
        let wake = st.thread(slot).wake.take();
        owes.store(false, Ordering::Relaxed);
        drop(st);
        if let Some(wake) = &wake {
            wake.carry_out(self.marks.as_ref());
        }
        wake
    }

    /// The calling thread's slot, made at its first call.
    #[inline]
    fn enter<'p>(&self, st: &mut Guard<'p>) -> io::Result<u32> {
        let (serial, slot, generation) = LAST.get();
        if serial == self.serial && st.slot_of(ThreadKey { slot, generation }).is_some() {
            return Ok(slot);
        }
        self.enter_anew(st)
    }

    #[cold]
    fn enter_anew(&self, st: &mut State) -> io::Result<u32> {
        let tid = tid();
        let slot = match st.find(tid) {
            Some(slot) => slot,
            None => self.meet(st, tid)?,
        };
        LAST.set((self.serial, slot, st.thread(slot).key.generation));
        Ok(slot)
    }

    fn meet(&self, st: &mut State, tid: i32) -> io::Result<u32> {
        let slot = st.free_slot().ok_or_else(|| io::Error::from_raw_os_error(EMFILE))?;
        let generation = self.bell(slot).move_in(tid as u32);
        st.enter(ThreadKey { slot, generation }, tid);
        self.set_need_return(slot, true);
        Ok(slot)
    }

    #[inline]
    fn bell(&self, slot: u32) -> doorbell::Bell<'_, Arc<BellMemory>> {
        let place = state::index(slot) as u32;
        self.bells.slot(place).expect("slots are only given out below the number of doorbells")
    }

    /// Wakes a thread of this process.
    fn ring(&self, slot: u32) {
        self.local(slot).kicked.store(true, Ordering::Relaxed);
        let bell = self.bell(slot);
        if bell.ring() {
            bell.wake();
        }
    }

    /// One `BINDER_WRITE_READ`.
    pub(super) fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        // Before anything is sent: whoever wakes this thread later may boost it first.
        if let Some(marks) = self.traced() {
            marks.ioctl(ioctl::WRITE_READ);
        }
        let entered = (self.settings.inherit == Inherit::Rt).then(sched::seen);
        let mut st = self.lock();
        let slot = self.enter(&mut st)?;
        if entered.is_some() {
            st.thread(slot).before = entered;
        }
        let (reads, result) = match self.write(st, slot, exchange) {
            Ok(st) => {
                if let Some(marks) = self.traced() {
                    self.mark_written(marks, exchange, None);
                }
                (!exchange.read.is_empty(), self.read(st, slot, exchange))
            }
            Err(error) => {
                if let Some(marks) = self.traced() {
                    self.mark_written(marks, exchange, error.raw_os_error());
                }
                // A bad command takes the read part with it (contract WR-11).
                exchange.read_consumed = 0;
                (false, Err(error))
            }
        };
        self.set_need_return(slot, false);
        let local = self.local(slot);
        if local.owes_wake.load(Ordering::Relaxed) || local.untold.load(Ordering::Relaxed) {
            self.catch_up(slot);
        }
        if let Some(marks) = self.traced() {
            self.mark_end(marks, reads, &result);
        }
        result
    }

    /// Does for others what a thread does that waits; this one neither waited nor read.
    #[cold]
    fn catch_up(&self, slot: u32) {
        let ticket = {
            let mut st = self.lock();
            let ticket = st.thread(slot).last_lane().cloned();
            self.unlock(st, slot);
            ticket
        };
        self.tell(slot, ticket.as_ref());
        self.local(slot).untold.store(false, Ordering::Relaxed);
    }

    /// Whether the thread's next blocking read returns early (contract WR-05, EXT-07).
    #[inline]
    fn set_need_return(&self, slot: u32, on: bool) {
        let flag = &self.local(slot).need_return;
        if flag.load(Ordering::Relaxed) != on {
            flag.store(on, Ordering::Relaxed);
            self.bell(slot).show_need_return(on);
        }
    }

    /// The calls of the broker that a thread serves, for the state files (contract DBG-03).
    fn show_serving(&self, thread: &Thread) {
        let mut calls = [0; doorbell::SERVING];
        let serves = thread.stack.iter().filter_map(|frame| match frame {
            Frame::Serving(Source::Broker(call)) => Some(call.transaction),
            _ => None,
        });
        calls.iter_mut().zip(serves).for_each(|(place, call)| *place = call);
        self.bell(thread.key.slot).set_serving(calls);
    }

    /// The pool of loopers, for the state files (contract DBG-05).
    fn show_pool(&self, st: &State) {
        self.bells.set_pool(st.pool.requested.into(), st.pool.started);
    }

    /// Whether a thread has anything pending, for the broker's question at a freeze (contract FRZ-03).
    #[inline]
    fn show_depth(&self, thread: &Thread) {
        self.bell(thread.key.slot).set_depth(thread.depth());
    }

    /// See `Connection::lent`.
    pub(super) fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        let in_arena = || {
            let lent = &self.arena.as_ref()?.lent;
            lent.lent(address.checked_sub(lent.base())?, len)
        };
        self.area.lent(address, len).or_else(in_arena)
    }

    /// See `Connection::take_fd`.
    pub(super) fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        let mut st = self.lock();
        st.buffers.values_mut().find_map(|buffer| {
            let place = buffer.descriptors.iter().position(|(at, _)| *at == address)?;
            Some(buffer.descriptors.swap_remove(place).1)
        })
    }

    /// First address of the receiving area.
    pub(super) fn map_base(&self) -> Option<u64> {
        self.arena_base()
    }

    /// Gives the receiving area up (contract OPN-10).
    pub(super) fn unmap(&mut self) {
        self.arena = None;
        self.post(&Request::Mapped { base: 0 });
        // Once that is answered the broker knows: from now on calls are dead. If it is gone, so are they.
        let _ = self.ask_plainly(&Request::NodeDebugInfo { above: u64::MAX });
    }

    /// Size of the receiving area as asked for.
    pub(super) fn map_size(&self) -> usize {
        self.map_size
    }

    #[inline]
    fn inbox_has_records(&self) -> bool {
        !self.inbox_broken.load(Ordering::Relaxed) && ring::has_records(&self.inbox_memory)
    }

    /// Whether the broker can still be heard.
    fn is_connected(&self) -> bool {
        !self.inbox_broken.load(Ordering::Relaxed) && self.line.is_alive()
    }
}
