//! Room: noticing that a run makes no progress, from a thread beside it that sleeps nearly always.
//! Not here: what progress is (`crate::measure` beats once per round trip, outside of the timed
//! part, with one relaxed store).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::peer::Peer;
use crate::measure::Pulse;

/// How often the thread looks. One wake-up per second does not show in a mean.
const TICK: Duration = Duration::from_secs(1);

/// The thread and what it looks at.
pub struct Watch {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    beats: AtomicU64,
    /// Whether somebody waits for a peer.
    active: AtomicBool,
    gave_up: AtomicBool,
    patience: Duration,
    peers: Mutex<Vec<Weak<Peer>>>,
    ended: Mutex<bool>,
    wake: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Starts the thread. Peers are killed when nothing has moved for `patience`, or for one tick
    /// once a signal asked to stop.
    pub(super) fn new(patience: Duration) -> Self {
        let state = Arc::new(State {
            beats: AtomicU64::new(0),
            active: AtomicBool::new(false),
            gave_up: AtomicBool::new(false),
            patience,
            peers: Mutex::new(Vec::new()),
            ended: Mutex::new(false),
            wake: Condvar::new(),
        });
        let theirs = Arc::clone(&state);
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(move || theirs.run());
        // Without the thread a run still works; it only cannot be rescued from a hang.
        Self { state, thread: thread.ok() }
    }

    /// Kills this peer, too, when nothing moves.
    pub(super) fn mind(&self, peer: &Arc<Peer>) {
        let mut peers = lock(&self.state.peers);
        peers.retain(|peer| peer.strong_count() > 0);
        peers.push(Arc::downgrade(peer));
        self.state.gave_up.store(false, Ordering::Relaxed);
    }

    /// Does something that depends on peers, under supervision.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.beat();
        self.state.active.store(true, Ordering::Relaxed);
        let result = work();
        self.state.active.store(false, Ordering::Relaxed);
        result
    }

    /// Whether peers were killed since the last one was started.
    pub(super) fn gave_up(&self) -> bool {
        self.state.gave_up.load(Ordering::Relaxed)
    }
}

impl Pulse for Watch {
    #[inline]
    fn beat(&self) {
        // Only the measuring thread stores, so no read-modify-write is needed.
        let beats = self.state.beats.load(Ordering::Relaxed);
        self.state.beats.store(beats.wrapping_add(1), Ordering::Relaxed);
    }

    #[inline]
    fn stop(&self) -> bool {
        sys::stop_signal::received().is_some()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *lock(&self.state.ended) = true;
        self.state.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
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
        let peers: Vec<Arc<Peer>> = lock(&self.peers).iter().filter_map(Weak::upgrade).collect();
        let stopping = sys::stop_signal::received().is_some() && !still.is_zero();
        if stopping || still >= self.patience {
            self.gave_up.store(!stopping, Ordering::Relaxed);
            peers.iter().for_each(|peer| peer.kill());
        }
        for peer in peers {
            // Looking whether it has ended also tells those who wait for it.
            let _ = peer.end();
        }
    }
}
