//! Waits that a service is made to have: for locks that other threads of its process hold, an event that never comes, a disk.
//! Not here: which of them is requested (`fault`), interference by other clients and timers (`disturbance`).
//! Facts: ART's `monitor.cc` for the slice of a contended monitor.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns};
use sys::epoll::Epoll;
use sys::folder::Folder;
use sys::interrupt::ThreadId;

/// Bytes of one write.
const WRITE: usize = 1 << 20;
/// Alignment in bytes that direct I/O asks of memory: no disk has larger blocks.
const ALIGNMENT: usize = 4096;
/// Time that [`Disk::sync`] waits, in ns: more than the rest of a call takes.
const WAIT_NS: u64 = 2_000_000;
/// Most writes of one [`Disk::sync`]: without a disk that is waited for, it must end, too.
const WRITES: usize = 100;
/// How often a disk is tried.
const TRIALS: usize = 5;

fn take(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps for `us`.
pub(super) fn rest(us: u64) {
    sleep_until(monotonic_ns() + us * 1000);
}

/// Starts a thread that repeatedly takes a lock by `hold` and then rests for up to an eighth of `us`, until the process ends.
/// Without the thread the lock stays free, which shows as missing waits.
fn holder(name: &'static str, us: u64, mut hold: impl FnMut() + Send + 'static) {
    let mut rng = fastrand::Rng::new();
    let work = move || loop {
        hold();
        // At random, because otherwise one of the callers would always meet a free lock.
        rest(rng.u64(..=us / 8));
    };
    let _ = sys::title::thread(name, work);
}

/// Returns a lock that a thread of this process repeatedly holds for `us`.
pub(super) fn held_lock(us: u64) -> Arc<Mutex<()>> {
    let lock = Arc::new(Mutex::new(()));
    let held = Arc::clone(&lock);
    holder("lock-holder", us, move || {
        let _guard = take(&held);
        rest(us);
    });
    lock
}

/// Returns a lock that a thread repeatedly holds while it waits for the lock of another one, which that one holds for `us`.
pub(super) fn chain(us: u64) -> Arc<Mutex<()>> {
    let (first, last) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let held = Arc::clone(&last);
    holder("chain-end", us, move || {
        let _guard = take(&held);
        rest(us);
    });
    let held = Arc::clone(&first);
    // It rests less, to be there as soon as the other one holds its lock again.
    holder("chain-middle", us / 16, move || {
        let _guard = take(&held);
        drop(take(&last));
    });
    first
}

/// A lock whose waiters say in the trace who owns it, as Android's runtime does.
#[derive(Debug)]
pub(super) struct Monitor {
    lock: Mutex<()>,
    owner: AtomicI32,
    marker: Option<File>,
}

impl Monitor {
    /// Returns a monitor that a thread of this process repeatedly holds for `us`.
    pub(super) fn held(us: u64) -> Arc<Self> {
        let folder = embedded::trace_events::requested();
        let marker =
            folder.and_then(|folder| File::options().write(true).open(folder.join("trace_marker")).ok());
        let monitor = Arc::new(Self { lock: Mutex::new(()), owner: AtomicI32::new(0), marker });
        let held = Arc::clone(&monitor);
        holder("monitor-owner", us, move || {
            let _guard = take(&held.lock);
            held.owner.store(ThreadId::current().number(), Ordering::Relaxed);
            rest(us);
        });
        monitor
    }

    /// Takes the monitor and releases it.
    pub(super) fn enter(&self) {
        if self.lock.try_lock().is_ok() {
            return;
        }
        let (owner, process) = (self.owner.load(Ordering::Relaxed), std::process::id());
        self.mark(&format!(
            "B|{process}|monitor contention with owner monitor-owner ({owner}) at void Monitor.hold(blockers.rs:1) waiters=0"
        ));
        drop(take(&self.lock));
        self.mark(&format!("E|{process}"));
    }

    fn mark(&self, text: &str) {
        // Without a recording there is nobody to read it.
        let _ = self.marker.as_ref().map(|mut marker| marker.write(text.as_bytes()));
    }
}

/// Waits for `us`, rounded up to milliseconds, for an event that never comes.
pub(super) fn poll(us: u64) {
    let ms = i32::try_from(us.div_ceil(1000)).unwrap_or(i32::MAX);
    // A signal or a lack of descriptors ends it sooner, which shows as a missing wait.
    let _ = Epoll::new().and_then(|none| none.wait(&mut Vec::new(), ms));
}

/// A file without a name, to be written and waited for: by direct I/O, whose wait takes longer than the work on it even
/// if the disk is fast, because nothing is copied.
#[derive(Debug)]
pub(super) struct Disk {
    file: File,
    bytes: Vec<u8>,
}

impl Disk {
    /// Creates the file in the folder for temporary files.
    ///
    /// # Errors
    /// `EINVAL`: files there are in memory. Others: see `open(2)`, `write(2)`.
    pub(super) fn new() -> std::io::Result<Self> {
        let file = Folder::open(&std::env::temp_dir())?.nameless_file_with(sys::disk::DIRECT)?;
        let disk = Self { file, bytes: vec![0x5a; WRITE + ALIGNMENT] };
        // The first write also finds room on the disk.
        disk.write()?;
        Ok(disk)
    }

    fn write(&self) -> std::io::Result<()> {
        let from = self.bytes.as_ptr().align_offset(ALIGNMENT);
        self.file.write_all_at(&self.bytes[from..from + WRITE], 0)
    }

    /// Writes again and again until it waited for the disk for 2 ms in all. Without a wait it gives up.
    pub(super) fn sync(&self) -> std::io::Result<Synced> {
        let (start, before) = (monotonic_ns(), thread_cpu_ns());
        let mut synced = Synced::default();
        for _ in 0..WRITES {
            self.write()?;
            let worked_ns = thread_cpu_ns().saturating_sub(before);
            synced = Synced { waited_ns: (monotonic_ns() - start).saturating_sub(worked_ns), worked_ns };
            if synced.waited_ns >= WAIT_NS {
                break;
            }
        }
        Ok(synced)
    }
}

/// The time that writing to a disk took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Synced {
    waited_ns: u64,
    /// A virtual disk may do its work while the thread seems to compute.
    worked_ns: u64,
}

impl Synced {
    /// Whether the wait is by far the larger part, so that it is why a call was slow.
    pub(super) fn is_wait(self) -> bool {
        self.waited_ns >= WAIT_NS && self.waited_ns >= 2 * self.worked_ns
    }
}

/// Whether writes to the folder for temporary files wait for a disk, and longer than the work on them takes.
pub(crate) fn has_slow_disk() -> bool {
    let Ok(disk) = Disk::new() else { return false };
    let trials = (0..TRIALS).filter(|_| disk.sync().is_ok_and(Synced::is_wait)).count();
    trials > TRIALS / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_waited_for_and_let_go() {
        for lock in [held_lock(20_000), chain(20_000)] {
            // Until the lock is held.
            while lock.try_lock().is_ok() {
                std::thread::yield_now();
            }
            drop(lock.lock().expect("nobody panics with it"));
        }
    }

    #[test]
    fn a_contended_monitor_names_its_owner_in_the_trace() {
        let folder = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let path = folder.path().join("marker");
        let monitor = Monitor {
            lock: Mutex::new(()),
            owner: AtomicI32::new(4711),
            marker: Some(File::create(&path).expect("a file")),
        };
        monitor.enter();
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "", "nobody holds it");
        std::thread::scope(|scope| {
            let guard = take(&monitor.lock);
            let waiter = scope.spawn(|| monitor.enter());
            while std::fs::read_to_string(&path).expect("text").is_empty() {
                std::thread::yield_now();
            }
            drop(guard);
            waiter.join().expect("no panic");
        });
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.contains("contention with owner monitor-owner (4711) at "), "{text}");
        assert!(text.ends_with(&format!("E|{}", std::process::id())), "{text}");
    }

    #[test]
    fn a_wait_that_is_mostly_work_is_none() {
        let synced = |waited_ns, worked_ns| Synced { waited_ns, worked_ns }.is_wait();
        assert!(synced(WAIT_NS, WAIT_NS / 2) && !synced(WAIT_NS, WAIT_NS) && !synced(0, 0));
    }

    #[test]
    fn a_poll_takes_its_time_and_a_disk_its_data() {
        let start = monotonic_ns();
        poll(2500);
        assert!(monotonic_ns() - start >= 2_500_000);
        match Disk::new().and_then(|disk| disk.sync()) {
            Ok(synced) => assert!(synced.waited_ns >= WAIT_NS || !has_slow_disk(), "{synced:?}"),
            Err(error) => assert!(!has_slow_disk(), "{error}"),
        }
    }
}
