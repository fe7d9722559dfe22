//! A guard against brokers that are stopped (SIGSTOP) in the middle of a test: every call that needs one would wait for ever.
//! Not here: what the run says then (`super`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at a broker's state.
const TICK: Duration = Duration::from_millis(500);
/// Looks after which a broker that was stopped at each of them is given up: a stop of a moment, as by a shell's Ctrl-Z and `fg`,
/// costs a test nothing but that moment.
const LOOKS: u32 = 7;

/// A broker to look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guarded {
    pub(super) pid: u32,
    /// Whether this run started it, and nobody else uses it.
    pub(super) is_own: bool,
}

/// Looks at brokers until it is dropped.
pub(super) struct StopGuard {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    ended: Mutex<bool>,
    wake: Condvar,
    /// The broker that was given up; 0 for none.
    stopped: AtomicU32,
}

impl StopGuard {
    /// Starts to look at these brokers. Nothing is started for none; and where no thread can be, a run goes without.
    pub(super) fn start(brokers: Vec<Guarded>) -> Self {
        let state =
            Arc::new(State { ended: Mutex::new(false), wake: Condvar::new(), stopped: AtomicU32::new(0) });
        let here = Arc::clone(&state);
        let is_needed = !brokers.is_empty();
        let look = move || here.look_at(&brokers);
        let thread = is_needed.then(|| sys::title::thread("broker guard", look).ok()).flatten();
        Self { state, thread }
    }

    /// The broker that was given up because it was stopped.
    pub(super) fn stopped(&self) -> Option<u32> {
        Some(self.state.stopped.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        *self.state.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    fn look_at(&self, brokers: &[Guarded]) {
        let mut seen = vec![0; brokers.len()];
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended {
            ended = self.wake.wait_timeout(ended, TICK).unwrap_or_else(PoisonError::into_inner).0;
            for (broker, seen) in brokers.iter().zip(&mut seen) {
                *seen = if sys::parting::is_stopped(broker.pid) { *seen + 1 } else { 0 };
                if *seen >= LOOKS {
                    self.stopped.store(broker.pid, Ordering::Relaxed);
                    give_up(*broker);
                    return;
                }
            }
        }
    }
}

/// Ends all that waits for a broker.
fn give_up(broker: Guarded) {
    if broker.is_own {
        // Nobody would continue it: it would stay for ever. Whoever waits for it sees its end.
        let _ = sys::parting::kill(broker.pid);
    } else {
        // It is another's, who may continue it: only this run parts from it.
        sys::parting::kill_children();
        sys::parting::end_connections_to(broker.pid);
    }
}
