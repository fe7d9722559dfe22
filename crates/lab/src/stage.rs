//! Room: who runs where: the processes of a run and the measuring end of a case.
//! Not here: what they say to each other (`crate::measure::echo`), when (`crate::run`).
//! Every server is this same program, started again with a hidden command (`role`), and cannot
//! outlive the one that measures.

mod contexts;
mod peer;
pub mod role;
mod watch;

pub use watch::Watch;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use driver::{AnyContext, Context, EmbeddedConnection, KernelConnection, on_context};
use record::HostClass;
use sys::shared_memory::SharedMemory;

use crate::measure::CallError;
use crate::measure::echo::inside::{Copying, Serialising};
use crate::measure::echo::rendezvous::{self, Rendezvous};
use crate::measure::echo::{binder, event, hwbinder, pipe, raw, shared, unix};
use crate::plan::{Dialect, Family, FaultKind, Placement, Plan, Planned};
use crate::serialisation;
pub(crate) use contexts::{Contexts, Place};
use contexts::{Manager, Managers};
pub(crate) use peer::{Peer, Streams};

/// The measuring end of a case, ready to go.
pub(crate) enum Subject {
    Memcpy(Copying),
    Parcel(Serialising<serialisation::binder::Call>),
    HwParcel(Serialising<serialisation::hwbinder::Call>),
    Pipe(pipe::Client),
    Unix(unix::Client),
    Futex(shared::Client<shared::Sleep>),
    Eventfd(event::Client),
    Spin(shared::Client<shared::Spin>),
    Raw(Box<raw::Client<KernelConnection>>),
    RawEmbedded(Box<raw::Client<EmbeddedConnection>>),
    Binder(binder::Client),
    Hwbinder(hwbinder::Client),
    Passthrough(hwbinder::InProcess),
}

/// Why a case cannot be measured.
#[derive(Debug)]
pub(crate) enum StageError {
    /// This machine, or this run, has no place for it.
    Unfit(String),
    /// Something broke.
    Failed(String),
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unfit(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}

fn failed<E: fmt::Display>(what: &'static str) -> impl FnOnce(E) -> StageError {
    move |error| StageError::Failed(format!("{what}: {error}"))
}

fn os_failed(what: &'static str) -> impl FnOnce(io::Error) -> StageError {
    move |error| StageError::Failed(format!("{what}: {}", sys::errno::describe(&error)))
}

/// All processes of a run beside the one that measures.
pub(crate) struct Stage<'p> {
    plan: &'p Plan,
    program: PathBuf,
    watch: Watch,
    server: Option<Arc<Peer>>,
    contexts: Contexts,
    managers: Managers,
    placement: Placement,
    /// Where this thread may run when it is not confined to one CPU.
    unpinned: Option<Vec<u32>>,
    /// Nodes that a server of bare exchanges registers besides its own.
    more_nodes: u32,
}

/// Does something with the measuring end inside a [`Subject`], compiled once for each kind.
macro_rules! on_subject {
    ($subject:expr, |$client:pat_param| $work:expr) => {
        match $subject {
            $crate::stage::Subject::Memcpy($client) => $work,
            $crate::stage::Subject::Parcel($client) => $work,
            $crate::stage::Subject::HwParcel($client) => $work,
            $crate::stage::Subject::Pipe($client) => $work,
            $crate::stage::Subject::Unix($client) => $work,
            $crate::stage::Subject::Futex($client) => $work,
            $crate::stage::Subject::Eventfd($client) => $work,
            $crate::stage::Subject::Spin($client) => $work,
            $crate::stage::Subject::Raw($client) => $work,
            $crate::stage::Subject::RawEmbedded($client) => $work,
            $crate::stage::Subject::Binder($client) => $work,
            $crate::stage::Subject::Hwbinder($client) => $work,
            $crate::stage::Subject::Passthrough($client) => $work,
        }
    };
}
pub(crate) use on_subject;

/// How long a server that went silent may take to be seen dead.
const GRACE: Duration = Duration::from_secs(2);

impl<'p> Stage<'p> {
    /// An empty stage; `program` is started for each process, `contexts` are for those cases that need
    /// one; a single one is binder's.
    ///
    /// On an emulated machine, unless the plan places them, both sides of every case but spinning share
    /// one CPU: a wake-up across emulated CPUs costs what the emulator's own host makes of it, from
    /// nothing to a hundred times the call.
    pub(crate) fn new(
        plan: &'p Plan,
        program: &Path,
        contexts: impl Into<Contexts>,
        class: HostClass,
    ) -> Self {
        let watch = Watch::new(Duration::from_secs(plan.patience_s.max(1)));
        let program = program.to_owned();
        let placement = match plan.placement {
            Placement::Default if class == HostClass::Tcg => Placement::Same,
            chosen => chosen,
        };
        Self {
            plan,
            program,
            watch,
            server: None,
            contexts: contexts.into(),
            managers: Managers::default(),
            placement,
            unpinned: None,
            more_nodes: 0,
        }
    }

    /// Has servers of bare exchanges register so many nodes besides their own.
    pub(crate) fn with_more_nodes(mut self, more_nodes: u32) -> Self {
        self.more_nodes = more_nodes;
        self
    }

    /// The name of the service of a case with a driver.
    pub(crate) fn service_name() -> String {
        format!("binderperf.sendvec.{}", std::process::id())
    }

    /// What the measuring loop reports to.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Starts what a case needs.
    pub(crate) fn enter(&mut self, planned: &Planned) -> Result<Subject, StageError> {
        self.leave();
        let case = &planned.case;
        let fault = self.plan.faults.iter().find(|fault| fault.case == case.name).map(|fault| fault.kind);
        let len = case.payload_bytes as usize;
        let client_cpu = self.place(planned.family)?;
        let subject = self.start_case(planned, len, fault)?;
        // What was started until now runs where this thread did.
        if let Some(cpu) = client_cpu {
            pin(cpu)?;
        }
        Ok(subject)
    }

    fn start_case(
        &mut self,
        planned: &Planned,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<Subject, StageError> {
        match planned.family {
            Family::Pipe | Family::Unix if len == 0 => {
                // A write of nothing leaves nothing to read, and a message of nothing looks like the end.
                Err(StageError::Unfit(format!(
                    "no vector of 0 B goes through {}",
                    if planned.family == Family::Pipe { "a pipe" } else { "a unix socket" }
                )))
            }
            Family::Memcpy => Ok(Subject::Memcpy(Copying::new(len))),
            Family::Parcel => {
                Ok(Subject::Parcel(Serialising::new(serialisation::binder::Call::new(len), len)))
            }
            Family::HwParcel => {
                Ok(Subject::HwParcel(Serialising::new(serialisation::hwbinder::Call::new(len), len)))
            }
            Family::Pipe => self.pipe(len, fault),
            Family::Unix => self.unix(len, fault),
            Family::Futex => Ok(Subject::Futex(shared::Client::new(self.shared("futex", len, fault)?, len))),
            Family::Eventfd => self.eventfd(len, fault),
            Family::Spin => Ok(Subject::Spin(shared::Client::new(self.shared("spin", len, fault)?, len))),
            Family::Passthrough => Ok(Subject::Passthrough(hwbinder::InProcess::new(len))),
            family @ (Family::Raw | Family::Binder | Family::Binderize) => self.on_driver(family, len, fault),
        }
    }

    /// A case with a driver. A proxy carries no type of connection, so one client serves for both drivers
    /// but where there is no runtime.
    fn on_driver(
        &mut self,
        family: Family,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<Subject, StageError> {
        let no_driver = || StageError::Failed(format!("{family} talks to no driver"));
        let dialect = self.plan.dialect(family).ok_or_else(no_driver)?;
        let any = self.contexts.find(dialect)?;
        match (family, any) {
            (Family::Raw, AnyContext::Kernel(context)) => {
                let find = |place: Rendezvous<'_, _>| raw::Client::find(place, len);
                let client = self.named("raw", fault, dialect, &context, find)?;
                Ok(Subject::Raw(Box::new(client)))
            }
            (Family::Raw, AnyContext::Embedded(context)) => {
                let find = |place: Rendezvous<'_, _>| raw::Client::find(place, len);
                let client = self.named("raw", fault, dialect, &context, find)?;
                Ok(Subject::RawEmbedded(Box::new(client)))
            }
            (Family::Binderize, any) => on_context!(any, |context| {
                let find = |place: Rendezvous<'_, _>| hwbinder::Client::find(place, len);
                Ok(Subject::Hwbinder(match &self.plan.service {
                    Some(name) => self.others(dialect, name, &context, find)?,
                    None => self.named("service", fault, dialect, &context, find)?,
                }))
            }),
            (_, any) => on_context!(any, |context| {
                let find = |place: Rendezvous<'_, _>| binder::Client::find(place, len);
                Ok(Subject::Binder(self.named("service", fault, dialect, &context, find)?))
            }),
        }
    }

    /// Ends the processes of the last case.
    pub(crate) fn leave(&mut self) {
        self.server = None;
        self.release();
    }

    /// Confines this thread, and the servers that it starts from now on, to the CPU that the case's
    /// server shall have. Returns the CPU that this thread moves to afterwards, if it is another.
    fn place(&mut self, family: Family) -> Result<Option<u32>, StageError> {
        let usable = usable_cpus()?;
        let (server, client) = match (family, self.plan.placement) {
            (Family::Spin, Placement::Same) if !self.plan.spin_apart => {
                let why = "two spinning processes on one CPU would wait for the scheduler's ticks";
                return Err(StageError::Unfit(why.to_owned()));
            }
            (Family::Spin, _) => {
                let (server, client) = cpus_to_spin_on(&usable)?;
                (server, Some(client))
            }
            (_, Placement::Cross) => {
                let (server, client) = two_cpus(&usable, "a case across CPUs needs two")?;
                (server, Some(client))
            }
            _ => match (self.placement, usable.last()) {
                (Placement::Same, Some(&cpu)) => (cpu, None),
                _ => return Ok(None),
            },
        };
        pin(server)?;
        self.unpinned = Some(usable);
        Ok(client)
    }

    /// Lets this thread run again wherever it might before.
    pub(crate) fn release(&mut self) {
        if let Some(cpus) = self.unpinned.take() {
            // These were allowed before, and only this thread chose fewer.
            let _ = sys::sched::set_affinity(&cpus);
        }
    }

    /// What a broken round trip means, with what became of the server.
    pub(crate) fn explain(&self, error: &CallError) -> String {
        if self.watch.gave_up() {
            return format!("no round trip in {} s, so the server was killed", self.plan.patience_s);
        }
        if matches!(error, CallError::Corrupt { .. }) {
            return error.to_string();
        }
        match self.server.as_ref().and_then(|server| server.end_within(GRACE)) {
            Some(end) => format!("the server died ({end}): {error}"),
            None => error.to_string(),
        }
    }

    fn start(
        &self,
        words: &[String],
        stdin: Stdio,
        stdout: Stdio,
        on_end: Option<peer::OnEnd>,
    ) -> Result<Arc<Peer>, StageError> {
        self.start_with(words, Streams { stdin, stdout, stderr: Stdio::inherit() }, on_end)
    }

    fn start_with(
        &self,
        words: &[String],
        streams: Streams,
        on_end: Option<peer::OnEnd>,
    ) -> Result<Arc<Peer>, StageError> {
        let peer = Peer::spawn_with(&self.program, words, streams, on_end)
            .map_err(os_failed("starting the server process"))?;
        let peer = Arc::new(peer);
        self.watch.mind(&peer);
        Ok(peer)
    }

    fn pipe(&mut self, len: usize, fault: Option<FaultKind>) -> Result<Subject, StageError> {
        let (their_requests, requests) = io::pipe().map_err(os_failed("making a pipe"))?;
        let (replies, their_replies) = io::pipe().map_err(os_failed("making a pipe"))?;
        let words = role::words("pipe", &[len.to_string()], fault);
        self.server = Some(self.start(&words, their_requests.into(), their_replies.into(), None)?);
        Ok(Subject::Pipe(pipe::Client::new(requests, replies, len)))
    }

    fn unix(&mut self, len: usize, fault: Option<FaultKind>) -> Result<Subject, StageError> {
        if !unix::takes(len).map_err(os_failed("making a socket pair"))? {
            let why = format!("a unix socket takes no message of {len} B here; raise net.core.wmem_default");
            return Err(StageError::Unfit(why));
        }
        let (ours, theirs) = sys::socket_pair::seqpacket().map_err(os_failed("making a socket pair"))?;
        let words = role::words("unix", &[len.to_string()], fault);
        self.server = Some(self.start(&words, theirs.into(), Stdio::null(), None)?);
        Ok(Subject::Unix(unix::Client::new(File::from(ours), len)))
    }

    fn shared(
        &mut self,
        role: &'static str,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<SharedMemory, StageError> {
        let what = os_failed("making shared memory");
        let made = || -> io::Result<(SharedMemory, OwnedFd, SharedMemory)> {
            let memory = SharedMemory::create(shared::memory_size(len))?;
            let theirs = memory.descriptor().try_clone_to_owned()?;
            let watched = SharedMemory::map(memory.descriptor().try_clone_to_owned()?)?;
            Ok((memory, theirs, watched))
        };
        let (memory, theirs, watched) = made().map_err(what)?;
        let on_end: peer::OnEnd = Box::new(move || shared::close(&watched));
        let words = role::words(role, &[len.to_string()], fault);
        self.server = Some(self.start(&words, theirs.into(), Stdio::null(), Some(on_end))?);
        Ok(memory)
    }

    fn eventfd(&mut self, len: usize, fault: Option<FaultKind>) -> Result<Subject, StageError> {
        let made = || -> io::Result<(event::Events, File)> {
            let memory = SharedMemory::create(event::memory_size(len))?;
            let (requests, replies) = (sys::event_fd::counter()?, sys::event_fd::counter()?);
            let (requests, replies) = (File::from(requests), File::from(replies));
            let watched = replies.try_clone()?;
            Ok((event::Events { memory, requests, replies }, watched))
        };
        let (events, mut watched) = made().map_err(os_failed("making an eventfd"))?;
        let copy = |file: &File| file.try_clone().map_err(os_failed("copying an eventfd"));
        let (requests, replies) = (copy(&events.requests)?, copy(&events.replies)?);
        let on_end: peer::OnEnd = Box::new(move || event::close(&mut watched));
        // Only two descriptors can be inherited; memory can be opened once more where it is.
        let place = format!("/proc/{}/fd/{}", std::process::id(), events.memory.descriptor().as_raw_fd());
        let words = role::words("eventfd", &[len.to_string(), place], fault);
        self.server = Some(self.start(&words, requests.into(), replies.into(), Some(on_end))?);
        Ok(Subject::Eventfd(event::Client::new(events, len)))
    }

    /// A server that says when it is ready.
    fn start_and_wait(&self, what: &str, words: &[String]) -> Result<Arc<Peer>, StageError> {
        let server = self.start(words, Stdio::null(), Stdio::piped(), None)?;
        match self.watch.during(|| server.wait_until_ready()) {
            Ok(()) => Ok(server),
            Err(why) => Err(StageError::Failed(format!("the {what} did not start: {why}"))),
        }
    }

    /// The same, whose complaints are kept, too, for [`Peer::complaints`].
    pub(crate) fn start_heard_worker(&self, words: &[String]) -> Result<Arc<Peer>, StageError> {
        let streams = Streams { stdin: Stdio::null(), stdout: Stdio::piped(), stderr: Stdio::piped() };
        self.start_with(words, streams, None)
    }

    /// A process with these words, whose output is kept for [`Peer::last_words`].
    pub(crate) fn start_worker(&self, words: &[String]) -> Result<Arc<Peer>, StageError> {
        self.start(words, Stdio::null(), Stdio::piped(), None)
    }

    /// A server with a name at the service manager, and its client once both are there.
    fn named<T, X: Context>(
        &mut self,
        role: &str,
        fault: Option<FaultKind>,
        dialect: Dialect,
        context: &X,
        find: impl FnOnce(Rendezvous<'_, X>) -> Result<T, CallError>,
    ) -> Result<T, StageError> {
        let any = self.manage(dialect)?;
        let name = Self::service_name();
        let mut arguments = vec![any.address(), dialect.to_string(), name.clone()];
        if self.more_nodes > 0 {
            arguments.push(self.more_nodes.to_string());
        }
        self.server = Some(self.start_and_wait("service", &role::words(role, &arguments, fault))?);
        self.others(dialect, &name, context, find)
    }

    /// The client of a service that is there, whoever serves it.
    fn others<T, X: Context>(
        &self,
        dialect: Dialect,
        name: &str,
        context: &X,
        find: impl FnOnce(Rendezvous<'_, X>) -> Result<T, CallError>,
    ) -> Result<T, StageError> {
        let place = Rendezvous { context, dialect, name };
        self.watch.during(|| find(place)).map_err(failed("reaching the service"))
    }

    /// Makes sure that there is somebody to call where the plan counts on others.
    pub(crate) fn see_to_others(&self) -> Result<(), StageError> {
        let Some(name) = &self.plan.service else { return Ok(()) };
        let dialect = Dialect::Hwbinder;
        on_context!(self.contexts.find(dialect)?, |context| {
            self.others(dialect, name, &context, |place| hwbinder::Client::find(place, 0)).map(drop)
        })
    }

    /// Makes sure that a context has a service manager before the first case needs it: the system's, or
    /// one of ours in a process of its own. Returns the context.
    pub(crate) fn manage(&mut self, dialect: Dialect) -> Result<AnyContext, StageError> {
        let any = self.contexts.find(dialect)?;
        match self.managers.of(dialect) {
            Manager::Theirs => return Ok(any),
            // Whoever gives up on a case kills the manager, too; that takes effect a little later.
            Manager::Ours(peer) => {
                let time = if self.watch.gave_up() { GRACE } else { Duration::ZERO };
                if peer.end_within(time).is_none() {
                    return Ok(any);
                }
            }
            Manager::Unknown => {}
        }
        let managed = !any.is_private()
            && on_context!(&any, |context| self.watch.during(|| rendezvous::is_managed(context, dialect)))
                .map_err(failed("looking for a service manager"))?;
        *self.managers.of(dialect) = if managed {
            Manager::Theirs
        } else {
            let arguments = [any.address(), dialect.to_string()];
            Manager::Ours(self.start_and_wait("service manager", &role::words("manager", &arguments, None))?)
        };
        Ok(any)
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

fn usable_cpus() -> Result<Vec<u32>, StageError> {
    sys::sched::affinity().map_err(os_failed("asking for the usable CPUs"))
}

fn pin(cpu: u32) -> Result<(), StageError> {
    sys::sched::set_affinity(&[cpu]).map_err(os_failed("choosing a CPU"))
}

/// Two CPUs that spinning may use. At a real-time priority spinning can stop a machine.
fn cpus_to_spin_on(usable: &[u32]) -> Result<(u32, u32), StageError> {
    if sys::sched::is_realtime() {
        return Err(StageError::Unfit("spinning at a real-time priority can stop the machine".to_owned()));
    }
    two_cpus(usable, "two spinning processes need two CPUs")
}

/// The last two CPUs: the first has the interrupts.
fn two_cpus(usable: &[u32], needed: &str) -> Result<(u32, u32), StageError> {
    match usable {
        [.., server, client] => Ok((*server, *client)),
        _ => Err(StageError::Unfit(format!("{needed}, and there is one"))),
    }
}
