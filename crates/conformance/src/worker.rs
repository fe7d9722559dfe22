//! Worker threads that run one job at a time, so that a test decides which thread waits when.
//! Not here: the loopers of a runtime (`ipc::looper`).
//! Facts: a driver knows threads by their kernel number (contract EXT-03); `/proc/self/task`.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::interrupt::ThreadId;
use sys::sched;

use super::check::{PATIENCE, Stop, Verdict, done, ensure};

type Job = Box<dyn FnOnce() + Send>;

/// A thread waiting for jobs. A job that blocks forever keeps its thread until the runner ends the process.
pub(super) struct Worker {
    jobs: Sender<Job>,
    pub(super) thread: ThreadId,
}

/// A running job.
pub(super) struct Task<T> {
    thread: ThreadId,
    ended: Receiver<()>,
    /// There once it has ended. Not sent itself: the channels of each type of message are 10 kB of code.
    result: Arc<Mutex<Option<T>>>,
}

impl Worker {
    /// Starts a thread.
    pub(super) fn new() -> Result<Self, Stop> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        let work = move || {
            let _ = tell.send(ThreadId::current());
            for job in queue {
                job();
            }
        };
        done("starting a thread", sys::title::thread("test thread", work))?;
        let thread = told.recv().map_err(|_| Stop::Fail("a thread of the test did not start".into()))?;
        Ok(Self { jobs, thread })
    }

    /// The calling thread's kernel ID.
    pub(super) fn current() -> i32 {
        ThreadId::current().number()
    }

    /// Starts a job; returns once it runs.
    pub(super) fn start<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Task<T>, Stop> {
        let (started, has_started) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        let job = Box::new(move || {
            let _ = started.send(());
            let result = job();
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            let _ = end.send(());
        });
        let stuck = |_| Stop::Fail("a thread of the test is still busy with its former job".into());
        self.jobs.send(job).map_err(|_| Stop::Fail("a thread of the test ended".into()))?;
        sys::patience::receive(&has_started, PATIENCE).map_err(stuck)?;
        Ok(Task { thread: self.thread, ended, result })
    }

    /// Runs a job and waits for its result.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
        self.start(job)?.wait("a job")
    }
}

impl<T> Task<T> {
    /// Waits for the result.
    pub(super) fn wait(self, what: &str) -> Result<T, Stop> {
        let ended = sys::patience::receive(&self.ended, PATIENCE);
        self.result().take().ok_or_else(|| {
            Stop::Fail(match ended {
                Err(RecvTimeoutError::Timeout) => format!("{what} did not end within {PATIENCE:?}"),
                _ => format!("{what} ended without a result"),
            })
        })
    }

    /// Whether the job has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.result().is_some()
    }

    fn result(&self) -> MutexGuard<'_, Option<T>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the job's thread sleeps in the kernel; fails if the job ends.
    pub(super) fn expect_asleep(&mut self, what: &str) -> Verdict {
        let start = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < 3 {
            self.let_run(what, start)?;
            in_a_row = if sleeps(self.thread) { in_a_row + 1 } else { 0 };
        }
        Ok(())
    }

    /// Waits until the job's thread has gone to sleep this many times more; fails if the job ends.
    pub(super) fn expect_naps(&mut self, what: &str, naps: u64) -> Verdict {
        let (start, before) = (Instant::now(), self::naps(self.thread));
        while self::naps(self.thread) < before + naps {
            self.let_run(what, start)?;
        }
        Ok(())
    }

    /// Gives the job a millisecond; fails if it ends, or runs since `start` for longer than [`PATIENCE`].
    fn let_run(&mut self, what: &str, start: Instant) -> Verdict {
        std::thread::sleep(Duration::from_millis(1));
        if self.has_ended() {
            return Err(Stop::Fail(format!("{what}: expected it to block, it returned")));
        }
        ensure(!sys::patience::is_over(start, PATIENCE), || {
            format!("{what}: the thread does not sleep as expected")
        })
    }
}

/// The number of times that a thread of this process went to sleep.
fn naps(thread: ThreadId) -> u64 {
    let status =
        fs::read_to_string(format!("/proc/self/task/{}/status", thread.number())).unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}

/// Whether a thread of this process is in an interruptible sleep.
fn sleeps(thread: ThreadId) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", thread.number())).unwrap_or_default();
    // The name in parentheses may contain any character; the state follows the last parenthesis.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
}

/// A thread that keeps a CPU busy until it is dropped, so that threads which yield to it are woken but do not run
/// yet.
pub(super) struct Hog {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Hog {
    /// The CPU that it occupies.
    fn cpu() -> io::Result<u32> {
        let all = sched::affinity()?;
        all.last().copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Restricts the calling thread to that CPU, with delayed start after wake-ups (`SCHED_BATCH`).
    ///
    /// # Errors
    /// Those of `sched_setaffinity(2)`.
    pub(super) fn yield_to() -> io::Result<()> {
        sched::set_affinity(&[Self::cpu()?])?;
        sched::set_policy(0, sched::Policy::Batch)
    }

    /// Starts it; it runs when this returns.
    pub(super) fn start() -> Result<Self, Stop> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let spin = move || {
            let there = Self::cpu().and_then(|cpu| sched::set_affinity(&[cpu]));
            let _ = tell.send(there);
            while !stopped.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let thread = done("starting a thread", sys::title::thread("hog", spin))?;
        let hog = Self { stop, thread: Some(thread) };
        let lost = |_| Stop::Fail("a thread of the test did not start".into());
        done("choosing a thread's CPU", told.recv().map_err(lost)?)?;
        Ok(hog)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has no result.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_runs_on_its_worker_and_gives_its_result() {
        let worker = Worker::new().expect("a thread");
        let thread = worker.thread;
        assert_eq!(worker.run(move || ThreadId::current() == thread), Ok(true));
        assert_ne!(thread, ThreadId::current());
    }

    #[test]
    fn a_sleeping_job_is_told_from_one_that_returned() {
        let worker = Worker::new().expect("a thread");
        let (wake, woken) = mpsc::channel::<()>();
        let mut task = worker.start(move || woken.recv().is_ok()).expect("start");
        task.expect_asleep("waiting").expect("it waits");
        wake.send(()).expect("the job listens");
        assert_eq!(task.wait("waiting"), Ok(true));
        let mut task = worker.start(|| 1).expect("start");
        while !task.has_ended() {
            std::thread::yield_now();
        }
        assert!(task.expect_asleep("ended").is_err());
        assert_eq!(task.wait("ended"), Ok(1));
    }
}
