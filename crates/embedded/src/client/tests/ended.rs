//! The end of the broker: it ends every wait of a process, however often signals come, and all at once.
//! Not here: programs that are not ours, and a broker that is killed (`tests/cli/orphans.rs`).

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::Duration;

use driver::Context as _;
use driver::connection::OpenOptions;
use sys::interrupt::{Interrupter, ThreadId};

use super::*;
use crate::{EmbeddedContext, Settings};

/// A connection in a context of its own, whose waits wait.
fn alone(stage: &Stage, number: u32) -> EmbeddedConnection {
    let name = format!("alone{number}");
    let context = EmbeddedContext::at(stage.context.directory(), &name, Settings::default());
    let connection = context.open(OpenOptions::default()).expect("opened");
    connection.version().expect("asked");
    connection
}

/// Reads until something other than a signal ends the read.
fn reads_to_the_end(connection: &EmbeddedConnection) -> io::Error {
    connection.version().expect("the first contact is over");
    let mut room = [0; 256];
    loop {
        let result = connection.write_read(&mut Exchange::new(&[], &mut room));
        match result {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(sys::errno::EINTR) => {}
            Err(error) => return error,
        }
    }
}

fn break_off(connection: &EmbeddedConnection) {
    connection.process_for_tests().line.break_off();
}

#[test]
fn a_read_that_signals_interrupt_all_the_time_ends_with_the_broker() {
    let stage = Stage::new();
    let connection = alone(&stage, 1);
    let interrupter = Interrupter::install().expect("a handler");
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let connection = &connection;
        let reads = scope.spawn(move || {
            tell.send(ThreadId::current()).expect("heard");
            reads_to_the_end(connection)
        });
        let reader = told.recv().expect("its number");
        break_off(connection);
        let began = Instant::now();
        while !reads.is_finished() && !sys::patience::is_over(began, PATIENCE) {
            // One that has ended meanwhile is not interrupted.
            let _ = interrupter.interrupt(reader);
            thread::sleep(Duration::from_millis(1));
        }
        let in_time = reads.is_finished();
        // An undisturbed wait finds it in any case.
        let error = reads.join().expect("no panic");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(in_time, "each signal began a new wait");
    });
}

#[test]
fn the_first_thread_that_notices_wakes_all_others() {
    const THREADS: usize = 3;
    let stage = Stage::new();
    let mut took = Duration::ZERO;
    let rounds = 8;
    for round in 0..rounds {
        let connection = alone(&stage, round);
        let asleep = || {
            let process = connection.process_for_tests();
            let bells = (0..process.bells.used()).filter_map(|slot| process.bells.slot(slot));
            bells.filter(|bell| bell.is_sleeping()).count()
        };
        thread::scope(|scope| {
            let readers: Vec<_> =
                (0..THREADS).map(|_| scope.spawn(|| reads_to_the_end(&connection))).collect();
            let began = Instant::now();
            while asleep() < THREADS {
                assert!(!sys::patience::is_over(began, PATIENCE), "they do not fall asleep");
                thread::yield_now();
            }
            break_off(&connection);
            let began = Instant::now();
            let error = connection.node_debug_info(0).expect_err("nobody answers");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            for reader in readers {
                let error = reader.join().expect("no panic");
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            }
            took += began.elapsed();
        });
    }
    let most = sys::patience::stretched(LOOK_AGAIN * rounds / 4);
    assert!(took < most, "each looks for itself: {took:?}");
}

#[test]
fn after_it_commands_are_refused_and_new_descriptors_hang_up() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    let Pair { victim, to_other, .. } = &pair;
    break_off(victim);
    victim.node_debug_info(0).expect_err("nobody answers");
    let mut commands = abi::Commands::default();
    // It has a call slot: nobody but this process could refuse it.
    commands.transaction(*to_other, 1, TransactionFlags::CALL, Payload::default());
    for _ in 0..3 {
        let mut exchange = Exchange::new(commands.as_bytes(), &mut []);
        let error = victim.write_read_uninterrupted(&mut exchange).expect_err("refused");
        assert_eq!((error.kind(), exchange.write_consumed), (io::ErrorKind::ConnectionReset, 0));
    }
    let polled = victim.poll_descriptor().expect("a pipe");
    assert!(sys::seqpacket::poll(polled.as_fd(), 0).expect("polled").hung_up, "nobody would ever tell");
}
