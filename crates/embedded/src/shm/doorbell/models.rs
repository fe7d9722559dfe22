//! Loom models of doorbells, with the shipped waiting.
//! Not here: their rules without races (`tests`).
//!
//! A sleeper that nobody wakes spins for ever under loom and fails the model.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::settings::Waiting;
use crate::shm::heap::HeapMemory;
use crate::shm::ring::{self, Consumer, Producer};
use crate::shm::wait::{Waiter, Woken};

/// Doorbells with two threads and the first 32 channels.
pub(in super::super) fn bells() -> Arc<Doorbells<HeapMemory>> {
    let of_bell = |slot: usize| [BELLS + slot * BELL + SLEEPING];
    let words = [LISTENER, RECORDS, SUMMARY, READY].into_iter().chain(of_bell(0)).chain(of_bell(1));
    Arc::new(Doorbells::new(HeapMemory::new(SIZE, words, [])).expect("room"))
}

fn wait(bells: &Doorbells<HeapMemory>, slot: u32, ready: impl FnMut() -> bool) {
    let bell = bells.slot(slot).expect("inside");
    let woken = Waiter::new(Waiting::Sleep, Duration::ZERO, 2).wait(bell, None, None, ready);
    assert_eq!(woken, Woken::Ready);
}

fn wake(bell: Option<Bell<'_, HeapMemory>>) {
    if let Some(bell) = bell {
        bell.wake();
    }
}

/// Guards the fences of `post` and `announce_sleep`.
#[test]
fn loom_a_call_wakes_a_sleeper() {
    loom::model(|| {
        let bells = bells();
        bells.set_listener(Some(0));
        let caller = Arc::clone(&bells);
        let calling = loom::thread::spawn(move || {
            caller.post(5);
            wake(caller.listener_to_wake());
        });
        wait(&bells, 0, || bells.anything_ready());
        assert_eq!(bells.take_ready().collect::<Vec<_>>(), [5]);
        calling.join().expect("no panic");
    });
}

/// Guards the fences of `ring_listener` and `announce_sleep`.
#[test]
fn loom_a_record_wakes_a_sleeper() {
    loom::model(|| {
        let (bells, inbox) = (bells(), ring::models::memory(1));
        bells.set_listener(Some(0));
        let (broker, mut producer) =
            (Arc::clone(&bells), Producer::<_, 1>::new(Arc::clone(&inbox)).expect("room"));
        let telling = loom::thread::spawn(move || {
            assert!(producer.push(&[1; ring::RECORD]).expect("sane"));
            wake(broker.ring_listener());
        });
        wait(&bells, 0, || ring::has_records(&inbox));
        let mut record = [0; ring::RECORD];
        assert!(Consumer::<_, 1>::new(inbox).expect("room").pop(&mut record).expect("sane"));
        telling.join().expect("no panic");
    });
}

/// Guards the Release of `set_records` and the Acquire of `records`.
#[test]
fn loom_a_call_comes_behind_the_records_that_it_counts() {
    loom::model(|| {
        let (bells, inbox) = (bells(), ring::models::memory(1));
        let (caller, broker) = (Arc::clone(&bells), Arc::clone(&bells));
        let mut producer = Producer::<_, 1>::new(Arc::clone(&inbox)).expect("room");
        let call = Arc::new(AtomicU32::new(0));
        let published = Arc::clone(&call);
        let telling = loom::thread::spawn(move || {
            assert!(producer.push(&[1; ring::RECORD]).expect("sane"));
            broker.set_records(producer.pushed());
        });
        let calling = loom::thread::spawn(move || {
            published.store(1 + caller.records(), Ordering::Release);
        });
        let call = call.load(Ordering::Acquire);
        assert!(call < 2 || ring::has_records(&inbox), "it counts a record that is not in the inbox");
        telling.join().expect("no panic");
        calling.join().expect("no panic");
    });
}

/// A oneway call that is sent once a call is marked finds the call marked.
#[test]
fn loom_a_record_comes_behind_the_calls_before_it() {
    loom::model(|| {
        let (bells, inbox) = (bells(), ring::models::memory(1));
        let caller = Arc::clone(&bells);
        let mut producer = Producer::<_, 1>::new(Arc::clone(&inbox)).expect("room");
        let calling = loom::thread::spawn(move || {
            caller.post(5);
            // The broker, which heard from a thread that saw the call made.
            assert!(producer.push(&[1; ring::RECORD]).expect("sane"));
        });
        let mut record = [0; ring::RECORD];
        if Consumer::<_, 1>::new(inbox).expect("room").pop(&mut record).expect("sane") {
            assert_eq!(bells.take_ready().collect::<Vec<_>>(), [5]);
        }
        calling.join().expect("no panic");
    });
}

/// Guards the fences of `ring` and `announce_sleep`.
#[test]
fn loom_a_reply_wakes_its_caller() {
    loom::model(|| {
        let bells = bells();
        let (callee, reply) = (Arc::clone(&bells), Arc::new(AtomicU32::new(0)));
        let answer = Arc::clone(&reply);
        let serving = loom::thread::spawn(move || {
            answer.store(1, Ordering::Release);
            let bell = callee.slot(1).expect("inside");
            if bell.ring() {
                bell.wake();
            }
        });
        wait(&bells, 1, || reply.load(Ordering::Acquire) == 1);
        serving.join().expect("no panic");
    });
}

/// Guards the fence of `hand_over`: the first listener has something else to do when a call comes.
#[test]
fn loom_a_stale_listener_loses_nothing() {
    loom::model(|| {
        let bells = bells();
        bells.set_listener(Some(0));
        let (caller, leaving) = (Arc::clone(&bells), Arc::clone(&bells));
        let calling = loom::thread::spawn(move || {
            caller.post(5);
            wake(caller.listener_to_wake());
        });
        let handing = loom::thread::spawn(move || {
            wake(leaving.hand_over(Some(1), || leaving.anything_ready()));
        });
        wait(&bells, 1, || bells.anything_ready());
        calling.join().expect("no panic");
        handing.join().expect("no panic");
    });
}

/// The marks survive a taker that takes only some of them.
#[test]
fn loom_marks_are_neither_lost_nor_doubled() {
    loom::model(|| {
        let bells = bells();
        let callers = [3, 4].map(|channel| {
            let caller = Arc::clone(&bells);
            loom::thread::spawn(move || caller.post(channel))
        });
        let mut got: Vec<u32> = bells.take_ready().next().into_iter().collect();
        for caller in callers {
            caller.join().expect("no panic");
        }
        got.extend(bells.take_ready());
        got.sort_unstable();
        assert_eq!(got, [3, 4]);
    });
}
