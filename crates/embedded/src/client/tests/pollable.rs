//! Tests that a thread's descriptor polls readable exactly while the thread has something to read, with `epoll`.
//! Both routes are tested: through the broker and through call slots.

use std::os::fd::{AsFd, OwnedFd};

use sys::epoll::Epoll;
use sys::interrupt::ThreadId;

use super::*;
use crate::EmbeddedContext;
use crate::fuzz::stage::drain;
use crate::settings::{Inherit, Settings};
use driver::connection::{Context, OpenOptions};

/// A descriptor in an epoll set of its own.
struct Polled {
    set: Epoll,
    _descriptor: OwnedFd,
}

impl Polled {
    fn of(connection: &EmbeddedConnection) -> Self {
        let (set, descriptor) = (Epoll::new().expect("a set"), connection.poll_descriptor().expect("a pipe"));
        set.add(descriptor.as_fd(), 1).expect("added");
        Self { set, _descriptor: descriptor }
    }

    fn is_readable(&self, within_ms: i32) -> bool {
        let mut ready = Vec::new();
        self.set.wait(&mut ready, within_ms).expect("waits");
        !ready.is_empty()
    }

    #[track_caller]
    fn becomes_readable(&self) {
        assert!(self.is_readable(sys::patience::stretched(PATIENCE).as_millis() as i32), "nothing to read");
    }

    #[track_caller]
    fn stays_unreadable(&self) {
        assert!(!self.is_readable(20), "readable without work");
    }
}

fn call(connection: &EmbeddedConnection, to: abi::Handle, flags: TransactionFlags) {
    write(connection, |c| c.transaction(to, 1, flags, Payload::default()));
}

/// A pair whose later calls take this route.
fn pair_by(stage: &Stage, number: u32, call_slots: bool) -> Pair {
    let pair = stage.pair_with(number, Settings { call_slots, ..Settings::default() });
    there_and_back(&pair);
    drain(&pair.victim);
    pair
}

#[test]
fn pol_01_02_it_is_readable_exactly_while_there_is_something_to_read() {
    let stage = Stage::new();
    for (number, call_slots) in [(1, false), (2, true)] {
        let Pair { victim, other, to_other, to_victim } = pair_by(&stage, number, call_slots);
        thread::scope(|scope| {
            scope.spawn(|| {
                let polled = Polled::of(&victim);
                polled.becomes_readable(); // a thread's first contact (POL-02)
                victim.version().expect("asked");
                polled.stays_unreadable();

                call(&other, to_victim, TransactionFlags::CALL);
                polled.becomes_readable();
                polled.becomes_readable(); // as often as one asks
                reply(&victim, &call_of(&victim));
                polled.becomes_readable(); // the acknowledgement of the reply
                drain(&victim);
                polled.stays_unreadable();
                reply_of(&other);

                call(&victim, to_other, TransactionFlags::CALL);
                polled.stays_unreadable(); // the acknowledgement of a call waits for its reply
                reply(&other, &call_of(&other));
                polled.becomes_readable();
                let over = reply_of(&victim);
                write(&victim, |c| c.free_buffer(over.buffer));
                polled.stays_unreadable();
            });
        });
    }
}

#[test]
fn pol_03_04_work_for_anybody_shows_at_every_free_thread_and_a_reply_at_its_own() {
    let stage = Stage::new();
    let Pair { victim, other, to_other, to_victim } = pair_by(&stage, 1, true);
    let polled = Polled::of(&victim);
    victim.version().expect("asked");
    let (victim, other) = (&victim, &other);
    thread::scope(|scope| {
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        scope.spawn(move || {
            let polled = Polled::of(victim);
            victim.version().expect("asked");
            tell.send(()).expect("heard");
            polled.becomes_readable();
            asked.recv().expect("asked");
            polled.stays_unreadable(); // the other thread took the work
            tell.send(()).expect("heard");
            asked.recv().expect("asked");
            polled.stays_unreadable(); // a reply for the other thread
            tell.send(()).expect("heard");
        });
        told.recv().expect("met");
        call(other, to_victim, TransactionFlags::CALL);
        polled.becomes_readable();
        thread::sleep(std::time::Duration::from_millis(20));
        reply(victim, &call_of(victim));
        drain(victim);
        reply_of(other);
        ask.send(()).expect("heard");
        told.recv().expect("seen");
        call(victim, to_other, TransactionFlags::CALL);
        reply(other, &call_of(other));
        polled.becomes_readable();
        ask.send(()).expect("heard");
        told.recv().expect("seen");
        reply_of(victim);
    });
}

#[test]
fn pol_05_a_threads_own_acknowledgement_and_refusal_make_it_readable() {
    let stage = Stage::new();
    let pair = pair_by(&stage, 1, true);
    let Pair { victim, to_other, .. } = &pair;
    let polled = Polled::of(victim);
    call(victim, *to_other, TransactionFlags::ONEWAY);
    polled.becomes_readable();
    let items = read(victim);
    assert!(items.contains(&Return::TransactionComplete), "{items:?}");
    polled.stays_unreadable();
    call(victim, abi::Handle(77), TransactionFlags::CALL);
    polled.becomes_readable();
    let items = read(victim);
    assert!(items.contains(&Return::FailedReply), "{items:?}");
    polled.stays_unreadable();
}

#[test]
fn no_wake_up_is_lost_between_polling_and_blocking_reads() {
    let stage = Stage::new();
    let pair = pair_by(&stage, 1, true);
    let Pair { victim, other, to_other, .. } = &pair;
    victim.set_nonblocking(false).expect("set");
    other.set_nonblocking(false).expect("set");
    let rounds = 60;
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let polled = Polled::of(other);
            write(other, |c| c.enter_looper());
            for round in 0..rounds {
                if round % 3 != 0 {
                    polled.becomes_readable();
                }
                let call = call_of(other);
                // The caller is asleep by now.
                thread::sleep(std::time::Duration::from_millis(1));
                reply(other, &call);
            }
        });
        let began = Instant::now();
        for _ in 0..rounds {
            call(victim, *to_other, TransactionFlags::CALL);
            let over = reply_of(victim);
            write(victim, |c| c.free_buffer(over.buffer));
            thread::sleep(std::time::Duration::from_millis(1));
        }
        server.join().expect("no panic");
        let took = began.elapsed();
        assert!(
            took < sys::patience::stretched(LOOK_AGAIN * rounds / 4),
            "only the second look of sleepers finds them: {took:?}"
        );
    });
}

#[test]
fn ext_01_it_hangs_up_when_its_thread_exits_and_its_helper_ends() {
    let stage = Stage::new();
    let Pair { victim, .. } = pair_by(&stage, 1, true);
    victim.version().expect("asked");
    let polled = Polled::of(&victim);
    polled.stays_unreadable();
    victim.thread_exit().expect("exits");
    polled.becomes_readable(); // it hangs up
    let began = Instant::now();
    let process = victim.process_for_tests();
    while std::sync::Arc::weak_count(process) > 0 {
        assert!(!sys::patience::is_over(began, PATIENCE), "the helper stays");
        thread::sleep(std::time::Duration::from_millis(1));
    }
    let again = Polled::of(&victim);
    again.becomes_readable(); // the first contact of a new thread
}

#[test]
fn the_next_thread_of_a_slot_gets_its_own_wake_ups() {
    let stage = Stage::new();
    let pair = pair_by(&stage, 1, true);
    let Pair { victim, other, to_other, .. } = &pair;
    other.set_nonblocking(false).expect("set");
    victim.set_nonblocking(false).expect("set");
    other.thread_exit().expect("exits");
    let rounds = 20;
    let began = Instant::now();
    for _ in 0..rounds {
        let (tell, told) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let polled = Polled::of(other);
                other.version().expect("asked");
                polled.stays_unreadable();
                // Its helper sleeps now; the thread takes the same slot again, without a descriptor.
                other.thread_exit().expect("exits");
                write(other, |c| c.enter_looper());
                tell.send(()).expect("heard");
                let call = call_of(other);
                reply(other, &call);
                other.thread_exit().expect("exits");
            });
            told.recv().expect("no panic");
            // The thread is asleep by now, as a rule.
            thread::sleep(std::time::Duration::from_millis(10));
            call(victim, *to_other, TransactionFlags::CALL);
            let over = reply_of(victim);
            write(victim, |c| c.free_buffer(over.buffer));
        });
    }
    let took = began.elapsed();
    assert!(
        took < sys::patience::stretched(LOOK_AGAIN * rounds / 4),
        "only the second look of sleepers finds them: {took:?}"
    );
}

#[test]
fn it_hangs_up_when_the_broker_ends_and_reads_say_so() {
    let stage = Stage::new();
    let context = EmbeddedContext::at(stage.context.directory(), "alone", Settings::default());
    let connection =
        context.open(OpenOptions { nonblocking: true, ..OpenOptions::default() }).expect("opened");
    connection.version().expect("asked");
    let polled = Polled::of(&connection);
    polled.stays_unreadable();
    connection.process_for_tests().line.break_off();
    polled.becomes_readable();
    let mut room = [0; 128];
    let error = connection.write_read(&mut Exchange::new(&[], &mut room)).expect_err("the broker is gone");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn a_program_that_takes_the_byte_harms_only_itself() {
    use std::io::Read;
    let stage = Stage::new();
    let Pair { victim, other, to_victim, .. } = pair_by(&stage, 1, true);
    let mut stolen = std::fs::File::from(victim.poll_descriptor().expect("a pipe"));
    victim.version().expect("asked");
    call(&other, to_victim, TransactionFlags::CALL);
    let polled = Polled::of(&victim);
    polled.becomes_readable();
    stolen.read_exact(&mut [0]).expect("the byte");
    reply(&victim, &call_of(&victim));
    drain(&victim);
    polled.stays_unreadable();
    reply_of(&other);
    call(&other, to_victim, TransactionFlags::CALL);
    polled.becomes_readable();
}

#[test]
fn a_supervisor_serves_for_another_thread_which_gets_its_callers_priority() {
    let stage = Stage::new();
    let settings = Settings { inherit: Inherit::Nice, call_slots: true, ..Settings::default() };
    let pair = stage.pair_with(1, settings);
    there_and_back(&pair);
    let Pair { victim, other, to_other, .. } = &pair;
    let nice_of = |tid| sys::sched::nice_of(tid).expect("it lives");
    thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let (done, over) = std::sync::mpsc::channel::<()>();
        // The supervised thread never calls the driver.
        scope.spawn(move || {
            tell.send(ThreadId::current().number()).expect("heard");
            let _ = over.recv();
        });
        let supervised = told.recv().expect("its number");
        let before = nice_of(supervised);
        // Without this right no priority is changed.
        let may_be_urgent = sys::urgency::most_urgent_nice() <= before - 3;
        let spoken_for = other.as_thread(supervised);
        write(&spoken_for, |c| c.enter_looper());
        let caller = scope.spawn(move || {
            if may_be_urgent {
                sys::sched::set_nice(0, before - 3).expect("allowed");
            }
            call(victim, *to_other, TransactionFlags::CALL);
            reply_of(victim);
        });
        let served = call_of(&spoken_for);
        // The node asks for nice 0 at least (contract SCH-01).
        let expected = if may_be_urgent { (before - 3).min(0) } else { before };
        assert_eq!(nice_of(supervised), expected, "while it serves");
        assert_eq!(nice_of(0), before, "the supervisor's own");
        let state = other.state(StateFile::State).expect("told");
        assert!(state.contains(&format!("thread {supervised}:")), "{state}");
        assert!(!read(other).iter().any(|item| matches!(item, Return::Transaction(_))), "not its thread");
        reply(&spoken_for, &served);
        caller.join().expect("no panic");
        assert_eq!(nice_of(supervised), before, "after the reply");
        // Another value for the same thread finds the same record; the calling thread has its own.
        let looper = |tid: i32| {
            let state = other.state(StateFile::State).expect("told");
            state.lines().find(|line| line.contains(&format!("thread {tid}:"))).map(str::to_owned)
        };
        assert!(looper(supervised).is_some_and(|line| line.contains("l 02")), "{state}");
        other.as_thread(supervised).thread_exit().expect("exits");
        assert_eq!(looper(supervised), None);
        assert!(looper(ThreadId::current().number()).is_some());
        done.send(()).expect("it waits");
    });
}
