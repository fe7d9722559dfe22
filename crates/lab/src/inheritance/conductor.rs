//! Room: the process that plays the scenes: its servers, its callers, and a limit on every wait.
//! Not here: the scenes (`scenes`), what is expected (`expected`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use driver::embedded::Inherit;
use driver::{AnyConnection, AnyContext, on_context};
use ipc::{NodeOptions, Process};
use record::Sched;

use super::scenes;
use super::server;
use super::service::Callee;
use super::words::{Assignment, Least, Serving, node};
use crate::measure::echo::rendezvous;
use crate::plan::Dialect;
use crate::realtime::{self, Cause, HIGHEST};
use crate::stage::{Peer, role};

/// How long a scene may take. It only ends one that hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so many scenes that hung, no other is played.
const MOST_HUNG: u32 = 2;
/// How long a thread may take to be as it waits.
const SETTLING: Duration = Duration::from_secs(1);

/// Plays all scenes and says what was seen as the last line of the output.
pub(super) fn conduct(
    address: &str,
    servers: &str,
    dialect: Dialect,
    inherit_rt: bool,
    rule: Option<Inherit>,
) -> Result<(), String> {
    let manager = manage(address, dialect)?;
    let process = server::open(address, dialect)?;
    let stage = Stage {
        process,
        _manager: manager,
        servers: servers.to_owned(),
        dialect,
        inherit_rt,
        rule,
        running: RefCell::default(),
        started: Cell::new(0),
        hung: Cell::new(0),
    };
    let hops = scenes::play(&stage);
    let text = serde_json::to_string(&hops).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}

/// Starts a service manager where there is none.
fn manage(address: &str, dialect: Dialect) -> Result<Option<Peer>, String> {
    let any = AnyContext::parse(address);
    let managed = on_context!(&any, |context| rendezvous::is_managed(context, dialect));
    if managed.map_err(|error| format!("looking for a service manager: {error}"))? {
        return Ok(None);
    }
    let words = role::words("manager", &[address.to_owned(), dialect.to_string()], None);
    start(&words, "service manager").map(Some)
}

/// Starts a process that says when it is ready.
fn start(words: &[String], what: &'static str) -> Result<Peer, String> {
    let peer = Peer::spawn(Path::new("/proc/self/exe"), words, Stdio::null(), Stdio::piped(), None)
        .map_err(|error| format!("starting the {what}: {}", sys::errno::describe(&error)))?;
    let ready = std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let peer = &peer;
        scope.spawn(move || tell.send(peer.wait_until_ready()));
        let heard = told.recv_timeout(PATIENCE);
        if heard.is_err() {
            // So that the thread that reads from it ends.
            peer.kill();
        }
        heard
    });
    match ready {
        Ok(Ok(())) => Ok(peer),
        Ok(Err(why)) => Err(format!("the {what} did not start: {why}")),
        Err(_) => Err(format!("the {what} was not ready in {} s", PATIENCE.as_secs())),
    }
}

/// A server, by what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The usual one.
    First,
    /// Another such.
    Second,
    /// Waits at a greater nice, and its node asks for a lesser one.
    NicerNode,
    /// Its node asks for a real-time policy.
    RealtimeNode,
}

/// The nice at which servers wait, but for [`Part::NicerNode`]'s: neither a caller's nor a node's, so that a
/// thread that was left alone is seen to be.
pub(super) const WAITING: i32 = 4;

impl Part {
    /// At which nice it waits.
    pub(super) fn nice(self) -> i32 {
        if self == Self::NicerNode { 10 } else { WAITING }
    }

    fn least(self) -> Least {
        match self {
            Self::First | Self::Second => Least::Usual,
            Self::NicerNode => Least::Nice(3),
            Self::RealtimeNode => Least::Fifo(10),
        }
    }
}

/// A server that runs.
struct Running {
    callee: Callee,
    /// Its one thread.
    pid: i32,
    _peer: Peer,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A thread with the most urgent real-time priority that it may have.
    Fifo,
    /// A thread of this nice.
    Nice(i32),
}

/// Why a scene has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Untold {
    /// This process may not do what it takes.
    NoRight(String),
    /// Something broke, or hung.
    Broken(String),
}

impl From<String> for Untold {
    fn from(why: String) -> Self {
        Self::Broken(why)
    }
}

/// What scenes are played with.
pub(super) struct Stage {
    pub(super) process: Process<AnyConnection>,
    _manager: Option<Peer>,
    servers: String,
    pub(super) dialect: Dialect,
    inherit_rt: bool,
    pub(super) rule: Option<Inherit>,
    running: RefCell<BTreeMap<Part, Running>>,
    started: Cell<u32>,
    hung: Cell<u32>,
}

impl Stage {
    /// The options of a server's node; `First`'s are this process's, too.
    pub(super) fn node(&self, part: Part) -> Result<NodeOptions, Untold> {
        Ok(node(self.dialect, self.inherit_rt, part.least())?)
    }

    /// A server and its thread, started if need be. It is called once, so that whatever a first call sets up
    /// is there.
    pub(super) fn server(&self, part: Part) -> Result<(Callee, i32), Untold> {
        if let Some(running) = self.running.borrow().get(&part) {
            return Ok((running.callee.clone(), running.pid));
        }
        let number = self.started.get();
        self.started.set(number + 1);
        let name = format!("binderperf.inherit.{}.{number}", std::process::id());
        let serving = Serving {
            address: self.servers.clone(),
            dialect: self.dialect.to_string(),
            name: name.clone(),
            nice: part.nice(),
            inherit_rt: self.inherit_rt,
            least: part.least(),
        };
        let words = Assignment::Serve(serving).words().map_err(|error| error.to_string())?;
        let peer = start(&words, "server")?;
        let (process, dialect) = (self.process.clone(), self.dialect);
        let (callee, pid) = self.limited(move || {
            let callee = server::find(&process, dialect, &name)?;
            let first = callee.look(0)?;
            let pid = first.first().map(|seen| seen.tid).ok_or_else(|| "an empty answer".to_owned())?;
            Ok((callee, pid))
        })?;
        self.running.borrow_mut().insert(part, Running { callee: callee.clone(), pid, _peer: peer });
        Ok((callee, pid))
    }

    /// How a server's thread waits: as it was told, as soon as it does.
    pub(super) fn idle(&self, part: Part, thread: i32) -> Result<Sched, Untold> {
        settled(thread, Sched::other(part.nice()))
    }

    /// Does something in a thread that is scheduled so, and knows how it really is.
    pub(super) fn from<T: Send + 'static>(
        &self,
        caller: Caller,
        job: impl FnOnce(Sched) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Untold> {
        self.limited(move || job(become_caller(caller)?).map_err(Untold::Broken))
    }

    /// Does something in a thread of its own. If it hangs, the servers are replaced.
    pub(super) fn limited<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Untold> + Send + 'static,
    ) -> Result<T, Untold> {
        if self.hung.get() >= MOST_HUNG {
            return Err(Untold::Broken("not tried: scenes before it hung".to_owned()));
        }
        let result = within(PATIENCE, job);
        if result.is_none() {
            self.hung.set(self.hung.get() + 1);
            self.running.borrow_mut().clear();
        }
        result.unwrap_or_else(|| Err(Untold::Broken(format!("no answer in {} s", PATIENCE.as_secs()))))
    }
}

/// Does something in a thread of its own, which is left behind if it takes longer; `None` then.
fn within<T: Send + 'static>(
    patience: Duration,
    job: impl FnOnce() -> Result<T, Untold> + Send + 'static,
) -> Option<Result<T, Untold>> {
    let (tell, told) = mpsc::channel();
    // Nobody listens any more to one that hung.
    std::thread::spawn(move || drop(tell.send(job())));
    match told.recv_timeout(patience) {
        Ok(result) => Some(result),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Err(Untold::Broken("its thread panicked".to_owned()))),
    }
}

/// Makes the calling thread such a caller; how it is scheduled then.
fn become_caller(caller: Caller) -> Result<Sched, Untold> {
    let no_right = |error: &dyn std::fmt::Display| Untold::NoRight(error.to_string());
    match caller {
        Caller::Fifo => match realtime::become_fifo(HIGHEST) {
            Err(problem) => match problem.cause {
                // As urgent as it may be tells as much.
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
                    "a thread cannot be given nice {nice}: {error}: it lacks CAP_SYS_NICE, and RLIMIT_NICE is too low"
                ))
            })?;
            Ok(realtime::own())
        }
    }
}

/// How a thread is scheduled as soon as that is `wanted`, or after a while all the same.
pub(super) fn settled(thread: i32, wanted: Sched) -> Result<Sched, Untold> {
    let start = Instant::now();
    loop {
        let found = realtime::of_thread(thread)
            .map_err(|error| format!("looking at the serving thread: {}", sys::errno::describe(&error)))?;
        if found == wanted || start.elapsed() >= SETTLING {
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
        assert_eq!(panicked, Some(Err(Untold::Broken("its thread panicked".to_owned()))));
    }

    #[test]
    fn a_caller_is_what_was_asked_for_or_says_why_not() {
        let outcome = within(PATIENCE, || become_caller(Caller::Fifo)).expect("at once");
        assert!(match outcome {
            Ok(sched) => sched.policy == Sched::fifo(0).policy && sched.priority > 0,
            Err(Untold::NoRight(why)) => why.contains("SCHED_FIFO"),
            Err(Untold::Broken(_)) => false,
        });
        let without = || {
            let tried = sys::capability::without_sys_nice(|| become_caller(Caller::Nice(-20)));
            tried.map_err(|error| Untold::Broken(error.to_string()))?
        };
        match within(PATIENCE, without).expect("at once") {
            Err(Untold::NoRight(why)) => assert!(why.contains("RLIMIT_NICE"), "{why}"),
            other => assert!(sys::sched::most_urgent_nice() <= -20, "{other:?}"),
        }
    }

    #[test]
    fn a_thread_that_never_settles_is_told_as_it_is() {
        let thread = sys::interrupt::ThreadId::current().number();
        assert_eq!(settled(thread, Sched::fifo(99)), Ok(realtime::own()));
        assert!(matches!(settled(i32::MAX, Sched::fifo(99)), Err(Untold::Broken(_))));
    }
}
