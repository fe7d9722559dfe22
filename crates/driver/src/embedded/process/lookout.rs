//! Room: the one thread that this driver ever starts: it looks again in the place of threads that sleep often.
//! Not here: what it does, and who may rely on it (`channel::lookout`), who sleeps often (`channel::wait`).
//!
//! It is there only while calls follow one another so fast that the timers of their sleeps count.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use sys::held_signals::HeldSignals;
use sys::sched::Policy;

use crate::embedded::channel::doorbell::{BellMemory, Doorbells};
use crate::embedded::channel::lookout::{Lookout, Seen};
use crate::embedded::channel::wait::LOOK_AGAIN;

/// A process's lookout; it ends with this.
#[derive(Debug)]
pub(super) struct LookoutThread {
    shared: Arc<Lookout>,
    bells: Doorbells<Arc<BellMemory>>,
    /// 1: it is to end.
    stop: Arc<AtomicU32>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process that may have started it.
    pid: u32,
}

impl LookoutThread {
    /// None yet, for those who sleep on these bells.
    pub(super) fn new(bells: Doorbells<Arc<BellMemory>>) -> Self {
        let pid = std::process::id();
        Self { shared: Arc::default(), bells, stop: Arc::default(), thread: Mutex::new(None), pid }
    }

    /// For those who may rely on it.
    pub(super) fn shared(&self) -> Arc<Lookout> {
        Arc::clone(&self.shared)
    }

    /// Starts it, if it is not there. If that cannot be, everybody goes on looking again alone.
    #[cold]
    pub(super) fn start(&self) {
        // Somebody else is at it, or it is there.
        let Ok(mut thread) = self.thread.try_lock() else { return };
        if thread.as_ref().is_none_or(JoinHandle::is_finished) {
            *thread = self.spawn().ok();
        }
    }

    fn spawn(&self) -> io::Result<JoinHandle<()>> {
        let (shared, bells, stop) = (Arc::clone(&self.shared), self.bells.clone(), Arc::clone(&self.stop));
        // It inherits that: signals are for the threads of whoever uses the driver.
        let _held = HeldSignals::hold()?;
        Builder::new().name("look-again".to_owned()).stack_size(64 << 10).spawn(move || {
            // Whatever its starter was raised to, this is nothing urgent.
            let _ = sys::sched::set_policy(0, Policy::Other);
            shared.begin();
            let mut seen = Seen::default();
            while stop.load(Ordering::Acquire) == 0 {
                let slept = sys::futex::wait_for(&stop, 0, LOOK_AGAIN);
                let timed_out = slept.is_ok_and(|waited| waited == sys::futex::Waited::TimedOut);
                if timed_out && !shared.go_round(&bells, &mut seen) {
                    return;
                }
            }
            shared.leave(&bells);
        })
    }
}

impl Drop for LookoutThread {
    fn drop(&mut self) {
        self.stop.store(1, Ordering::Release);
        sys::futex::wake_one(&self.stop);
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A forked child has this, and no such thread; it panics nowhere.
        let _ = thread.filter(|_| self.pid == std::process::id()).map(JoinHandle::join);
    }
}
