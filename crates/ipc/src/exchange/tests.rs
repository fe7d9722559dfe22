//! Tests of every return that a driver may give, on a driver that follows a script.

mod acknowledgements;
mod mortal;
mod pool;
mod script;

pub(crate) use mortal::Mortal;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use abi::codes::{bc, br};
use abi::{Handle, NodePtr, Payload, TransactionFlags};

use script::{Script, Step, cookie, delivery, node, simple};

use crate::call::Taken;
use crate::error::{ProtocolError, Refusal, TransactError};
use crate::process::{Process, ProcessOptions};
use crate::runtime::Outcome;
use crate::runtime::proxy::Proxy;
use crate::runtime::serve::{Serve, Transaction};
use crate::scheduling::NodeOptions;
use sys::errno::{EBADF, EINVAL};

fn on(steps: Vec<Step>) -> Process<Script> {
    Process::on(Script::new(steps), ProcessOptions::default()).expect("a script refuses nothing")
}

/// A proxy for handle 5; its acquisition is the first step of every script that uses it.
fn proxy(process: &Process<Script>) -> Proxy {
    process.inner.shared.proxies.proxy(process.inner.me.upgrade().expect("alive"), Handle(5))
}

fn acquisition() -> Step {
    Step::write(&[bc::ACQUIRE])
}

fn call(proxy: &Proxy) -> Result<Vec<u8>, TransactError> {
    match proxy.transact_payload(7, TransactionFlags::CALL, Payload::default())? {
        Outcome::Replied { received, .. } => Ok(received.data().to_vec()),
        Outcome::Taken(taken) => panic!("a two-way call was taken: {taken:?}"),
    }
}

fn oneway(proxy: &Proxy) -> Result<Taken, TransactError> {
    match proxy.transact_payload(7, TransactionFlags::ONEWAY, Payload::default())? {
        Outcome::Taken(taken) => Ok(taken),
        Outcome::Replied { .. } => panic!("a oneway call was answered"),
    }
}

fn complete() -> Vec<u8> {
    simple(br::TRANSACTION_COMPLETE)
}

fn reply(data: &[u8]) -> Vec<u8> {
    delivery(br::REPLY, 0, NodePtr(0), 0, data)
}

fn all(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.concat()
}

/// Runs a script with one call in it and says what came of it; every step must be used up.
fn one_call(steps: Vec<Step>) -> Result<Vec<u8>, TransactError> {
    one_call_serving(steps, |_| Box::new(Echo::default()))
}

/// [`one_call`] by a process that serves an object, its first node.
fn one_call_serving(
    steps: Vec<Step>,
    object: impl FnOnce(&Process<Script>) -> Box<dyn Serve>,
) -> Result<Vec<u8>, TransactError> {
    let process = on([vec![acquisition()], steps].concat());
    let _node = process.publish_node(object(&process), NodeOptions::default());
    let proxy = proxy(&process);
    let result = call(&proxy);
    process.connection().assert_finished();
    result
}

/// The acknowledgement of a call, and a call to the first node.
fn complete_and_called(data: &[u8]) -> Vec<u8> {
    all(&[complete(), delivery(br::TRANSACTION, 0, NodePtr(1), 1, data)])
}

#[test]
fn tx_01_the_usual_answer() {
    let steps = vec![Step::new(&[bc::TRANSACTION], all(&[simple(br::NOOP), complete(), reply(b"yes")]))];
    assert_eq!(one_call(steps).expect("answered"), b"yes");
}

#[test]
fn wr_15_complete_and_reply_may_come_apart_with_nothing_between() {
    let steps = vec![
        Step::new(&[bc::TRANSACTION], simple(br::NOOP)),
        Step::new(&[], all(&[simple(br::NOOP), complete()])),
        Step::new(&[], simple(br::NOOP)),
        Step::new(&[], vec![]),
        Step::new(&[], all(&[simple(br::NOOP), reply(b"late")])),
    ];
    assert_eq!(one_call(steps).expect("answered"), b"late");
}

#[test]
fn wr_02_an_interrupted_exchange_is_submitted_again_as_it_stands() {
    let steps = vec![
        Step::new(&[bc::TRANSACTION], vec![]).failing(io::ErrorKind::Interrupted),
        Step::resumed(all(&[complete(), reply(b"once")])),
    ];
    assert_eq!(one_call(steps).expect("answered"), b"once");
}

#[test]
fn wr_13_what_the_driver_did_not_take_is_written_later() {
    // An unread error of an earlier, abandoned transaction: the driver takes nothing until it is
    // read, and it is not this call's.
    let steps = vec![
        Step::new(&[], simple(br::FAILED_REPLY)).leaving(&[bc::TRANSACTION]),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(b"in the end")])),
    ];
    assert_eq!(one_call(steps).expect("answered"), b"in the end");
}

#[test]
fn wr_12_commands_behind_a_failed_reply_are_written_next() {
    let steps = vec![
        Step::new(&[bc::TRANSACTION], complete_and_called(b"")),
        // The driver stops behind the reply that it could not deliver (TX-17).
        Step::new(&[bc::REPLY], complete()).leaving(&[bc::FREE_BUFFER]),
        Step::new(&[bc::FREE_BUFFER], reply(b"outer")),
    ];
    assert_eq!(one_call(steps).expect("answered"), b"outer");
}

#[test]
fn refusals_are_outcomes() {
    for (word, want) in [
        (br::DEAD_REPLY, Refusal::Dead),
        (br::FROZEN_REPLY, Refusal::Frozen),
        // The script's extended error says ENOSPC.
        (br::FAILED_REPLY, Refusal::Failed(Some(28))),
    ] {
        for accepted in [vec![], complete()] {
            let steps = vec![Step::new(&[bc::TRANSACTION], all(&[accepted, simple(word)]))];
            let error = one_call(steps).expect_err("refused");
            let TransactError::Refused { target, code, by } = error else { panic!("{error}") };
            assert_eq!((target, code, by), (Handle(5), 7, want));
        }
    }
}

#[test]
fn oneway_calls_end_with_their_acknowledgement() {
    for (word, want) in [
        (br::TRANSACTION_COMPLETE, Taken::Complete),
        (br::ONEWAY_SPAM_SUSPECT, Taken::SpamSuspect),
        (br::TRANSACTION_PENDING_FROZEN, Taken::PendingFrozen),
    ] {
        let process = on(vec![acquisition(), Step::new(&[bc::TRANSACTION], simple(word))]);
        assert_eq!(oneway(&proxy(&process)).expect("taken"), want);
    }
    let process = on(vec![acquisition(), Step::new(&[bc::TRANSACTION], simple(br::DEAD_REPLY))]);
    assert_eq!(oneway(&proxy(&process)).expect_err("refused").refusal(), Some(Refusal::Dead));
}

/// Answers with what it got, and counts.
#[derive(Default)]
struct Echo(Arc<AtomicU32>);

impl Serve for Echo {
    fn serve(&self, call: Transaction<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        let data = call.received().map(|received| received.data().to_vec()).unwrap_or_default();
        let payload = Payload { data: &data, ..Payload::default() };
        call.reply(TransactionFlags::default(), payload).expect("answered");
    }
}

#[test]
fn tx_06_a_call_that_comes_back_is_served_while_waiting() {
    let steps = vec![
        Step::new(&[bc::TRANSACTION], complete_and_called(b"in")),
        Step::new(&[bc::REPLY, bc::FREE_BUFFER], complete()),
        Step::new(&[], reply(b"out")),
    ];
    let served = Arc::new(AtomicU32::new(0));
    let result = one_call_serving(steps, |_| Box::new(Echo(served.clone())));
    assert_eq!((result.expect("answered"), served.load(Ordering::Relaxed)), (b"out".to_vec(), 1));
}

#[test]
fn a_call_for_a_node_that_is_gone_is_answered_with_a_status() {
    let steps = vec![
        Step::new(&[bc::TRANSACTION], all(&[complete(), delivery(br::TRANSACTION, 0, NodePtr(77), 3, b"")])),
        Step::new(&[bc::REPLY, bc::FREE_BUFFER], complete()),
        Step::new(&[], reply(b"")),
    ];
    one_call(steps).expect("answered");
}

#[test]
fn the_previous_reply_s_buffer_goes_back_with_the_next_call() {
    let answer = || all(&[complete(), reply(b"x")]);
    let process = on(vec![
        acquisition(),
        Step::new(&[bc::TRANSACTION], answer()),
        Step::new(&[bc::FREE_BUFFER, bc::TRANSACTION], answer()),
        Step::new(&[bc::FREE_BUFFER, bc::TRANSACTION], answer()),
    ]);
    let proxy = proxy(&process);
    for _ in 0..3 {
        call(&proxy).expect("answered");
    }
    process.connection().assert_finished();
}

#[test]
fn a_large_reply_s_buffer_goes_back_at_once() {
    // An eighth of the script's area is 512 bytes.
    let steps = vec![
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(&[0; 600])])),
        Step::write(&[bc::FREE_BUFFER]),
    ];
    one_call(steps).expect("answered");
}

#[test]
fn threads_that_do_not_call_again_do_not_fill_the_area_together() {
    let process = on(vec![
        acquisition(),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(&[0; 300])])),
        // Less than an eighth (512) is kept by this thread, more by both.
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(&[0; 300])])),
        Step::write(&[bc::FREE_BUFFER]),
        // The other thread's own buffer, at its end; after that there is room to keep one again.
        Step::write(&[bc::FREE_BUFFER]),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(&[0; 300])])),
    ]);
    let proxy = proxy(&process);
    let (idle, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            call(&proxy).expect("answered");
            idle.wait();
            go_on.wait();
        });
        idle.wait();
        let answered = call(&proxy).map(drop);
        let left = process.connection().left();
        go_on.wait();
        other.join().expect("no panic");
        answered.expect("answered");
        assert_eq!(left, 2, "given back at once");
    });
    call(&proxy).expect("answered");
    process.connection().assert_finished();
}

#[test]
fn ext_02_a_thread_that_ends_writes_what_it_owes_and_takes_its_leave() {
    let process = on(vec![
        acquisition(),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(b"x")])),
        Step::write(&[bc::FREE_BUFFER]),
    ]);
    let proxy = proxy(&process);
    std::thread::scope(|scope| {
        // Joined by hand: a scope may end before its threads' local storage is torn down.
        scope.spawn(|| call(&proxy).map(drop)).join().expect("no panic").expect("answered");
    });
    process.connection().assert_finished();
    assert_eq!(process.connection().exits(), 1);
}

#[test]
fn a_proxy_dropped_on_an_idle_thread_is_released_at_once() {
    let process = on(vec![acquisition(), Step::write(&[bc::RELEASE])]);
    let first = proxy(&process);
    let second = proxy(&process);
    assert_eq!(first, second);
    drop(first);
    assert_eq!(process.connection().left(), 1, "one clone still holds");
    drop(second);
    process.connection().assert_finished();
}

#[test]
fn ref_11_reports_about_nodes_are_acknowledged_after_the_call() {
    let process = on(vec![
        acquisition(),
        Step::new(
            &[bc::TRANSACTION],
            all(&[node(br::INCREFS, 1, 1), node(br::ACQUIRE, 1, 1), complete(), reply(b"")]),
        ),
        Step::write(&[bc::INCREFS_DONE, bc::ACQUIRE_DONE]),
    ]);
    let served = Arc::new(AtomicU32::new(0));
    let node = process.publish_node(Box::new(Echo(served.clone())), NodeOptions::default());
    call(&proxy(&process)).expect("answered");
    process.connection().assert_finished();
    assert_eq!(process.remote_references(&node), (1, 1));
    drop(node);
    assert_eq!(Arc::strong_count(&served), 2, "the driver's references hold the node");
}

#[test]
fn ref_12_returns_about_a_node_may_be_handled_out_of_order() {
    let process = on(vec![]);
    let served = Arc::new(AtomicU32::new(0));
    let node = process.publish_node(Box::new(Echo(served.clone())), NodeOptions::default());
    let nodes = &process.inner.shared.nodes;
    let (ptr, cookie) = (node.ptr(), node.cookie());
    drop(nodes.acquire(ptr, cookie));
    // One thread's RELEASE and another's new ACQUIRE, the wrong way round and the right way.
    drop(nodes.acquire(ptr, cookie));
    drop(nodes.release(ptr, cookie));
    drop(nodes.release(ptr, cookie));
    drop(nodes.acquire(ptr, cookie));
    drop(node);
    assert_eq!(Arc::strong_count(&served), 2);
    drop(nodes.release(ptr, cookie));
    assert_eq!(Arc::strong_count(&served), 1, "freed with the last reference");
    // The slot serves another node; the old one's name does not reach it.
    let other = process.publish_node(Box::new(Echo::default()), NodeOptions::default());
    assert_eq!(other.cookie(), cookie);
    assert!(nodes.acquire(ptr, cookie).is_none());
    assert!(nodes.find(ptr, cookie).is_none());
    assert_eq!(process.remote_references(&other), (0, 0));
}

#[test]
fn dth_05_a_death_is_acknowledged_and_cleared() {
    let process = on(vec![
        acquisition(),
        Step::write(&[bc::REQUEST_DEATH_NOTIFICATION]),
        Step::new(&[bc::ENTER_LOOPER], cookie(br::DEAD_BINDER, 1)),
        Step::new(&[bc::DEAD_BINDER_DONE, bc::CLEAR_DEATH_NOTIFICATION], cookie(br::DEAD_BINDER, 99)),
        // One that nobody asked for (any more) is acknowledged all the same.
        Step::new(&[bc::DEAD_BINDER_DONE], vec![]),
        Step::new(&[], vec![]).failing_with(EBADF),
        Step::write(&[bc::EXIT_LOOPER]),
        Step::write(&[bc::RELEASE]),
    ]);
    let told = Arc::new(AtomicU32::new(0));
    let count = told.clone();
    let link = proxy(&process).link_to_death(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    process.join_thread_pool().expect_err("the script ends the pool");
    assert_eq!((told.load(Ordering::Relaxed), process.connection().exits()), (1, 1));
    drop(link);
    process.connection().assert_finished();
}

#[test]
fn wr_11_a_command_that_the_driver_refuses_is_not_written_again() {
    let process = on(vec![
        Step::write(&[]).failing_with(EINVAL).leaving(&[bc::ACQUIRE]),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(b"x")])),
    ]);
    call(&proxy(&process)).expect("answered");
    process.connection().assert_finished();
}

#[test]
fn a_call_that_cannot_be_written_is_taken_back() {
    let process = on(vec![
        acquisition(),
        Step::new(&[], vec![1, 2]).leaving(&[bc::TRANSACTION]),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(b"second")])),
    ]);
    let proxy = proxy(&process);
    let error = call(&proxy).expect_err("returns that make no sense");
    assert!(matches!(error, TransactError::Protocol(ProtocolError::Undecodable(_))), "{error}");
    // Its payload is gone, so it must not be written with the next one.
    assert_eq!(call(&proxy).expect("answered"), b"second");
    process.connection().assert_finished();
}

#[test]
fn a_delivery_outside_the_area_is_an_error_and_its_buffer_goes_back() {
    let outside = delivery(br::REPLY, 1 << 40, NodePtr(0), 0, b"xyz");
    let steps =
        vec![Step::new(&[bc::TRANSACTION], all(&[complete(), outside])), Step::write(&[bc::FREE_BUFFER])];
    let error = one_call(steps).expect_err("outside");
    assert!(matches!(error, TransactError::Protocol(ProtocolError::OutsideMap { len: 3, .. })), "{error}");
}

#[test]
fn a_reply_that_nobody_waits_for_gives_its_buffer_back() {
    let process = on(vec![
        acquisition(),
        Step::new(&[bc::TRANSACTION], all(&[complete(), complete()])),
        // The abandoned call's answer comes during the next call, before that one is written.
        Step::new(&[], reply(b"old")).leaving(&[bc::TRANSACTION]),
        Step::new(&[bc::TRANSACTION, bc::FREE_BUFFER], all(&[complete(), reply(b"new")])),
    ]);
    let proxy = proxy(&process);
    let error = call(&proxy).expect_err("acknowledged twice");
    assert!(matches!(error, TransactError::Protocol(ProtocolError::Unexpected { .. })), "{error}");
    assert_eq!(call(&proxy).expect("answered"), b"new");
    process.connection().assert_finished();
}

#[test]
fn wr_11_a_refused_command_does_not_take_the_reply_behind_it_along() {
    let steps = vec![
        Step::new(&[bc::TRANSACTION], complete_and_called(b"in")),
        Step::new(&[], vec![]).failing_with(EINVAL).leaving(&[bc::RELEASE, bc::REPLY, bc::FREE_BUFFER]),
        Step::new(&[bc::REPLY, bc::FREE_BUFFER], complete()),
        Step::new(&[], reply(b"out")),
    ];
    /// Queues a command, then answers.
    struct Careless(std::sync::Weak<super::ProcessInner<Script>>);
    impl Serve for Careless {
        fn serve(&self, call: Transaction<'_>) {
            let process = self.0.upgrade().expect("alive");
            super::Runtime::thread(&*process).queue(|out| out.release(Handle(99)));
            call.reply(TransactionFlags::default(), Payload::default()).expect("answered all the same");
        }
    }
    let result = one_call_serving(steps, |process| Box::new(Careless(process.inner.me.clone())));
    assert_eq!(result.expect("answered"), b"out");
}

/// Calls when it ends.
struct LastWords(Option<Proxy>);

impl Serve for LastWords {
    fn serve(&self, _call: Transaction<'_>) {}
}

impl Drop for LastWords {
    fn drop(&mut self) {
        let proxy = self.0.take().expect("dropped once");
        assert_eq!(call(&proxy).expect("answered"), b"heard");
    }
}

#[test]
fn wr_09_a_call_read_with_a_release_is_answered_before_the_object_s_last_words() {
    let process = on(vec![
        acquisition(),
        Step::new(
            &[bc::ENTER_LOOPER],
            all(&[
                node(br::RELEASE, 1, 1),
                node(br::DECREFS, 1, 1),
                delivery(br::TRANSACTION, 0, NodePtr(2), 2, b"in"),
            ]),
        ),
        // Had the object called first, the driver would refuse this reply (TX-16).
        Step::new(&[bc::REPLY, bc::FREE_BUFFER], complete()),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(b"heard")])),
        Step::new(&[bc::FREE_BUFFER, bc::RELEASE], vec![]),
        Step::new(&[], vec![]).failing_with(EBADF),
        Step::write(&[bc::EXIT_LOOPER]),
    ]);
    let object = LastWords(Some(proxy(&process)));
    let ended = process.publish_node(Box::new(object), NodeOptions::default());
    let served = Arc::new(AtomicU32::new(0));
    let _other = process.publish_node(Box::new(Echo(served.clone())), NodeOptions::default());
    assert!(process.inner.shared.nodes.acquire(ended.ptr(), ended.cookie()).is_none());
    drop(ended);
    process.join_thread_pool().expect_err("the script ends the pool");
    assert_eq!(served.load(Ordering::Relaxed), 1);
    process.connection().assert_finished();
}
