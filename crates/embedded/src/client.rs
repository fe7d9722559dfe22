//! The client half of the embedded driver, in every process that opens a connection: turns a thread's
//! commands into calls to a peer or requests to the broker, and what comes back into returns.
//!
//! [`Process::open`] opens a context; [`Process::map`] maps the receiving area, once per connection (contract
//! OPN-04). The two are separate, as in the kernel driver: before it is mapped, a connection can send and own
//! nodes, but cannot be called (OPN-09).
//!
//! The state machine is [`core`]: threads, stacks, queues, bindings. The other modules are the shell around
//! it. The shell takes the lock, waits, wakes, copies, talks to the broker, inherits priorities and traces:
//! - [`active_thread`]: a thread inside a driver call, with the lock. [`identity`]: which thread that is.
//! - [`mod@write`] takes the commands of an exchange. [`call`] and [`serve`] have the two sides of a call: made, or
//!   delivered and replied to. [`send`]: a transaction to the broker. [`free`]: buffers given back. `payload`, outside
//!   this module, encodes bytes.
//! - [`read`] writes the returns. It waits ([`wait`]), takes in what is new ([`inbox`]) and delivers it: [`deliver`] what
//!   came through the broker, [`call`] and [`serve`] what came in call slots.
//! - [`broker_request`]: one request to the broker and its answer. [`connection_end`]: the end of the broker.
//! - [`channel`]: one end of a channel. [`wake`]: wakes a peer's thread.
//! - [`arena`]: the receiving area. [`receive`]: copies payloads into it. [`placements`]: buffers that this process
//!   placed in it. [`delivered`]: buffers that the broker delivered.
//! - [`ioctls`]: the other ioctls, and waiting for readability. [`pollable`]: descriptors to poll. [`exit`]: the end of a
//!   thread. [`inherit`]: priority inheritance. [`trace`]: trace events.
//!
//! Not here: nodes, references, budgets and objects (`super::broker`), shared layouts (`super::shm`), the
//! messages between client and broker (`super::rpc::protocol`).
//!
//! Locks: every driver call takes [`Process::state`]. The lock is released while a thread waits or copies a
//! large payload that arrived; others are copied under it, because releasing and retaking the lock costs more.
//! [`Process::outbox`] is held from filling the outbox until the broker's answer. Lock order: `outbox`, then
//! `state`.

mod active_thread;
mod arena;
mod broker_request;
mod call;
mod channel;
mod connection_end;
mod core;
mod deliver;
mod delivered;
mod exit;
mod free;
pub(super) mod identity;
mod inbox;
mod inherit;
pub(super) mod ioctls;
mod placements;
mod pollable;
mod read;
mod receive;
mod send;
mod serve;
#[cfg(test)]
mod tests;
mod trace;
mod wait;
mod wake;
mod write;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use abi::codes::ioctl;
use sys::errno::{EBUSY, EINTR};
use sys::fixed_memory::FixedMemory;
use sys::lock::Lock;
use sys::sealed_memory::SealedMemory;

use self::core::thread::Thread;
use self::core::{Core, LooperPool};
use super::broker_connection::BrokerConnection;
use super::program::{Caller, OwnNumbers, Program};
use super::rpc::framing::Hello;
use super::rpc::protocol::{Request, Sched, ThreadKey};
use super::settings::{Inherit, Settings};
use super::shm::doorbell::{self, BellMemory, Doorbells};
use super::shm::lease;
use super::shm::ring::{Consumer, RingMemory};
use super::shm::wait::Waiter;
use super::trace_events::TraceWriter;
pub use arena::Area;
use arena::Arena;
use delivered::DeliveredBuffers;
use driver::connection::{Exchange, OpenOptions};
use driver::error::OpenError;
use identity::Identity;
use placements::Placements;
use pollable::Pollable;

/// Largest receiving area in use, in bytes (contract OPN-06).
const MAP_MAX: usize = 4 << 20;

/// Operation named in errors about the broker's shared memory.
const LOOKING: &str = "looking at the broker's shared memory";

/// Per-thread state that is accessed without the lock.
#[derive(Debug, Default)]
struct Local {
    /// Whether the thread's next blocking read returns early (contract WR-05, EXT-07).
    need_return: AtomicBool,
    /// Work was queued for the thread since it last looked.
    kicked: AtomicBool,
}

/// Per-thread state of the shell, protected by the lock.
#[derive(Debug, Default)]
struct ThreadState {
    /// The thread's waiting strategy; the thread takes it out while it waits.
    waiter: Option<Box<Waiter>>,
    /// Scheduling before any caller could boost the thread: at its entry into the driver, or since it waits
    /// for any work. Kept only where real-time policies are inherited.
    before: Option<Sched>,
    /// The thread's descriptor for polling, if it asked for one.
    pollable: Option<Box<Pollable>>,
}

/// State protected by the lock.
#[derive(Debug)]
struct State {
    core: Core,
    /// Shell state of each thread, by slot.
    own: Vec<ThreadState>,
    /// Buffers in the arena that the broker delivered and nobody gave back yet.
    buffers: DeliveredBuffers,
    /// Buffers in the arena for payloads from call slots.
    placements: Placements,
    /// Number of threads with a descriptor for polling.
    pollables: u32,
}

/// For whom a context is opened.
#[derive(Debug, Default)]
pub(super) struct Opener {
    /// The thread whose scheduling free threads take (contract SCH-04).
    pub(super) who: Identity,
    /// The program, if it is another process's.
    pub(super) program: Option<Arc<dyn Program>>,
    /// Destination of trace events; `None` if this process does not trace.
    pub(super) trace: Option<TraceWriter>,
}

/// One open connection.
#[derive(Debug)]
pub(super) struct Process {
    settings: Settings,
    /// The program that a supervisor makes calls for; `None` if this process makes its own.
    program: Option<Arc<dyn Program>>,
    line: BrokerConnection,
    bells: Doorbells<Arc<BellMemory>>,
    arena: OnceLock<Arena>,
    outbox: Lock<SealedMemory>,
    nonblocking: AtomicBool,
    /// For a program that reads and writes descriptors in calls as numbers: what arrives is its own, and nobody takes it
    /// over from this value.
    own_numbers: OnceLock<OwnNumbers>,
    /// CPU of the last caller through a call slot, plus 1; 0 for none. A hint for waiting.
    caller_cpu: AtomicU32,
    locals: Box<[Local; doorbell::SLOTS as usize]>,
    home: inherit::Home,
    /// Destination of trace events; `None` if this process does not trace.
    trace: Option<TraceWriter>,
    state: Lock<State>,
    inbox: Mutex<Consumer<Arc<RingMemory>>>,
    /// The inbox's memory, to check for records without the lock.
    inbox_memory: Arc<RingMemory>,
    /// The inbox holds impossible counts: nothing more is read from the broker.
    inbox_broken: AtomicBool,
    /// A thread noticed that the broker is gone.
    ended: AtomicBool,
}

impl Process {
    /// Opens a context of the broker in `directory`. `opener`: whom it is opened for.
    pub(super) fn open(
        directory: &Path,
        name: &str,
        settings: Settings,
        options: OpenOptions,
        opener: Opener,
    ) -> Result<Self, OpenError> {
        let Opener { who, program, trace } = opener;
        let pid = program.as_ref().map_or(0, |program| program.pid());
        let hello = Hello { context: name.to_owned(), call_slots: settings.call_slots, pid };
        let (line, welcome) = BrokerConnection::open(directory, hello)?;
        let os = |call| move |source| OpenError::Os { path: directory.to_owned(), call, source };
        let broken = |_| OpenError::Os {
            path: directory.to_owned(),
            call: LOOKING,
            source: io::ErrorKind::InvalidData.into(),
        };
        let bells = Arc::new(FixedMemory::new(welcome.doorbells).map_err(os(LOOKING))?);
        let bells = Doorbells::new(bells).map_err(broken)?;
        let inbox_memory = Arc::new(FixedMemory::new(welcome.inbox).map_err(os(LOOKING))?);
        let process = Self {
            line,
            bells,
            inbox: Mutex::new(Consumer::new(inbox_memory.clone()).map_err(broken)?),
            inbox_memory,
            inbox_broken: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            outbox: Lock::new(welcome.outbox),
            nonblocking: AtomicBool::new(options.nonblocking),
            own_numbers: OnceLock::new(),
            caller_cpu: AtomicU32::new(0),
            locals: Box::new(std::array::from_fn(|_| Local::default())),
            home: inherit::Home::of(who, settings.inherit),
            trace,
            state: Lock::new(State {
                core: Core::new(welcome.proc),
                own: Vec::new(),
                buffers: DeliveredBuffers::new(),
                placements: Placements::new(),
                pollables: 0,
            }),
            arena: OnceLock::new(),
            settings,
            program,
        };
        process.bells.set_inherit(settings.inherit as u32);
        if options.map_size > 0 {
            process.map(options.map_size).map_err(os("mapping the receiving area"))?;
        }
        if let Some(trace) = &process.trace {
            process.request_trace_numbers(trace);
        }
        Ok(process)
    }

    /// The receiving area; `None` before it is mapped and after it is given up.
    fn arena(&self) -> Option<&Arena> {
        self.arena.get().filter(|arena| !arena.is_given_up())
    }

    /// Memory and descriptors of a thread.
    fn caller(&self, who: Identity) -> Caller<'_> {
        match &self.program {
            None => Caller::Here(&self.own_numbers),
            Some(program) => Caller::There(&**program, who.tid()),
        }
    }

    /// Checks that a supervised thread is still in its call.
    ///
    /// # Errors
    /// `EINTR`: a signal has taken it out.
    fn check_presence(&self, who: Identity) -> io::Result<()> {
        match self.caller(who) {
            Caller::There(program, thread) if !program.waits(thread) => {
                Err(io::Error::from_raw_os_error(EINTR))
            }
            _ => Ok(()),
        }
    }

    fn local(&self, slot: u32) -> &Local {
        &self.locals[(slot % doorbell::SLOTS) as usize]
    }

    /// Destination of trace events; `None` if this process does not trace.
    fn traced(&self) -> Option<&TraceWriter> {
        self.trace.as_ref()
    }

    fn bell(&self, slot: u32) -> doorbell::Bell<'_, Arc<BellMemory>> {
        let place = slot % doorbell::SLOTS;
        self.bells.slot(place).expect("slots are only given out below the number of doorbells")
    }

    /// Executes one `BINDER_WRITE_READ` for a thread.
    pub(super) fn write_read(&self, who: Identity, exchange: &mut Exchange<'_>) -> io::Result<()> {
        if let Some(trace) = self.traced() {
            trace.ioctl(ioctl::WRITE_READ);
        }
        // Read before anything is sent: a thread that wakes this one later may boost it first.
        let before = (self.settings.inherit == Inherit::Rt).then(|| who.scheduling_now());
        let mut thread = self.active_thread(who)?;
        if before.is_some() {
            thread.own().before = before;
        }
        let written = write::write(&mut thread, exchange);
        if let Caller::There(program, tid) = self.caller(who)
            && !exchange.write.is_empty()
        {
            thread.unlocked(|_| program.written(tid, exchange.write_consumed));
        }
        if let Some(trace) = self.traced() {
            trace.written(exchange, written.as_ref().err().and_then(io::Error::raw_os_error));
        }
        let reads = written.is_ok() && !exchange.read.is_empty();
        let result = match written {
            Ok(()) => read::read(&mut thread, exchange),
            Err(error) => {
                // After a bad command the read part is skipped (contract WR-11).
                exchange.read_consumed = 0;
                Err(error)
            }
        };
        self.set_need_return(thread.slot, false);
        thread.leave();
        if let Some(trace) = self.traced() {
            trace.ended(reads, &result);
        }
        result
    }

    /// Sets whether the thread's next blocking read returns early (contract WR-05, EXT-07).
    fn set_need_return(&self, slot: u32, on: bool) {
        let flag = &self.local(slot).need_return;
        if flag.load(Ordering::Relaxed) != on {
            flag.store(on, Ordering::Relaxed);
            self.bell(slot).show_need_return(on);
        }
    }

    /// Publishes the broker's calls that a thread serves, for the state files (contract DBG-03).
    fn show_serving(&self, slot: u32, thread: &Thread) {
        let mut calls = [0; doorbell::SERVING];
        calls.iter_mut().zip(thread.serving()).for_each(|(place, call)| *place = call);
        self.bell(slot).set_serving(calls);
    }

    /// Publishes the looper pool's counts, for the state files (contract DBG-05).
    fn show_pool(&self, pool: &LooperPool) {
        self.bells.set_pool(pool.requested.into(), pool.started);
    }

    /// See `Connection::lent`.
    pub(super) fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.arena()?.lent(address, len)
    }

    /// See [`EmbeddedConnection::install_descriptors`](crate::EmbeddedConnection::install_descriptors).
    pub(super) fn install_descriptors(&self, own: OwnNumbers) {
        // The first call counts.
        let _ = self.own_numbers.set(own);
    }

    /// See [`EmbeddedConnection::leave_to_parent`](crate::EmbeddedConnection::leave_to_parent).
    pub(super) fn leave_to_parent(&self) {
        self.line.leave_to_parent();
    }

    /// See `Connection::take_fd`.
    pub(super) fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        self.state.lock().buffers.take_descriptor(address)
    }

    /// First address of the receiving area; `None` before it is mapped.
    pub(super) fn map_base(&self) -> Option<u64> {
        self.arena().map(Arena::base)
    }

    /// Maps a receiving area of `size` bytes, once (contract OPN-04).
    ///
    /// # Errors
    /// See [`EmbeddedConnection::map`](crate::EmbeddedConnection::map).
    pub(super) fn map(&self, size: usize) -> io::Result<()> {
        let area = self.area(size)?;
        self.adopt(area, None)
    }

    /// Makes the memory of a receiving area of `size` bytes, once.
    pub(super) fn area(&self, size: usize) -> io::Result<Area> {
        let request = Request::Map { size: size as u64 };
        let descriptor = match self.line.fetch(ThreadKey::NOBODY, &request)? {
            (0, descriptors) => descriptors.into_iter().next().ok_or(io::ErrorKind::InvalidData)?,
            (errno, _) => return Err(io::Error::from_raw_os_error(errno)),
        };
        let used = size.min(MAP_MAX);
        let memory = SealedMemory::map(descriptor, lease::arena_memory(used))?;
        Ok(Area { memory, size: used, size_asked_for: size })
    }

    /// Receives into an area from now on. `base`: its first address for the program, if another process maps it.
    pub(super) fn adopt(&self, area: Area, base: Option<u64>) -> io::Result<()> {
        let arena = Arena::map(area, base)?;
        let base = arena.base();
        // Cannot fail in practice: the broker gives a process one area.
        self.arena.set(arena).map_err(|_| io::Error::from_raw_os_error(EBUSY))?;
        self.send(&Request::Mapped { base });
        Ok(())
    }

    /// Gives up the receiving area (contract OPN-10).
    pub(super) fn unmap(&self, who: Identity) {
        let Some(arena) = self.arena() else { return };
        arena.give_up();
        self.send(&Request::Mapped { base: 0 });
        // Any answered request will do: after it the broker treats calls to this process as dead. If the
        // broker is gone, so are the calls.
        let _ = self.ask(who, &Request::NodeDebugInfo { above: u64::MAX });
        // Without room in the area, peers send all calls through the broker.
        self.bells.set_room(0);
    }

    /// Requested size of the receiving area in bytes; 0 before it is mapped.
    pub(super) fn map_size(&self) -> usize {
        self.arena.get().map_or(0, Arena::size_asked_for)
    }
}

#[cfg(any(test, feature = "fuzz"))]
impl Process {
    /// Maps the call slots and the peer's doorbells of every channel a second time.
    pub(crate) fn take_channels(&self) -> Vec<[SealedMemory; 2]> {
        let ids = self.state.lock().core.channels.ids();
        let take = |channel: &u32| {
            let request = Request::TakeChannel { channel: *channel };
            let (_, descriptors) = self.line.fetch(super::rpc::protocol::ThreadKey::NOBODY, &request).ok()?;
            let [call_slots, bells] = <[_; 2]>::try_from(descriptors).ok()?;
            let bells = SealedMemory::map(bells, doorbell::SIZE).ok()?;
            Some([SealedMemory::map(call_slots, super::shm::call_slot::SIZE).ok()?, bells])
        };
        ids.iter().filter_map(take).collect()
    }
}
