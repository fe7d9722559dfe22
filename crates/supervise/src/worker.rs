//! Threads that answer: one for each supervised thread that asks, because a call may wait.
//! Not here: the answers (`answer`).

use std::collections::HashMap;
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

type ByThread = Arc<Mutex<HashMap<i32, Worker>>>;

/// All workers.
#[derive(Debug)]
pub(crate) struct Workers {
    supervisor: Arc<Supervisor>,
    by_thread: ByThread,
    interrupter: Interrupter,
}

fn lock(workers: &ByThread) -> MutexGuard<'_, HashMap<i32, Worker>> {
    workers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    pub(crate) fn new(supervisor: Arc<Supervisor>, interrupter: Interrupter) -> Self {
        Self { supervisor, by_thread: ByThread::default(), interrupter }
    }

    /// Has a question answered, after the earlier ones of its thread.
    pub(crate) fn ask(&self, asked: Notification) {
        let mut workers = lock(&self.by_thread);
        if let Some(worker) = workers.get(&asked.thread) {
            // It cannot have ended: it leaves the map before.
            let _ = worker.questions.send(asked);
            // An earlier call of the thread that is still under way was ended by a signal.
            drop(workers);
            return self.interrupt_abandoned(Some(asked.thread));
        }
        let (questions, asked_for) = mpsc::channel();
        let (supervisor, by_thread) = (self.supervisor.clone(), self.by_thread.clone());
        let thread = asked.thread;
        let work = move || work(&supervisor, &by_thread, thread, &asked_for);
        match std::thread::Builder::new().name("binder-answer".to_owned()).spawn(work) {
            Ok(_) => {
                // The receiver lives in the new thread.
                let _ = questions.send(asked);
                workers.insert(thread, Worker { questions, thread: None });
            }
            Err(error) => {
                drop(workers);
                let why = sys::errno::describe(&error);
                (self.supervisor.report)(&format!("no thread can be started to answer a call: {why}"));
                let _ = self.supervisor.calls.listener.answer(asked.id, Err(sys::errno::EAGAIN));
            }
        }
    }

    /// Ends the calls under way that signals took their threads out of; all of them, or that of one thread.
    fn interrupt_abandoned(&self, only: Option<i32>) {
        let workers = lock(&self.by_thread);
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

fn work(supervisor: &Supervisor, workers: &ByThread, thread: i32, questions: &Receiver<Notification>) {
    if let Some(own) = lock(workers).get_mut(&thread) {
        own.thread = Some(ThreadId::current());
    }
    let mut asker = Asker::new(thread);
    loop {
        match questions.recv_timeout(IDLE) {
            Ok(asked) => supervisor.answer(&mut asker, &asked),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let mut all = lock(workers);
                // What was asked since is in the channel: questions are sent under the lock.
                match questions.try_recv() {
                    Ok(asked) => {
                        drop(all);
                        supervisor.answer(&mut asker, &asked);
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
