//! The thread that receives calls. Nearly all of them have nothing to do with a device, and go on at once. To know that, it looks at
//! the program's memory and at files, which a file system that hangs holds up for ever: then another thread takes its post, so that
//! one program's files stop that program alone. To hand each call to a second thread would take four times as long.
//! Not here: the answers to the other calls (`worker`).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use sys::errno::{EINTR, ENOENT};
use sys::interrupt::{Interrupter, ThreadId};

use crate::answer::Supervisor;
use crate::worker::Workers;

/// State that all receivers share with the supervisor's loop.
#[derive(Debug)]
struct Shared {
    supervisor: Arc<Supervisor>,
    workers: Arc<Workers>,
    /// Counts what the loop is woken for.
    news: File,
    /// The loop waits without an end.
    loop_rests: AtomicBool,
}

/// The post of one receiver.
#[derive(Debug, Default)]
struct Post {
    /// One more at the begin of each look at a call, and at its end: odd in between.
    steps: AtomicU64,
    /// Another receiver has taken over.
    relieved: AtomicBool,
    thread: OnceLock<ThreadId>,
}

/// The receiver at its post.
#[derive(Debug)]
pub(crate) struct Receiver {
    shared: Arc<Shared>,
    post: Arc<Post>,
    thread: JoinHandle<io::Result<()>>,
    /// Steps at the last tick.
    seen: u64,
}

impl Receiver {
    pub(crate) fn start(supervisor: &Arc<Supervisor>, workers: &Arc<Workers>) -> io::Result<Self> {
        let news = File::from(sys::descriptor::event_counter()?);
        let (supervisor, workers) = (supervisor.clone(), workers.clone());
        let shared = Arc::new(Shared { supervisor, workers, news, loop_rests: AtomicBool::new(false) });
        Self::take_post(shared)
    }

    fn take_post(shared: Arc<Shared>) -> io::Result<Self> {
        let post = Arc::new(Post::default());
        let (own, at) = (shared.clone(), post.clone());
        let thread = std::thread::Builder::new()
            .name("binder-receive".to_owned())
            .spawn(move || own.receive(&at).inspect_err(|_| own.wake()))?;
        Ok(Self { shared, post, thread, seen: 0 })
    }

    /// Shows each reason why the loop must not rest any more.
    pub(crate) fn news(&self) -> BorrowedFd<'_> {
        self.shared.news.as_fd()
    }

    /// True if no call was received since the last tick and none is under way. The loop is woken when that ends.
    pub(crate) fn lets_rest(&self) -> bool {
        let shared = &self.shared;
        // Before the look: a receiver steps first and wakes then.
        shared.loop_rests.store(true, Ordering::SeqCst);
        let steps = self.post.steps.load(Ordering::SeqCst);
        let rests = steps == self.seen && !is_looking(steps) && !shared.workers.is_busy();
        shared.loop_rests.store(rests, Ordering::SeqCst);
        rests
    }

    /// Lets another thread receive if this one has looked at the same call since the last tick.
    ///
    /// # Errors
    /// The receiver's own error. No thread can be started.
    pub(crate) fn tick(self) -> io::Result<Self> {
        if self.thread.is_finished() {
            self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            return Self::take_post(self.shared);
        }
        let steps = self.post.steps.load(Ordering::SeqCst);
        if steps != self.seen || !is_looking(steps) {
            return Ok(Self { seen: steps, ..self });
        }
        self.post.relieved.store(true, Ordering::SeqCst);
        Self::take_post(self.shared)
    }

    /// Ends the receiver, once no program is left that could make a call.
    pub(crate) fn end(self, interrupter: Interrupter) {
        self.post.relieved.store(true, Ordering::SeqCst);
        // One that is held up ends when it is not any more.
        while !self.thread.is_finished() && !is_looking(self.post.steps.load(Ordering::SeqCst)) {
            // Kernels before 6.11 let it wait although no call can come.
            if let Some(thread) = self.post.thread.get() {
                let _ = interrupter.interrupt(*thread);
            }
            std::thread::sleep(crate::PAUSE);
        }
    }
}

/// True in the middle of a look.
fn is_looking(steps: u64) -> bool {
    steps % 2 == 1
}

impl Shared {
    fn wake(&self) {
        // Nothing can fail but a count beyond all bounds.
        let _ = (&self.news).write_all(&1_u64.to_ne_bytes());
    }

    /// Receives until it is relieved, or no program is left.
    fn receive(&self, post: &Post) -> io::Result<()> {
        let listener = &self.supervisor.calls.listener;
        let _ = post.thread.set(ThreadId::current());
        while !post.relieved.load(Ordering::SeqCst) {
            let asked = match listener.receive() {
                Ok(asked) => asked,
                Err(error) if matches!(error.raw_os_error(), Some(ENOENT | EINTR)) => {
                    if sys::seqpacket::poll(listener.as_fd(), 0)?.hung_up {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            post.steps.fetch_add(1, Ordering::SeqCst);
            if self.loop_rests.swap(false, Ordering::SeqCst) {
                self.wake();
            }
            match self.supervisor.is_foreign(&asked) {
                // A thread that has left its call needs no answer.
                true => _ = listener.go_on(asked.id),
                false => self.workers.ask(asked),
            }
            post.steps.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
