//! Watchdog thread that kills workers when their conversation makes no progress. It nearly always sleeps.
//! Not here: what progress is. The measuring loop calls [`Watchdog::beat`] once per round trip, outside of
//! the timed part.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::process::WorkerProcess;

/// Interval of the checks. One wake-up per second does not show in a mean.
const TICK: Duration = Duration::from_secs(1);

/// The watchdog thread, and the workers that it watches.
pub struct Watchdog {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    beats: AtomicU64,
    /// Whether this program waits for a worker.
    active: AtomicBool,
    gave_up: AtomicBool,
    patience: Duration,
    workers: Mutex<Vec<Weak<WorkerProcess>>>,
    ended: Mutex<bool>,
    wake: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A watchdog's workers, for those who start some while another measures.
#[derive(Clone)]
pub struct Watched(Arc<State>);

impl Watched {
    /// Adds a worker to the watched ones.
    pub fn watch(&self, worker: &Arc<WorkerProcess>) {
        let mut workers = lock(&self.0.workers);
        workers.retain(|worker| worker.strong_count() > 0);
        workers.push(Arc::downgrade(worker));
        self.0.gave_up.store(false, Ordering::Relaxed);
    }

    /// Runs `work`, which depends on workers, under supervision.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.beat();
        let before = self.0.active.swap(true, Ordering::Relaxed);
        let result = work();
        self.0.active.store(before, Ordering::Relaxed);
        result
    }
}

impl Watchdog {
    /// Starts the thread. It kills the workers after `patience` without progress (longer on a busy machine), or after one tick once a
    /// signal requested a stop.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        let state = Arc::new(State {
            beats: AtomicU64::new(0),
            active: AtomicBool::new(false),
            gave_up: AtomicBool::new(false),
            patience,
            workers: Mutex::new(Vec::new()),
            ended: Mutex::new(false),
            wake: Condvar::new(),
        });
        let watched = Arc::clone(&state);
        let thread = sys::title::thread("watchdog", move || watched.run());
        // Without the thread a run still works, but cannot recover from a hang.
        Self { state, thread: thread.ok() }
    }

    /// Adds a worker to the watched ones.
    pub fn watch(&self, worker: &Arc<WorkerProcess>) {
        self.watched().watch(worker);
    }

    /// Its workers, to be added to.
    #[must_use]
    pub fn watched(&self) -> Watched {
        Watched(Arc::clone(&self.state))
    }

    /// Runs `work`, which depends on workers, under supervision.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.watched().during(work)
    }

    /// Returns true if workers were killed since the last one was added.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.state.gave_up.load(Ordering::Relaxed)
    }

    /// Reports progress; called by the measuring thread only.
    #[inline]
    pub fn beat(&self) {
        self.state.beat();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *lock(&self.state.ended) = true;
        self.state.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    #[inline]
    fn beat(&self) {
        // Only the measuring thread stores, so no read-modify-write is needed.
        let beats = self.beats.load(Ordering::Relaxed);
        self.beats.store(beats.wrapping_add(1), Ordering::Relaxed);
    }

    fn run(&self) {
        let (mut last, mut still) = (0, Duration::ZERO);
        let mut ended = lock(&self.ended);
        while !*ended {
            ended = match self.wake.wait_timeout(ended, TICK) {
                Ok((ended, _)) => ended,
                Err(poisoned) => poisoned.into_inner().0,
            };
            let beats = self.beats.load(Ordering::Relaxed);
            let moved = beats != last || !self.active.load(Ordering::Relaxed);
            (last, still) = (beats, if moved { Duration::ZERO } else { still + TICK });
            self.look(still);
        }
    }

    fn look(&self, still: Duration) {
        let workers: Vec<Arc<WorkerProcess>> = lock(&self.workers).iter().filter_map(Weak::upgrade).collect();
        let stopping = sys::stop_signal::received().is_some() && !still.is_zero();
        if stopping || still >= self.patience && still >= sys::patience::stretched(self.patience) {
            self.gave_up.store(!stopping, Ordering::Relaxed);
            workers.iter().for_each(|worker| worker.kill());
        }
        for worker in workers {
            // The check for its end also runs its `on_end`.
            let _ = worker.end();
        }
    }
}
