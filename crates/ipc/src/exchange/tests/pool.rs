//! Tests of stopping the pool while objects misbehave.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use abi::codes::{bc, br};
use abi::{NodePtr, Payload, TransactionFlags};

use super::script::{Script, Step, delivery};
use super::{EBADF, Echo, complete, on};
use crate::process::Process;
use crate::runtime::node::Node;
use crate::runtime::serve::{Serve, Transaction};
use crate::scheduling::NodeOptions;

fn incoming(node: u64) -> Vec<u8> {
    delivery(br::TRANSACTION, 0, NodePtr(node), node, b"")
}

/// Stops its own process.
struct Quit {
    process: Process<Script>,
    /// Both calls have come.
    both: Barrier,
    stopped: AtomicUsize,
}

impl Serve for Quit {
    fn serve(&self, call: Transaction<'_>) {
        self.both.wait();
        self.process.shutdown().expect("stopped");
        // The script wants one after the other.
        let turn = self.stopped.fetch_add(1, Ordering::SeqCst);
        while self.process.connection().exits() < turn {
            std::thread::yield_now();
        }
        call.reply(TransactionFlags::default(), Payload::default()).expect("answered");
    }
}

#[test]
fn two_pool_threads_that_stop_the_pool_do_not_wait_for_each_other() {
    let leave = [Step::new(&[bc::REPLY, bc::FREE_BUFFER], complete()), Step::write(&[bc::EXIT_LOOPER])];
    let join = Step::new(&[bc::ENTER_LOOPER], incoming(1));
    let process = on([vec![join.clone(), join], [leave.clone(), leave].concat()].concat());
    let quit = Quit { process: process.clone(), both: Barrier::new(2), stopped: AtomicUsize::new(0) };
    let _node = process.publish_node(Box::new(quit), NodeOptions::default());
    std::thread::scope(|scope| {
        // Each is joined by hand: its local storage is torn down by then.
        let loopers = [(); 2].map(|()| scope.spawn(|| process.join_thread_pool()));
        for looper in loopers {
            looper.join().expect("no panic").expect("ended in order");
        }
    });
    assert_eq!(process.pool_threads(), 0);
    process.connection().assert_finished();
}

#[test]
fn nobody_joins_a_pool_that_was_stopped() {
    // A thread that enters the loop would say so to the driver, which expects nothing.
    let process = on(vec![]);
    process.shutdown().expect("nobody to wait for");
    process.join_thread_pool().expect("returns at once");
    process.start_thread_pool().expect("nothing to start");
    assert_eq!(process.pool_threads(), 0);
    process.connection().assert_finished();
}

/// Lets go of its own node while it serves, and panics when it ends.
struct SoreLoser(Arc<Mutex<Option<Node>>>);

impl Serve for SoreLoser {
    fn serve(&self, call: Transaction<'_>) {
        drop(self.0.lock().expect("no panic").take());
        call.reply(TransactionFlags::default(), Payload::default()).expect("answered");
    }
}

impl Drop for SoreLoser {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn an_object_that_panics_when_it_ends_does_not_end_the_pool() {
    let process = on(vec![
        Step::new(&[bc::ENTER_LOOPER], incoming(1)),
        Step::new(&[bc::REPLY, bc::FREE_BUFFER], complete()),
        Step::new(&[], incoming(2)),
        Step::new(&[bc::REPLY, bc::FREE_BUFFER], complete()),
        Step::new(&[], vec![]).failing_with(EBADF),
        Step::write(&[bc::EXIT_LOOPER]),
    ]);
    let own = Arc::new(Mutex::new(None));
    let loser = process.publish_node(Box::new(SoreLoser(own.clone())), NodeOptions::default());
    *own.lock().expect("no panic") = Some(loser);
    let _other = process.publish_node(Box::new(Echo::default()), NodeOptions::default());
    let ended = catch_unwind(AssertUnwindSafe(|| process.join_thread_pool()));
    assert_eq!(process.pool_threads(), 0, "a stop would wait for a thread that is gone");
    ended.expect("the panic does not reach the pool").expect_err("the script ends the pool");
    process.connection().assert_finished();
}
