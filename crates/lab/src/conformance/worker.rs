//! Room: threads that do one job at a time, so that a test decides which of them waits when.
//! Not here: the loopers of a runtime (`ipc::looper`).
//! Facts: a driver knows threads by their kernel number (contract EXT-03); `/proc/self/task`.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use sys::interrupt::ThreadId;
use sys::sched;

use super::item::{Stop, Verdict, done};
use super::party::PATIENCE;

type Job = Box<dyn FnOnce() + Send>;

/// A thread waiting for jobs. A job that blocks for ever keeps its thread until the process ends,
/// which the suite's runner sees to.
pub(super) struct Worker {
    jobs: Sender<Job>,
    pub(super) thread: ThreadId,
}

/// A job under way.
pub(super) struct Task<T> {
    thread: ThreadId,
    result: Receiver<T>,
    early: Option<T>,
}

impl Worker {
    /// Starts a thread.
    pub(super) fn new() -> Result<Self, Stop> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = tell.send(ThreadId::current());
            for job in queue {
                job();
            }
        });
        let thread = told.recv().map_err(|_| Stop::Fail("a thread of the test did not start".into()))?;
        Ok(Self { jobs, thread })
    }

    /// The kernel's number of the calling thread.
    pub(super) fn current() -> i32 {
        ThreadId::current().number()
    }

    /// Starts a job and returns once it runs.
    pub(super) fn start<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Task<T>, Stop> {
        let (started, has_started) = mpsc::channel();
        let (send, result) = mpsc::channel();
        let job = Box::new(move || {
            let _ = started.send(());
            let _ = send.send(job());
        });
        let stuck = |_| Stop::Fail("a thread of the test is still busy with its former job".into());
        self.jobs.send(job).map_err(|_| Stop::Fail("a thread of the test ended".into()))?;
        has_started.recv_timeout(PATIENCE).map_err(stuck)?;
        Ok(Task { thread: self.thread, result, early: None })
    }

    /// Does a job and waits for its result.
    pub(super) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
        self.start(job)?.wait("a job")
    }
}

impl<T> Task<T> {
    /// Waits for the result.
    pub(super) fn wait(mut self, what: &str) -> Result<T, Stop> {
        if let Some(early) = self.early.take() {
            return Ok(early);
        }
        self.result.recv_timeout(PATIENCE).map_err(|error| {
            Stop::Fail(match error {
                RecvTimeoutError::Timeout => format!("{what} did not end within {PATIENCE:?}"),
                RecvTimeoutError::Disconnected => format!("{what} ended without a result"),
            })
        })
    }

    /// Whether the job has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.early.is_none() {
            self.early = self.result.try_recv().ok();
        }
        self.early.is_some()
    }

    /// Waits until the job's thread sleeps in the kernel; fails if the job ends instead.
    pub(super) fn expect_asleep(&mut self, what: &str) -> Verdict {
        let start = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < 3 {
            std::thread::sleep(Duration::from_millis(1));
            if self.has_ended() {
                return Err(Stop::Fail(format!("{what}: expected it to block, it returned")));
            }
            if start.elapsed() > PATIENCE {
                return Err(Stop::Fail(format!("{what}: the thread neither slept nor returned")));
            }
            in_a_row = if sleeps(self.thread) { in_a_row + 1 } else { 0 };
        }
        Ok(())
    }
}

/// Whether a thread of this process is in an interruptible sleep.
fn sleeps(thread: ThreadId) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", thread.number())).unwrap_or_default();
    // The name in parentheses may hold anything, so the state is looked for behind the last one.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
}

/// A thread that keeps a CPU busy until it is dropped, so that those who yield to it are woken and do not
/// run yet.
pub(super) struct Hog {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Hog {
    /// The CPU that it keeps busy.
    fn cpu() -> io::Result<u32> {
        let all = sched::affinity()?;
        all.last().copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Has the calling thread run on that CPU only, and not at once when it is woken (`SCHED_BATCH`).
    ///
    /// # Errors
    /// As `sched_setaffinity(2)`.
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
        let hog = Self { stop, thread: Some(std::thread::spawn(spin)) };
        let lost = |_| Stop::Fail("a thread of the test did not start".into());
        done("choosing a thread's CPU", told.recv().map_err(lost)?)?;
        Ok(hog)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
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
