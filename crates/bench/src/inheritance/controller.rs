//! The controller worker: plays the scenes with its servers and callers, and limits every wait.
//! Not here: the scenes (`scenes`), the expectations (`expected`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use backend::{AnyConnection, AnyContext};
use embedded::Inherit;
use ipc::NodeOptions;
use procgroup::{Streams, WorkerProcess};
use record::Sched;

use super::parameters::{InheritanceRole, Least, ServerParameters, node};
use super::service::Callee;
use crate::endpoint::Endpoint;
use crate::plan::Dialect;
use crate::servers::OwnManager;
use ftrace::marker::Marker;
use host::realtime::{self, Cause, HIGHEST};

/// Time limit of a scene. It only ends a scene that hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of hung scenes after which no other is played.
const MOST_HUNG: u32 = 2;
/// Time limit for a thread to return to its waiting state.
const SETTLING: Duration = Duration::from_secs(1);

/// Kind of a server, which determines its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerKind {
    /// The default server.
    First,
    /// A second default server.
    Second,
    /// Waits at a higher nice; its node asks for a lower one.
    NicerNode,
    /// Its node asks for a real-time policy.
    RealtimeNode,
}

/// Nice of waiting servers, except [`ServerKind::NicerNode`]: differs from every caller's and node's nice, so
/// that an unchanged priority can be recognised.
pub(super) const WAITING: i32 = 4;

impl ServerKind {
    /// Nice at which the server waits: without the right, no process may have a lower nice than its parent.
    pub(super) fn nice(self) -> i32 {
        let wanted = if self == Self::NicerNode { 10 } else { WAITING };
        wanted.max(least_nice())
    }

    fn least(self) -> Least {
        match self {
            Self::First | Self::Second => Least::Usual,
            Self::NicerNode => Least::Nice(3),
            Self::RealtimeNode => Least::Fifo(10),
        }
    }
}

/// Lowest nice that threads of this program may take: its initial nice, or a lower one with the right to it.
pub(super) fn least_nice() -> i32 {
    // The first thread keeps the initial nice of the process.
    let first = i32::try_from(std::process::id()).unwrap_or(0);
    let own = sys::sched::nice_of(first).unwrap_or(0);
    own.min(sys::urgency::most_urgent_nice())
}

struct RunningServer {
    callee: Callee,
    /// Thread number of its only thread.
    pid: i32,
    _worker: WorkerProcess,
}

/// Scheduling of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A thread with the highest real-time priority that it may have.
    Fifo,
    /// A thread with this nice.
    Nice(i32),
}

/// Error of a hop without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HopError {
    /// This process lacks a right.
    NoRight(String),
    /// A failure or a hang.
    Broken(String),
}

impl From<String> for HopError {
    fn from(why: String) -> Self {
        Self::Broken(why)
    }
}

/// The processes and threads of the scenes.
pub(super) struct Controller {
    pub(super) endpoint: Arc<Endpoint<AnyConnection>>,
    _manager: OwnManager,
    servers: String,
    inherit_rt: bool,
    pub(super) rule: Option<Inherit>,
    running: RefCell<BTreeMap<ServerKind, RunningServer>>,
    started: Cell<u32>,
    hung: Cell<u32>,
}

impl Controller {
    /// Opens the context, whose manager is started if it has none.
    pub(super) fn start(
        address: &str,
        servers: &str,
        dialect: Dialect,
        inherit_rt: bool,
        rule: Option<Inherit>,
    ) -> Result<Self, String> {
        let context = AnyContext::parse(address);
        let manager = OwnManager::start(dialect, context.clone(), PATIENCE.as_secs());
        let manager = manager.map_err(|error| error.to_string())?;
        let endpoint = Endpoint::open(&context, dialect, 0).map_err(|error| error.to_string())?;
        Ok(Self {
            endpoint: Arc::new(endpoint),
            _manager: manager,
            servers: servers.to_owned(),
            inherit_rt,
            rule,
            running: RefCell::default(),
            started: Cell::new(0),
            hung: Cell::new(0),
        })
    }

    /// Returns the options of a server's node; those of `First` also apply to nodes of this process.
    pub(super) fn node(&self, kind: ServerKind) -> Result<NodeOptions, HopError> {
        Ok(node(self.endpoint.dialect, self.inherit_rt, kind.least())?)
    }

    /// Returns a server and its thread, started if necessary. One call has been made, so that first-call
    /// setup is complete.
    pub(super) fn server(&self, kind: ServerKind) -> Result<(Callee, i32), HopError> {
        if let Some(running) = self.running.borrow().get(&kind) {
            return Ok((running.callee.clone(), running.pid));
        }
        let number = self.started.get();
        self.started.set(number + 1);
        let name = format!("binderperf.inherit.{}.{number}", std::process::id());
        let parameters = ServerParameters {
            address: self.servers.clone(),
            title: format!("server {number}"),
            dialect: self.endpoint.dialect.to_string(),
            name: name.clone(),
            nice: kind.nice(),
            inherit_rt: self.inherit_rt,
            least: kind.least(),
        };
        let worker = WorkerProcess::start(&InheritanceRole::Serve(parameters), Streams::heard(), None)
            .map_err(|error| format!("starting the server: {}", sys::errno::describe(&error)))?;
        worker.ready(PATIENCE).map_err(|why| format!("the server did not start: {why}"))?;
        let endpoint = self.endpoint.clone();
        let (callee, pid) = self.limited(move || {
            let callee = Callee::find(&endpoint, &name)?;
            let first = callee.look(0)?;
            let pid = first.first().map(|seen| seen.tid).ok_or_else(|| "an empty answer".to_owned())?;
            Ok((callee, pid))
        })?;
        self.running
            .borrow_mut()
            .insert(kind, RunningServer { callee: callee.clone(), pid, _worker: worker });
        Ok((callee, pid))
    }

    /// Runs `job` in a thread with this scheduling, and passes it the actual scheduling.
    pub(super) fn from<T: Send + 'static>(
        &self,
        caller: Caller,
        job: impl FnOnce(Sched) -> Result<T, String> + Send + 'static,
    ) -> Result<T, HopError> {
        self.limited(move || job(become_caller(caller)?).map_err(HopError::Broken))
    }

    /// Runs `job` in a thread of its own. If it hangs, the servers are replaced.
    pub(super) fn limited<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, HopError> + Send + 'static,
    ) -> Result<T, HopError> {
        if self.hung.get() >= MOST_HUNG {
            return Err(HopError::Broken("not tried: scenes before it hung".to_owned()));
        }
        let result = within(PATIENCE, job);
        if result.is_none() {
            self.hung.set(self.hung.get() + 1);
            self.running.borrow_mut().clear();
        }
        result.unwrap_or_else(|| Err(HopError::Broken(format!("no answer in {} s", PATIENCE.as_secs()))))
    }
}

/// Runs `job` in a thread of its own; `None` if it exceeds the time limit, and the thread is abandoned.
fn within<T: Send + 'static>(
    patience: Duration,
    job: impl FnOnce() -> Result<T, HopError> + Send + 'static,
) -> Option<Result<T, HopError>> {
    let (sender, receiver) = mpsc::channel();
    // The receiver of a job that hung is gone.
    let thread = sys::title::thread("caller", move || {
        mark_scene();
        drop(sender.send(job()));
    });
    if let Err(error) = thread {
        return Some(Err(HopError::Broken(format!("starting a thread: {}", sys::errno::describe(&error)))));
    }
    match sys::patience::receive(&receiver, patience) {
        Ok(result) => Some(result),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Err(HopError::Broken("its thread panicked".to_owned()))),
    }
}

/// Marks the calling thread in a recording: analyses leave its calls out, and those made for them.
pub(super) fn mark_scene() {
    Marker::into(None).mark("scene", format_args!(""));
}

/// Applies a caller's scheduling to the calling thread; returns the actual scheduling.
fn become_caller(caller: Caller) -> Result<Sched, HopError> {
    let no_right = |error: &dyn std::fmt::Display| HopError::NoRight(error.to_string());
    match caller {
        Caller::Fifo => match realtime::become_fifo(HIGHEST) {
            Err(problem) => match problem.cause {
                // A lower permitted priority serves the test as well.
                Cause::NotAllowed { limit: Some(limit @ 1..=98) } => {
                    realtime::become_fifo(limit as u8).map_err(|problem| no_right(&problem))
                }
                _ => Err(no_right(&problem)),
            },
            Ok(sched) => Ok(sched),
        },
        Caller::Nice(nice) => {
            sys::sched::set_nice(0, nice).map_err(|error| {
                let error = sys::errno::describe(&error);
                no_right(&format!(
                    "a thread cannot be given nice {nice}: {error}: {}",
                    sys::urgency::what_is_missing()
                ))
            })?;
            Ok(realtime::own())
        }
    }
}

/// Returns a thread's scheduling as soon as it is `wanted`, or whatever it is after the time limit.
pub(super) fn settled(thread: i32, wanted: Sched) -> Result<Sched, HopError> {
    let start = Instant::now();
    loop {
        let found = realtime::of_thread(thread)
            .map_err(|error| format!("looking at the serving thread: {}", sys::errno::describe(&error)))?;
        if found == wanted || sys::patience::is_over(start, SETTLING) {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_left_behind_and_what_panics_is_told() {
        let (keep, hang) = mpsc::channel::<()>();
        let hung = move || Ok(hang.recv().is_ok());
        assert_eq!(within(Duration::from_millis(20), hung), None);
        drop(keep);
        assert_eq!(within(PATIENCE, || Ok(7)), Some(Ok(7)));
        let panicked = within::<()>(PATIENCE, || std::panic::resume_unwind(Box::new("asked to")));
        assert_eq!(panicked, Some(Err(HopError::Broken("its thread panicked".to_owned()))));
    }

    #[test]
    fn a_caller_is_what_was_asked_for_or_says_why_not() {
        let outcome = within(PATIENCE, || become_caller(Caller::Fifo)).expect("at once");
        assert!(match outcome {
            Ok(sched) => sched.policy == Sched::fifo(0).policy && sched.priority > 0,
            Err(HopError::NoRight(why)) => why.contains("SCHED_FIFO"),
            Err(HopError::Broken(_)) => false,
        });
        let without = || {
            let tried = sys::capability::without_sys_nice(|| become_caller(Caller::Nice(-20)));
            tried.map_err(|error| HopError::Broken(error.to_string()))?
        };
        match within(PATIENCE, without).expect("at once") {
            Err(HopError::NoRight(why)) => assert!(why.contains("RLIMIT_NICE"), "{why}"),
            other => assert!(sys::urgency::most_urgent_nice() <= -20, "{other:?}"),
        }
    }

    #[test]
    fn a_thread_that_never_settles_is_told_as_it_is() {
        let thread = sys::interrupt::ThreadId::current().number();
        assert_eq!(settled(thread, Sched::fifo(99)), Ok(realtime::own()));
        assert!(matches!(settled(i32::MAX, Sched::fifo(99)), Err(HopError::Broken(_))));
    }
}
