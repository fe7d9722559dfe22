//! A broker, on a thread or without one, and two connections that hold each other's handles.
//! Not here: the inputs.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use abi::codes::object;
use abi::layout::{FlatBinderObject, FreezeInfo};
use abi::{Commands, Cookie, Delivery, Handle, NodePtr, Payload, Return, Returns, TransactionFlags};
use zerocopy::{FromBytes, IntoBytes};

use crate::broker::inline::InlineBroker;
use crate::broker::{self, Event, Lifetime};
use crate::{EmbeddedConnection, EmbeddedContext, Settings};
use driver::connection::{Connection, Context, Exchange, OpenOptions};

/// Time limit after which an operation counts as hung: sleepers check again every second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const PING: u32 = 0x676e_6970;

/// A broker that ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) context: EmbeddedContext,
    _anchor: EmbeddedConnection,
    _inline: Option<InlineBroker>,
}

impl Stage {
    /// A broker on a thread.
    #[cfg_attr(not(test), expect(dead_code, reason = "fuzz targets serve their broker themselves"))]
    pub(crate) fn new() -> Self {
        let context = private();
        let directory = context.directory().to_owned();
        let (ready, listening) = mpsc::channel();
        let serve = move || {
            let tell = |event: Event<'_>| {
                if let Event::Listening { .. } = event {
                    // Joined below.
                    let _ = ready.send(());
                }
            };
            broker::run(&directory, Lifetime::LastClient, tell).expect("a broker serves to its end");
        };
        thread::spawn(serve);
        sys::patience::receive(&listening, PATIENCE).expect("a broker listens");
        Self::with(context, None)
    }

    /// A broker that the calling thread serves, whenever it has sent something.
    pub(crate) fn inline() -> Self {
        let context = private();
        let broker = InlineBroker::new(context.directory()).expect("a broker listens");
        Self::with(context, Some(broker))
    }

    fn with(context: EmbeddedContext, inline: Option<InlineBroker>) -> Self {
        let anchor = context.open(OpenOptions::default()).expect("its first client");
        Self { context, _anchor: anchor, _inline: inline }
    }

    /// A new context with two connections that hold each other's handles.
    pub(crate) fn pair(&self, number: u32) -> Pair {
        self.pair_with(number, Settings::default())
    }

    /// [`Self::pair`] with these settings.
    pub(crate) fn pair_with(&self, number: u32, settings: Settings) -> Pair {
        let name = format!("fuzz{number}");
        Pair::of(&EmbeddedContext::at(self.context.directory(), &name, settings))
    }
}

fn private() -> EmbeddedContext {
    EmbeddedContext::private("anchor", Settings::default()).expect("a directory")
}

/// Two connections with strong counts on each other's nodes.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) victim: EmbeddedConnection,
    pub(crate) other: EmbeddedConnection,
    /// The victim's handle.
    pub(crate) to_other: Handle,
    /// The attacker's handle.
    pub(crate) to_victim: Handle,
}

impl Pair {
    /// Opens both in a context without processes.
    pub(crate) fn of(context: &EmbeddedContext) -> Self {
        let open = || {
            let options = OpenOptions { map_size: 1 << 18, nonblocking: true };
            let connection = context.open(options).expect("the broker lets in");
            connection.version().expect("answered");
            connection
        };
        Self::acquaint(open(), open(), open())
    }

    /// Exchanges handles indirectly: no process may call the manager of the same OS process by handle 0 (contract
    /// CTX-05), but it may by the number that the manager gets while handle 0 still names a dead one (REF-07).
    pub(crate) fn acquaint(
        first: EmbeddedConnection,
        victim: EmbeddedConnection,
        other: EmbeddedConnection,
    ) -> Self {
        first.become_context_manager(None).expect("the first");
        write(&other, |c| c.acquire(Handle(0)));
        drop(first);
        let began = Instant::now();
        while victim.become_context_manager(None).is_err() {
            assert!(!sys::patience::is_over(began, PATIENCE), "the broker does not notice a close");
            thread::sleep(Duration::from_micros(100));
        }
        write(&other, |c| c.acquire(Handle(0)));
        let to_victim = Handle(1);
        let node = FlatBinderObject { kind: object::BINDER, binder: 1, cookie: 1, ..Default::default() };
        let payload = Payload { data: node.as_bytes(), offsets: &[0], ..Payload::default() };
        write(&other, |c| c.transaction(to_victim, 1, TransactionFlags::ONEWAY, payload));
        let to_other = kept_node(&victim, &other);
        Self { victim, other, to_other, to_victim }
    }

    /// A call and its reply. The other side's thread starts anew, since its state is unknown.
    pub(crate) fn ping(&self) {
        self.victim.freeze(FreezeInfo { pid: std::process::id(), enable: 0, timeout_ms: 0 }).expect("thawed");
        drain(&self.victim);
        self.victim.thread_exit().expect("exits");
        self.other.thread_exit().expect("exits");
        self.victim.version().expect("answered");
        self.other.version().expect("answered");
        write(&self.victim, |c| {
            c.transaction(self.to_other, PING, TransactionFlags::CALL, Payload::default())
        });
        let began = Instant::now();
        loop {
            assert!(!sys::patience::is_over(began, PATIENCE), "a call does not arrive");
            let Some(call) = take_call(&self.other) else { continue };
            if !call.flags.is_oneway() {
                let payload = Payload::default();
                write(&self.other, |c| c.reply(TransactionFlags::default(), payload));
            }
            write(&self.other, |c| c.free_buffer(call.buffer));
            if call.code == PING && !call.flags.is_oneway() {
                break;
            }
        }
        let reply = wait_for(&self.victim, |item| match item {
            Return::Reply(reply) => Some(reply),
            Return::DeadReply | Return::FailedReply => panic!("a call fails: {item:?}"),
            _ => None,
        });
        write(&self.victim, |c| c.free_buffer(reply.buffer));
    }
}

/// Writes commands, which must all be accepted.
pub(crate) fn write(connection: &EmbeddedConnection, fill: impl FnOnce(&mut Commands)) {
    write_with(connection, Payload::default(), fill);
}

/// [`write`] with the bytes that the commands point to.
pub(crate) fn write_with(
    connection: &EmbeddedConnection,
    payload: Payload<'_>,
    fill: impl FnOnce(&mut Commands),
) {
    let mut commands = Commands::default();
    fill(&mut commands);
    let mut exchange = Exchange::new(commands.as_bytes(), &mut []).with_payload(payload);
    while !exchange.all_written() {
        let before = exchange.write_consumed;
        connection.write_read_uninterrupted(&mut exchange).expect("sane commands are no error");
        if exchange.write_consumed == before {
            // A pending refusal blocks the write (contract WR-13).
            drain(connection);
        }
    }
}

/// Returns of one read; empty if nothing is queued.
pub(crate) fn read(connection: &EmbeddedConnection) -> Vec<Return> {
    let mut room = [0; 512];
    let mut exchange = Exchange::new(&[], &mut room);
    match connection.write_read_uninterrupted(&mut exchange) {
        Ok(()) => Returns::new(exchange.returned()).map(|item| item.expect("whole returns")).collect(),
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "reading failed");
            Vec::new()
        }
    }
}

fn take_call(connection: &EmbeddedConnection) -> Option<Delivery> {
    let got = read(connection).into_iter().find_map(|item| match item {
        Return::Transaction(call) => Some(call),
        _ => None,
    });
    if let Some(call) = &got {
        take_fds(connection, call);
    }
    got
}

/// Takes the oneway call that `other` sent to `victim` with its node 1, and keeps the node; returns its handle.
pub(super) fn kept_node(victim: &EmbeddedConnection, other: &EmbeddedConnection) -> Handle {
    let call = wait_for(victim, |item| match item {
        Return::Transaction(call) => Some(call),
        _ => None,
    });
    let data = victim.lent(call.buffer.0, call.data_size).expect("delivered");
    let (arrived, _) = FlatBinderObject::read_from_prefix(data).expect("one object");
    let to_other = Handle(arrived.binder as u32);
    write(victim, |c| {
        c.acquire(to_other);
        c.free_buffer(call.buffer);
    });
    drain(other);
    write(other, |c| {
        c.increfs_done(NodePtr(1), Cookie(1));
        c.acquire_done(NodePtr(1), Cookie(1));
    });
    to_other
}

/// Reads until an accepted return arrives.
pub(crate) fn wait_for<T>(connection: &EmbeddedConnection, mut pick: impl FnMut(Return) -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = read(connection).into_iter().find_map(&mut pick) {
            return found;
        }
        assert!(!sys::patience::is_over(began, PATIENCE), "nothing comes");
        thread::yield_now();
    }
}

/// Closes received descriptors.
fn take_fds(connection: &EmbeddedConnection, delivery: &Delivery) {
    let Some(offsets) = connection.lent(delivery.offsets, delivery.offsets_size) else { return };
    let offsets: Vec<u64> =
        offsets.chunks_exact(8).filter_map(|at| Some(u64::from_ne_bytes(at.try_into().ok()?))).collect();
    offsets.iter().for_each(|at| drop(connection.take_fd(delivery.buffer.0.wrapping_add(*at))));
}

/// Serves and frees everything that is queued.
pub(crate) fn drain(connection: &EmbeddedConnection) {
    loop {
        let items = read(connection);
        if items.is_empty() {
            return;
        }
        for item in items {
            match item {
                Return::Transaction(call) => {
                    take_fds(connection, &call);
                    write(connection, |c| {
                        c.free_buffer(call.buffer);
                        if !call.flags.is_oneway() {
                            c.reply(TransactionFlags::default(), Payload::default());
                        }
                    });
                }
                Return::Reply(reply) => {
                    take_fds(connection, &reply);
                    write(connection, |c| c.free_buffer(reply.buffer));
                }
                Return::Increfs(ptr, cookie) => write(connection, |c| c.increfs_done(ptr, cookie)),
                Return::Acquire(ptr, cookie) => write(connection, |c| c.acquire_done(ptr, cookie)),
                Return::DeadBinder(cookie) => write(connection, |c| c.dead_binder_done(cookie)),
                _ => {}
            }
        }
    }
}
