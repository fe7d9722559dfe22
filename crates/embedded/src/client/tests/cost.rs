//! Measures round trips with scattered buffers against plain bytes on this machine. Prints figures; asserts
//! only that calls are answered.
//!
//! `cargo test -p binderperf-embedded --release --lib scattered_beside_plain -- --ignored --nocapture`

use std::thread;
use std::time::Instant;

use abi::{BufferAddress, Commands, Payload, Return, Returns, TransactionFlags};

use super::scattered::{Vector, Vouch};
use super::there_and_back;
use crate::EmbeddedConnection;
use crate::fuzz::stage::{Pair, Stage, write};
use driver::connection::{Connection, Exchange};

/// Calls of one kind in a row, and turns of each kind.
const ROW: u32 = 200;
const TURNS: usize = 101;

/// One end, which gives back with each command the buffers of the previous one.
struct End<'c> {
    connection: &'c EmbeddedConnection,
    commands: Commands,
    lent: Option<BufferAddress>,
}

impl<'c> End<'c> {
    fn new(connection: &'c EmbeddedConnection) -> Self {
        Self { connection, commands: Commands::with_capacity(256), lent: None }
    }

    /// Writes a command and reads the returns.
    fn exchange(&mut self, payload: Payload<'_>, fill: impl FnOnce(&mut Commands, Payload<'_>)) {
        self.commands.clear();
        if let Some(lent) = self.lent.take() {
            self.commands.free_buffer(lent);
        }
        fill(&mut self.commands, payload);
        let mut room = [0; 256];
        let mut exchange = Exchange::new(self.commands.as_bytes(), &mut room).with_payload(payload);
        match self.connection.write_read(&mut exchange) {
            Ok(()) => {}
            Err(error) => {
                assert!(error.raw_os_error() == Some(11) || error.raw_os_error() == Some(4), "{error}")
            }
        }
        for item in Returns::new(exchange.returned()) {
            match item.expect("whole") {
                Return::Transaction(delivery) | Return::Reply(delivery) => self.lent = Some(delivery.buffer),
                Return::FailedReply | Return::DeadReply => panic!("a call fails"),
                _ => {}
            }
        }
    }

    fn wait(&mut self) {
        while self.lent.is_none() {
            self.exchange(Payload::default(), |_, _| {});
        }
    }
}

fn median(mut times: Vec<u128>) -> u128 {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Runs both ends in turn on one thread, which never waits; returns ns of work per round trip.
fn on_one_thread(pair: &Pair, payload: Payload<'_>) -> u128 {
    let (mut client, mut server) = (End::new(&pair.victim), End::new(&pair.other));
    let began = Instant::now();
    for _ in 0..ROW {
        client.exchange(payload, |c, payload| {
            c.transaction(pair.to_other, 1, TransactionFlags::CALL, payload);
        });
        server.wait();
        server.exchange(payload, |c, payload| c.reply(TransactionFlags::default(), payload));
        client.wait();
    }
    let took = began.elapsed().as_nanos() / u128::from(ROW);
    write(&pair.victim, |c| c.free_buffer(client.lent.expect("the last reply")));
    took
}

/// Runs each end on its own thread, and on its own CPU if there are two; returns ns per round trip.
fn across(pair: &Pair, payload: Payload<'_>) -> u128 {
    let cpus = sys::sched::affinity().expect("affinity");
    thread::scope(|scope| {
        scope.spawn(|| {
            sys::sched::set_affinity(&cpus[..1]).expect("one of ours");
            let mut server = End::new(&pair.other);
            server.wait();
            for _ in 1..ROW {
                server.exchange(payload, |c, payload| c.reply(TransactionFlags::default(), payload));
                server.wait();
            }
            // Returns with the acknowledgement.
            server.exchange(payload, |c, payload| c.reply(TransactionFlags::default(), payload));
            pair.other.thread_exit().expect("exits");
        });
        let client = scope.spawn(|| {
            sys::sched::set_affinity(&cpus[cpus.len() - 1..]).expect("one of ours");
            let mut client = End::new(&pair.victim);
            let began = Instant::now();
            for _ in 0..ROW {
                client.exchange(payload, |c, payload| {
                    c.transaction(pair.to_other, 1, TransactionFlags::CALL, payload);
                });
                client.wait();
            }
            let took = began.elapsed().as_nanos() / u128::from(ROW);
            write(&pair.victim, |c| c.free_buffer(client.lent.expect("the last reply")));
            pair.victim.thread_exit().expect("exits");
            took
        });
        client.join().expect("no panic")
    })
}

#[test]
#[ignore = "prints figures of this machine, for whoever changes what a call costs"]
fn scattered_beside_plain() {
    let stage = Stage::new();
    for (number, size) in [4, 1000, 16 << 10, 65_536].into_iter().enumerate() {
        let pair = stage.pair(number as u32);
        there_and_back(&pair);
        let vector = Vector::new(size);
        let plain = Payload { data: &vector.elements, ..Payload::default() };
        let [mut one, mut two] = [(); 2].map(|()| [Vec::new(), Vec::new()]);
        vector.with(Vouch::All, |_, scattered| {
            let kinds = [plain, scattered];
            for _ in 0..TURNS {
                for (times, payload) in one.iter_mut().zip(kinds) {
                    times.push(on_one_thread(&pair, payload));
                }
            }
            pair.victim.set_nonblocking(false).expect("set");
            pair.other.set_nonblocking(false).expect("set");
            for _ in 0..TURNS {
                for (times, payload) in two.iter_mut().zip(kinds) {
                    times.push(across(&pair, payload));
                }
            }
        });
        for (how, times) in [("one thread", one), ("two CPUs", two)] {
            let [plain, scattered] = times.map(median);
            println!("{size} bytes, {how}: plain {plain} ns, scattered {scattered} ns");
        }
    }
}
