//! The thread pool: starting, serving until stopped, and stopping.
//! Not here: acting on a return (`exchange`).
//! Locks: `Pool::running`; nothing is called under it.
//! Facts: contract LP-01..LP-08, EXT-01, EXT-02, EXT-07; wire names of Android's thread pool.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use abi::Payload;
use driver::Connection;

use crate::error::TransactError;
use crate::exchange::{ProcessInner, Read};
use crate::runtime::Runtime;
use crate::runtime::thread::ThreadState;

/// How a thread joins the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// `BC_ENTER_LOOPER`: of the process's own accord.
    Enter,
    /// `BC_REGISTER_LOOPER`: the driver asked for it.
    Register,
}

/// The pool's own state.
pub(crate) struct Pool {
    prefix: String,
    /// Number of the next thread that the pool makes.
    next: AtomicU32,
    /// Loopers shall leave. Set under `running`.
    stopping: AtomicBool,
    /// The driver asked for a thread that could not be made. It asks only once (contract LP-03).
    owed: AtomicBool,
    running: Mutex<usize>,
    left: Condvar,
    /// Loopers that stop the pool themselves, and must not wait for one another.
    stoppers: AtomicUsize,
}

/// A looper in the pool; dropping it leaves the pool, also in a panic.
struct Joined(Arc<Pool>);

impl Drop for Joined {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.left.notify_all();
    }
}

/// How long a stop waits for loopers before it interrupts their reads again: a read that began just
/// after the first interruption may have missed it.
const WAKE_AGAIN: Duration = Duration::from_millis(10);

impl Pool {
    pub(crate) fn new(prefix: String) -> Self {
        Self {
            prefix,
            next: AtomicU32::new(1),
            stopping: AtomicBool::new(false),
            owed: AtomicBool::new(false),
            running: Mutex::new(0),
            left: Condvar::new(),
            stoppers: AtomicUsize::new(0),
        }
    }

    /// "Binder:1234_1": the process and the thread's number in hexadecimal, as Android's traces
    /// have it.
    fn next_name(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}:{}_{number:X}", self.prefix, std::process::id())
    }

    /// Another looper, unless the pool has begun to stop: a stop is for good.
    fn join(self: &Arc<Self>) -> Option<Joined> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock: after a stop has counted the loopers, none may join.
        (!self.stopping.load(Ordering::Relaxed)).then(|| {
            *running += 1;
            Joined(self.clone())
        })
    }

    /// Makes loopers leave and lets none join.
    fn close(&self) {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopping.store(true, Ordering::Release);
    }

    /// Loopers that have joined and not left.
    pub(crate) fn running(&self) -> usize {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Connection> ProcessInner<C> {
    /// `BR_SPAWN_LOOPER`: makes the thread that the driver wants, now or, when there is no memory
    /// for it, as soon as a looper comes by again.
    pub(crate) fn spawn_looper(&self) {
        let made = self.spawn(Join::Register).is_ok();
        self.pool.owed.store(!made, Ordering::Relaxed);
    }

    /// Makes one pool thread, unless the pool stops.
    pub(crate) fn spawn(&self, how: Join) -> std::io::Result<()> {
        let Some(me) = self.me.upgrade() else { return Ok(()) };
        let pool = &self.pool;
        let Some(joined) = pool.join() else { return Ok(()) };
        let thread = std::thread::Builder::new().name(pool.next_name());
        let spawned = thread.spawn(move || {
            // `me` is dropped first: the thread that waits for the pool may hold the last reference.
            let (_joined, me) = (joined, me);
            // A connection that is gone ends the pool; callers see their own errors.
            let _ = me.run_looper(how);
        });
        spawned.map(drop)
    }

    /// Makes the calling thread a looper until the pool stops or the connection breaks.
    pub(crate) fn join(&self) -> Result<(), TransactError> {
        let Some(_joined) = self.pool.join() else { return Ok(()) };
        self.run_looper(Join::Enter)
    }

    fn run_looper(&self, how: Join) -> Result<(), TransactError> {
        let result = {
            let thread = self.thread();
            let _deeper = thread.deeper();
            thread.queue(|out| match how {
                Join::Enter => out.enter_looper(),
                Join::Register => out.register_looper(),
            });
            thread.looper.set(true);
            self.serve_until_stopped(&thread)
        };
        // Its last owner: says BC_EXIT_LOOPER and BINDER_THREAD_EXIT.
        ThreadState::forget(self.shared.id);
        result
    }

    fn serve_until_stopped(&self, thread: &std::rc::Rc<ThreadState>) -> Result<(), TransactError> {
        let pool = &self.pool;
        while !pool.stopping.load(Ordering::Acquire) {
            if pool.owed.load(Ordering::Relaxed) {
                self.spawn_looper();
            }
            let before = thread.written.get();
            match self.exchange(thread, Read::Wait, Payload::default()) {
                // One command was refused, and dropped (WR-11); the connection is none the worse.
                Err(_) if thread.written.get() != before => continue,
                result => result?,
            }
            while let Some(word) = thread.peek()? {
                self.execute(thread, word)?;
            }
            thread.drop_released();
        }
        Ok(())
    }

    /// Stops the pool: loopers leave when what they serve is answered. Returns when all have left
    /// but the calling thread, if it is one, and others of the pool that are stopping it, too.
    pub(crate) fn stop(&self) -> Result<(), TransactError> {
        let pool = &self.pool;
        pool.close();
        if !self.thread().looper.get() {
            return self.wait_until_left(|| 0);
        }
        pool.stoppers.fetch_add(1, Ordering::AcqRel);
        let result = self.wait_until_left(|| pool.stoppers.load(Ordering::Acquire));
        pool.stoppers.fetch_sub(1, Ordering::AcqRel);
        result
    }

    /// Interrupts loopers until so many are left.
    fn wait_until_left(&self, stay: impl Fn() -> usize) -> Result<(), TransactError> {
        let pool = &self.pool;
        while pool.running() > stay() {
            self.connection
                .wake_readers()
                .map_err(|source| TransactError::Os { call: "waking the pool's threads", source })?;
            let running = pool.running.lock().unwrap_or_else(PoisonError::into_inner);
            if *running > stay() {
                // Spurious wake-ups, time-outs and poison all mean: look again.
                drop(pool.left.wait_timeout(running, WAKE_AGAIN));
            }
        }
        Ok(())
    }
}
