//! Fuzz entry: a peer that writes anything at any time into the shared call slots and doorbells.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use abi::{Commands, Handle, Payload, Return, TransactionFlags};
use sys::sealed_memory::SealedMemory;

use super::scattered::Scattered;
use super::source::Source;
use super::stage::{Pair, drain, read, wait_for, write, write_with};
use super::visits::Visits;
use crate::EmbeddedConnection;
use crate::shm::{call_slot, doorbell};
use driver::connection::{Connection, Exchange};

/// Inputs whose first byte is below this also overwrite the memory while the other connection sleeps.
const ASLEEP: u8 = 16;

/// A connection that serves one input after another.
#[derive(Debug)]
pub struct Scribbles(Visits);

/// Shared call slots and doorbells of each channel.
type Shared = Vec<[SealedMemory; 2]>;

/// Starts the broker.
impl Default for Scribbles {
    fn default() -> Self {
        Self(Visits::new())
    }
}

impl Scribbles {
    /// Two connections call each other through call slots while one overwrites them. Must be called on the thread that
    /// made this value, which serves the broker too.
    ///
    /// # Panics
    /// If the other connection cannot use the broker any more, or hangs.
    pub fn run(&mut self, input: &[u8]) {
        let pair = self.0.next();
        for _ in 0..2 {
            round(&pair.victim, pair.to_other, &pair.other);
            round(&pair.other, pair.to_victim, &pair.victim);
        }
        let shared = pair.other.take_channels();
        assert!(!shared.is_empty(), "plain calls make a channel");
        let mut source = Source::new(input);
        // Threads cost more than everything else.
        let asleep_too = source.byte() < ASLEEP;
        while !source.is_empty() {
            step(pair, &shared, &mut source);
        }
        if asleep_too {
            asleep(pair, &shared, input);
        }
        settle(pair);
    }
}

/// A call, its service and its reply.
fn round(caller: &EmbeddedConnection, handle: Handle, server: &EmbeddedConnection) {
    write(caller, |c| c.transaction(handle, 5, TransactionFlags::CALL, Payload::default()));
    let call = wait_for(server, |item| match item {
        Return::Transaction(call) => Some(call),
        _ => None,
    });
    write(server, |c| {
        c.free_buffer(call.buffer);
        c.reply(TransactionFlags::default(), Payload::default());
    });
    let reply = wait_for(caller, |item| match item {
        Return::Reply(reply) => Some(reply),
        _ => None,
    });
    write(caller, |c| c.free_buffer(reply.buffer));
}

fn step(pair: &Pair, shared: &Shared, source: &mut Source<'_>) {
    let data = [9; 300];
    let data = &data[..source.choose(300)];
    let payload = Payload { data, ..Payload::default() };
    match source.choose(12) {
        8..=10 => scattered(pair, source),
        0 | 1 => write(&pair.victim, |c| c.transaction(pair.to_other, 1, TransactionFlags::CALL, payload)),
        2 => write(&pair.other, |c| c.transaction(pair.to_victim, 2, TransactionFlags::CALL, payload)),
        3 => drop(read(&pair.other)),
        4 => write(&pair.other, |c| c.reply(TransactionFlags::default(), payload)),
        5 => drain(&pair.victim),
        _ => scribble(shared, source),
    }
}

/// A call or a reply with buffers.
fn scattered(pair: &Pair, source: &mut Source<'_>) {
    let Pair { victim, other, to_other, to_victim } = pair;
    let way = source.choose(3);
    Scattered::new(source).with(|payload, vouched| match way {
        0 => write_with(victim, vouched, |c| c.transaction(*to_other, 3, TransactionFlags::CALL, payload)),
        1 => write_with(other, vouched, |c| c.transaction(*to_victim, 4, TransactionFlags::CALL, payload)),
        _ => write_with(other, vouched, |c| c.reply(TransactionFlags::default(), payload)),
    });
}

/// Writes somewhere, usually at a meaningful position.
fn scribble(shared: &Shared, source: &mut Source<'_>) {
    let [call_slots, bells] = &shared[source.choose(shared.len())];
    let (memory, at) = match source.choose(4) {
        // Words in the first cache lines and the first call slots' headers.
        0 | 1 => (call_slots, source.word() as usize % 650 * 4),
        2 => (call_slots, source.word() as usize % call_slot::SIZE),
        _ => (bells, source.word() as usize % (doorbell::SIZE / 4) * 4),
    };
    if source.byte() < 128 {
        let word = (source.word() as u32).to_ne_bytes();
        memory.copy_in(at.min(memory.len() - 4) & !3, &word);
    } else {
        let bytes = source.bytes(24);
        memory.copy_in(at.min(memory.len() - bytes.len()), bytes);
    }
}

/// The victim waits for a reply while another thread overwrites the memory; then the peer ends, as it must after a
/// spoilt call.
fn asleep(pair: &Pair, shared: &Shared, input: &[u8]) {
    pair.victim.thread_exit().expect("exits");
    pair.victim.version().expect("answered");
    pair.victim.set_nonblocking(false).expect("blocking");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let scribbler = scope.spawn(|| {
            let mut source = Source::new(input);
            while !source.is_empty() && !over.load(Ordering::Relaxed) {
                scribble(shared, &mut source);
            }
            while !over.load(Ordering::Relaxed) {
                pair.victim.wake_readers().expect("woken");
                thread::park_timeout(std::time::Duration::from_millis(1));
            }
        });
        let mut commands = Commands::default();
        commands.transaction(pair.to_other, 3, TransactionFlags::CALL, Payload::default());
        let mut room = [0; 256];
        // Returns with the reply, a refusal, or because its readers were woken; only hanging is a fault.
        let mut exchange = Exchange::new(commands.as_bytes(), &mut room);
        let _ = pair.victim.write_read_uninterrupted(&mut exchange);
        over.store(true, Ordering::Relaxed);
        scribbler.thread().unpark();
    });
    pair.victim.set_nonblocking(true).expect("non-blocking");
    pair.victim.thread_exit().expect("exits");
    pair.victim.version().expect("answered");
}

/// Checks that transactions through the broker still arrive, and that a closed channel reports the reason.
fn settle(pair: &Pair) {
    pair.victim.node_debug_info(0).expect("the broker answers");
    drain(&pair.victim);
    let oneway = TransactionFlags::ONEWAY;
    write(&pair.victim, |c| c.transaction(pair.to_other, 77, oneway, Payload::default()));
    pair.other.thread_exit().expect("exits");
    pair.other.version().expect("answered");
    wait_for(&pair.other, |item| match item {
        Return::Transaction(call) => {
            write(&pair.other, |c| c.free_buffer(call.buffer));
            if !call.flags.is_oneway() {
                write(&pair.other, |c| c.reply(TransactionFlags::default(), Payload::default()));
            }
            (call.code == 77).then_some(())
        }
        _ => None,
    });
}
