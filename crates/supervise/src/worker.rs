//! Threads that answer: one for each supervised thread that asks, because a call may wait.
//! Not here: the answers (`answer`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::interrupt::{Interrupter, ThreadId};
use sys::notification::Notification;

use crate::answer::{Asker, Supervisor};

/// Time after which a worker without a question ends.
const IDLE: Duration = Duration::from_secs(1);

/// The worker of one supervised thread.
#[derive(Debug)]
struct Worker {
    questions: Sender<Notification>,
    thread: Option<ThreadId>,
}

/// State that workers share.
#[derive(Debug, Default)]
struct Shared {
    by_thread: Mutex<HashMap<i32, Worker>>,
    /// Questions without an answer.
    open: AtomicUsize,
}

/// All workers.
#[derive(Debug)]
pub(crate) struct Workers {
    supervisor: Arc<Supervisor>,
    shared: Arc<Shared>,
    interrupter: Interrupter,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Worker>> {
        self.by_thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    pub(crate) fn new(supervisor: Arc<Supervisor>, interrupter: Interrupter) -> Self {
        Self { supervisor, shared: Arc::default(), interrupter }
    }

    /// True if a question has no answer yet.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.open.load(Ordering::SeqCst) > 0
    }

    /// Has a question answered, after the earlier ones of its thread.
    pub(crate) fn ask(&self, asked: Notification) {
        self.shared.open.fetch_add(1, Ordering::SeqCst);
        let mut workers = self.shared.lock();
        if let Some(worker) = workers.get(&asked.thread) {
            // It cannot have ended: it leaves the map before.
            let _ = worker.questions.send(asked);
            // An earlier call of the thread that is still under way was ended by a signal.
            drop(workers);
            return self.interrupt_abandoned(Some(asked.thread));
        }
        let (questions, asked_for) = mpsc::channel();
        let (supervisor, shared) = (self.supervisor.clone(), self.shared.clone());
        let thread = asked.thread;
        let work = move || work(&supervisor, &shared, thread, &asked_for);
        match std::thread::Builder::new().name("binder-answer".to_owned()).spawn(work) {
            Ok(_) => {
                // The receiver lives in the new thread.
                let _ = questions.send(asked);
                workers.insert(thread, Worker { questions, thread: None });
            }
            Err(error) => {
                drop(workers);
                self.shared.open.fetch_sub(1, Ordering::SeqCst);
                let why = sys::errno::describe(&error);
                (self.supervisor.report)(&format!("no thread can be started to answer a call: {why}"));
                let _ = self.supervisor.calls.listener.answer(asked.id, Err(sys::errno::EAGAIN));
            }
        }
    }

    /// Ends the calls under way that signals took their threads out of; all of them, or that of one thread.
    fn interrupt_abandoned(&self, only: Option<i32>) {
        let workers = self.shared.lock();
        self.supervisor.calls.abandoned(|thread| {
            let worker = workers.get(&thread).and_then(|worker| worker.thread);
            if let Some(worker) = worker.filter(|_| only.is_none_or(|only| only == thread)) {
                // A worker that has ended meanwhile needs no interruption.
                let _ = self.interrupter.interrupt(worker);
            }
        });
    }

    /// Looks for calls that signals took their threads out of, which the kernel does not tell.
    pub(crate) fn sweep(&self) {
        self.interrupt_abandoned(None);
    }
}

fn work(supervisor: &Supervisor, shared: &Shared, thread: i32, questions: &Receiver<Notification>) {
    if let Some(own) = shared.lock().get_mut(&thread) {
        own.thread = Some(ThreadId::current());
    }
    let mut asker = Asker::new(thread);
    let answer = |asker: &mut Asker, asked| {
        supervisor.answer(asker, &asked);
        shared.open.fetch_sub(1, Ordering::SeqCst);
    };
    loop {
        match questions.recv_timeout(IDLE) {
            Ok(asked) => answer(&mut asker, asked),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let mut all = shared.lock();
                // What was asked since is in the channel: questions are sent under the lock.
                match questions.try_recv() {
                    Ok(asked) => {
                        drop(all);
                        answer(&mut asker, asked);
                    }
                    Err(_) if asker.is_idle() || !sys::other_process::exists(thread) => {
                        all.remove(&thread);
                        drop(all);
                        return supervisor.leave(asker);
                    }
                    Err(_) => {}
                }
            }
        }
    }
}
