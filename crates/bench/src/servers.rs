//! Server processes of a run, their placement, and the client of the current case.
//! Not here: their calls (`crate::measure::echo`), the order (`crate::run`).

mod contexts;
pub(crate) mod role;
mod session;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use backend::{AnyContext, on_context};
use driver::{Context, KernelConnection};
use embedded::EmbeddedConnection;
use procgroup::{OnEnd, Streams, Watchdog, WorkerProcess};
use record::HostClass;
use sys::shared_memory::SharedMemory;

use crate::call_error::CallError;
use crate::endpoint::Rendezvous;
use crate::measure::RoundTrip;
use crate::measure::echo::inside::{Copying, Serialising};
use crate::measure::echo::ping::Question;
use crate::measure::echo::{add, binder, event, hwbinder, ping, pipe, raw, rpc, shared, unix};
use crate::plan::{Dialect, Family, FaultKind, MOST_ITERATIONS, Placement, Plan, Planned, ScenarioCase};
use crate::workload::conductor::Conductor;
use crate::workload::group::{Group, Setting};
use crate::workload::program::Program;
pub(crate) use contexts::{ContextState, Contexts, OwnManager};
use role::{Server, ServerRole, Service};

/// The client of a case, ready to call.
pub(crate) enum AnyClient {
    Memcpy(Copying),
    Parcel(Serialising<steps::binder::Call>),
    HwParcel(Serialising<steps::hwbinder::Call>),
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
    Ping(ping::Client),
    AddInts(add::Client),
    RpcPing(rpc::PingClient),
    Rpc(Box<rpc::Client>),
    Scenario(Box<dyn RoundTrip>),
}

/// Error that prevents measuring a case.
#[derive(Debug)]
pub(crate) enum CaseError {
    /// This machine, or this run, does not support it.
    Unfit(String),
    Failed(String),
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unfit(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}

fn failed<E: fmt::Display>(what: &'static str) -> impl FnOnce(E) -> CaseError {
    move |error| CaseError::Failed(format!("{what}: {error}"))
}

fn os_failed(what: &'static str) -> impl FnOnce(io::Error) -> CaseError {
    move |error| CaseError::Failed(format!("{what}: {}", sys::errno::describe(&error)))
}

/// The server processes of a run.
pub(crate) struct Servers {
    plan: Plan,
    watchdog: Watchdog,
    server: Option<Arc<WorkerProcess>>,
    contexts: Contexts,
    placement: Placement,
    /// CPUs of this thread when it is not confined to one.
    unpinned: Option<Vec<u32>>,
    /// Number of additional nodes that a server of bare exchanges registers.
    more_nodes: u32,
}

/// Runs an expression with the client inside an [`AnyClient`], compiled once for each kind.
macro_rules! on_client {
    ($any:expr, |$client:pat_param| $work:expr) => {
        match $any {
            $crate::servers::AnyClient::Memcpy($client) => $work,
            $crate::servers::AnyClient::Parcel($client) => $work,
            $crate::servers::AnyClient::HwParcel($client) => $work,
            $crate::servers::AnyClient::Pipe($client) => $work,
            $crate::servers::AnyClient::Unix($client) => $work,
            $crate::servers::AnyClient::Futex($client) => $work,
            $crate::servers::AnyClient::Eventfd($client) => $work,
            $crate::servers::AnyClient::Spin($client) => $work,
            $crate::servers::AnyClient::Raw($client) => $work,
            $crate::servers::AnyClient::RawEmbedded($client) => $work,
            $crate::servers::AnyClient::Binder($client) => $work,
            $crate::servers::AnyClient::Hwbinder($client) => $work,
            $crate::servers::AnyClient::Passthrough($client) => $work,
            $crate::servers::AnyClient::Ping($client) => $work,
            $crate::servers::AnyClient::AddInts($client) => $work,
            $crate::servers::AnyClient::RpcPing($client) => $work,
            $crate::servers::AnyClient::Rpc($client) => $work,
            $crate::servers::AnyClient::Scenario($client) => $work,
        }
    };
}
pub(crate) use on_client;

/// Time limit to see the death of a server that went silent.
const GRACE: Duration = Duration::from_secs(2);

impl Servers {
    /// Creates the set without a server; `contexts` serve the cases that need one.
    ///
    /// On an emulated machine, unless the plan places them, both sides of every case but spinning share one
    /// CPU: a wake-up across emulated CPUs costs whatever the emulator's own host makes of it, from nothing
    /// to a hundred times the call.
    pub(crate) fn new(plan: &Plan, contexts: Contexts, class: HostClass) -> Self {
        let watchdog = Watchdog::new(Duration::from_secs(plan.patience_s.max(1)));
        let placement = match plan.placement {
            Placement::Default if class == HostClass::Tcg => Placement::Same,
            chosen => chosen,
        };
        Self {
            plan: plan.clone(),
            watchdog,
            server: None,
            contexts,
            placement,
            unpinned: None,
            more_nodes: 0,
        }
    }

    /// Has servers of bare exchanges register this many additional nodes.
    pub(crate) fn with_more_nodes(mut self, more_nodes: u32) -> Self {
        self.more_nodes = more_nodes;
        self
    }

    /// Returns the name of the service of a case with a driver.
    pub(crate) fn service_name() -> String {
        format!("binderperf.sendvec.{}", std::process::id())
    }

    /// Returns the watchdog that the measuring loop reports to.
    pub(crate) fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// Starts the processes of a case, and returns its client.
    pub(crate) fn open_case(&mut self, planned: &Planned) -> Result<AnyClient, CaseError> {
        self.close_case();
        let case = &planned.case;
        let fault = self.fault_of(&case.name);
        let len = case.payload_bytes as usize;
        let client_cpus = self.place(planned.family)?;
        let client = self.start_case(planned, len, fault)?;
        // All processes started so far run on the CPUs of this thread.
        if let Some(cpus) = client_cpus {
            confine(&cpus)?;
        }
        Ok(client)
    }

    /// Deliberate fault of a case.
    fn fault_of(&self, name: &str) -> Option<FaultKind> {
        self.plan.faults.iter().find(|fault| fault.case == name).map(|fault| fault.kind)
    }

    fn start_case(
        &mut self,
        planned: &Planned,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<AnyClient, CaseError> {
        match planned.family {
            Family::Pipe | Family::Unix if len == 0 => {
                // An empty write leaves nothing to read, and an empty message looks like the end of the
                // stream.
                Err(CaseError::Unfit(format!(
                    "no vector of 0 B goes through {}",
                    if planned.family == Family::Pipe { "a pipe" } else { "a unix socket" }
                )))
            }
            Family::Memcpy => Ok(AnyClient::Memcpy(Copying::new(len))),
            Family::Parcel => Ok(AnyClient::Parcel(Serialising::new(steps::binder::Call::new(len), len))),
            Family::HwParcel => {
                Ok(AnyClient::HwParcel(Serialising::new(steps::hwbinder::Call::new(len), len)))
            }
            Family::Pipe => self.pipe(len, fault),
            Family::Unix => self.unix(len, fault),
            Family::RpcPing | Family::Rpc => self.rpc(planned.family, len, fault),
            Family::Futex => Ok(AnyClient::Futex(shared::Client::new(
                self.shared(Server::Futex { len }, len, fault)?,
                len,
            ))),
            Family::Eventfd => self.eventfd(len, fault),
            Family::Spin => {
                Ok(AnyClient::Spin(shared::Client::new(self.shared(Server::Spin { len }, len, fault)?, len)))
            }
            Family::Passthrough => Ok(AnyClient::Passthrough(hwbinder::InProcess::new(len))),
            family @ (Family::Raw | Family::Binder | Family::Binderize | Family::AddInts) => {
                self.on_driver(family, len, fault)
            }
            Family::Scenario(case) => self.scenario(case, planned.value, fault),
            Family::Ping => self.ping(planned.family, Question::Ping),
            Family::Interface => self.ping(planned.family, Question::Interface),
            Family::HwPing => self.ping(planned.family, Question::HidlPing),
        }
    }

    /// Opens a case with a driver. A proxy has no type parameter for its connection, so one client type
    /// serves both drivers, except without the runtime.
    fn on_driver(
        &mut self,
        family: Family,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<AnyClient, CaseError> {
        let no_driver = || CaseError::Failed(format!("{family} talks to no driver"));
        let dialect = self.plan.dialect(family).ok_or_else(no_driver)?;
        let any = self.contexts.find(dialect)?;
        let (delay, more_nodes) = (self.plan.delay, self.more_nodes);
        match (family, any) {
            (Family::Raw, AnyContext::Kernel(context)) => {
                let find = |place: Rendezvous<'_, _>| raw::Client::find(place, len);
                let client =
                    self.named(|name| Service::Raw { name, more_nodes }, fault, dialect, &context, find)?;
                Ok(AnyClient::Raw(Box::new(client)))
            }
            (Family::Raw, AnyContext::Embedded(context)) => {
                let find = |place: Rendezvous<'_, _>| raw::Client::find(place, len);
                let client =
                    self.named(|name| Service::Raw { name, more_nodes }, fault, dialect, &context, find)?;
                Ok(AnyClient::RawEmbedded(Box::new(client)))
            }
            (Family::Binderize, any) => on_context!(any, |context| {
                let find = |place: Rendezvous<'_, _>| hwbinder::Client::find(place, len);
                Ok(AnyClient::Hwbinder(match &self.plan.service {
                    Some(name) => self.others(dialect, name, &context, find)?,
                    None => self.named(|name| Service::Echo { name }, fault, dialect, &context, find)?,
                }))
            }),
            (Family::AddInts, any) => on_context!(any, |context| {
                let find = |place: Rendezvous<'_, _>| add::Client::find(place, delay);
                Ok(AnyClient::AddInts(match &self.plan.service {
                    Some(name) => self.others(dialect, name, &context, find)?,
                    None => self.named(|name| Service::AddInts { name }, fault, dialect, &context, find)?,
                }))
            }),
            (_, any) => on_context!(any, |context| {
                let find = |place: Rendezvous<'_, _>| binder::Client::find(place, len);
                Ok(AnyClient::Binder(self.named(
                    |name| Service::Echo { name },
                    fault,
                    dialect,
                    &context,
                    find,
                )?))
            }),
        }
    }

    /// Starts the processes of a scenario's case.
    fn scenario(
        &mut self,
        case: ScenarioCase,
        value: u64,
        fault: Option<FaultKind>,
    ) -> Result<AnyClient, CaseError> {
        let dialect = Dialect::Binder(self.plan.android);
        // The manager serves, too; it outlives the case, so it commits no other fault.
        let slow = fault.filter(|kind| *kind == FaultKind::SlowServer);
        let context = self.contexts.manage(dialect, &self.watchdog, slow)?;
        let template = case.template();
        let text = template.text(value).unwrap_or_default();
        let workload = ::workload::text::parse(&text).map_err(failed("reading the scenario"))?;
        let program = Program::new(&workload).map_err(CaseError::Failed)?;
        if program.reclaims() && matches!(context, AnyContext::Embedded(_)) {
            let why =
                "the embedded driver's areas are memory that the kernel's shrinker does not take pages of";
            return Err(CaseError::Unfit(why.to_owned()));
        }
        let setting = Setting { context: context.clone(), dialect, sampled: false, fault };
        let group = Group::start(&text, program, setting, self.watchdog.watched());
        let group = group.map_err(CaseError::Failed)?;
        let most = template.samples.unwrap_or(MOST_ITERATIONS);
        let client = on_context!(context, |context| {
            let conductor = Conductor::begin(&context, dialect, group, most);
            conductor.map(|conductor| Box::new(conductor) as Box<dyn RoundTrip>)
        });
        client.map(AnyClient::Scenario).map_err(CaseError::Failed)
    }

    /// Opens a case that calls another program's object, or the manager, which is ours only where there is none.
    fn ping(&mut self, family: Family, question: Question) -> Result<AnyClient, CaseError> {
        let no_driver = || CaseError::Failed(format!("{family} talks to no driver"));
        let dialect = self.plan.dialect(family).ok_or_else(no_driver)?;
        let any = match self.plan.service {
            Some(_) => self.contexts.find(dialect)?,
            None => self.contexts.manage(dialect, &self.watchdog, None)?,
        };
        let name = self.plan.service.clone().unwrap_or_default();
        on_context!(any, |context| {
            self.others(dialect, &name, &context, |place| ping::Client::find(place, question))
                .map(AnyClient::Ping)
        })
    }

    /// Ends the processes of the last case.
    pub(crate) fn close_case(&mut self) {
        self.server = None;
        self.release();
    }

    /// Confines this thread, and the servers that it starts from now on, to the CPUs of the case's server.
    /// Returns the CPUs that this thread moves to afterwards, if they are others.
    fn place(&mut self, family: Family) -> Result<Option<Vec<u32>>, CaseError> {
        let usable = usable_cpus()?;
        if let Some([client, server]) = self.plan.sides.clone().filter(|[client, server]| client != server) {
            if family == Family::Spin && sys::sched::is_realtime() {
                return Err(spins_at_realtime());
            }
            confine(&server)?;
            self.unpinned = Some(usable);
            return Ok(Some(client));
        }
        let (server, client) = match (family, self.plan.placement) {
            (Family::Spin, Placement::Same) if !self.plan.spin_apart => {
                let why = "two spinning processes on one CPU would wait for the scheduler's ticks";
                return Err(CaseError::Unfit(why.to_owned()));
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
        confine(&[server])?;
        self.unpinned = Some(usable);
        Ok(client.map(|cpu| vec![cpu]))
    }

    /// Returns the pid of the server if the scheduler places it and its client.
    pub(crate) fn freely_placed(&self) -> Option<u32> {
        self.server.as_ref().filter(|_| self.unpinned.is_none()).map(|server| server.pid())
    }

    /// Restores the CPU affinity of this thread.
    pub(crate) fn release(&mut self) {
        if let Some(cpus) = self.unpinned.take() {
            // These CPUs were permitted before; only this thread chose fewer.
            let _ = sys::sched::set_affinity(&cpus);
        }
    }

    /// Explains a failed round trip, with the state of the server.
    pub(crate) fn explain(&self, error: &CallError) -> String {
        if self.watchdog.gave_up() {
            return format!("no round trip in {} s, so the server was killed", self.plan.patience_s);
        }
        if matches!(error, CallError::Corrupt { .. }) {
            return error.to_string();
        }
        match self.server.as_ref().and_then(|server| server.end_within(sys::patience::stretched(GRACE))) {
            Some(end) => format!("the server died ({end}): {error}"),
            None => error.to_string(),
        }
    }

    fn start(
        &self,
        server: Server,
        fault: Option<FaultKind>,
        streams: Streams,
        on_end: Option<OnEnd>,
    ) -> Result<Arc<WorkerProcess>, CaseError> {
        start(&self.watchdog, &ServerRole { server, fault }, streams, on_end)
    }

    fn pipe(&mut self, len: usize, fault: Option<FaultKind>) -> Result<AnyClient, CaseError> {
        let (their_requests, requests) = io::pipe().map_err(os_failed("making a pipe"))?;
        let (replies, their_replies) = io::pipe().map_err(os_failed("making a pipe"))?;
        let streams = Streams::of(their_requests.into(), their_replies.into());
        self.server = Some(self.start(Server::Pipe { len }, fault, streams, None)?);
        Ok(AnyClient::Pipe(pipe::Client::new(requests, replies, len)))
    }

    fn unix(&mut self, len: usize, fault: Option<FaultKind>) -> Result<AnyClient, CaseError> {
        if !unix::takes(len).map_err(os_failed("making a socket pair"))? {
            let why = format!("a unix socket takes no message of {len} B here; raise net.core.wmem_default");
            return Err(CaseError::Unfit(why));
        }
        let (ours, theirs) = sys::seqpacket::pair().map_err(os_failed("making a socket pair"))?;
        let streams = Streams::of(theirs.into(), Stdio::null());
        self.server = Some(self.start(Server::Unix { len }, fault, streams, None)?);
        Ok(AnyClient::Unix(unix::Client::new(File::from(ours), len)))
    }

    fn shared(
        &mut self,
        server: Server,
        len: usize,
        fault: Option<FaultKind>,
    ) -> Result<SharedMemory, CaseError> {
        let what = os_failed("making shared memory");
        let made = || -> io::Result<(SharedMemory, OwnedFd, SharedMemory)> {
            let memory = SharedMemory::create(shared::memory_size(len))?;
            let theirs = memory.descriptor().try_clone_to_owned()?;
            let watched = SharedMemory::map(memory.descriptor().try_clone_to_owned()?)?;
            Ok((memory, theirs, watched))
        };
        let (memory, theirs, watched) = made().map_err(what)?;
        let on_end: OnEnd = Box::new(move || shared::close(&watched));
        let streams = Streams::of(theirs.into(), Stdio::null());
        self.server = Some(self.start(server, fault, streams, Some(on_end))?);
        Ok(memory)
    }

    fn eventfd(&mut self, len: usize, fault: Option<FaultKind>) -> Result<AnyClient, CaseError> {
        let made = || -> io::Result<(event::Events, File)> {
            let memory = SharedMemory::create(event::memory_size(len))?;
            let (requests, replies) = (sys::descriptor::event_counter()?, sys::descriptor::event_counter()?);
            let (requests, replies) = (File::from(requests), File::from(replies));
            let watched = replies.try_clone()?;
            Ok((event::Events { memory, requests, replies }, watched))
        };
        let (events, mut watched) = made().map_err(os_failed("making an eventfd"))?;
        let copy = |file: &File| file.try_clone().map_err(os_failed("copying an eventfd"));
        let (requests, replies) = (copy(&events.requests)?, copy(&events.replies)?);
        let on_end: OnEnd = Box::new(move || event::close(&mut watched));
        // Only two descriptors can be inherited; the child reopens the memory through this path.
        let memory = format!("/proc/{}/fd/{}", std::process::id(), events.memory.descriptor().as_raw_fd());
        let server = Server::Eventfd { len, memory: memory.into() };
        let streams = Streams::of(requests.into(), replies.into());
        self.server = Some(self.start(server, fault, streams, Some(on_end))?);
        Ok(AnyClient::Eventfd(event::Client::new(events, len)))
    }

    /// Starts a server with a name at the service manager, and returns its client.
    fn named<T, X: Context>(
        &mut self,
        service: impl FnOnce(String) -> Service,
        fault: Option<FaultKind>,
        dialect: Dialect,
        context: &X,
        find: impl FnOnce(Rendezvous<'_, X>) -> Result<T, CallError>,
    ) -> Result<T, CaseError> {
        let any = self.contexts.manage(dialect, &self.watchdog, None)?;
        let name = Self::service_name();
        let server = Server::in_context(&any, dialect, service(name.clone()));
        self.server = Some(start_and_wait(&self.watchdog, "service", &ServerRole { server, fault })?);
        self.others(dialect, &name, context, find)
    }

    /// Returns the client of a service that another program registered.
    fn others<T, X: Context>(
        &self,
        dialect: Dialect,
        name: &str,
        context: &X,
        find: impl FnOnce(Rendezvous<'_, X>) -> Result<T, CallError>,
    ) -> Result<T, CaseError> {
        let place = Rendezvous { context, dialect, name };
        self.watchdog.during(|| find(place)).map_err(failed("reaching the service"))
    }

    /// Checks that the service exists where the plan uses another program's.
    pub(crate) fn see_to_others(&self) -> Result<(), CaseError> {
        let (Some(name), Some(family)) = (&self.plan.service, self.plan.tests.first()) else { return Ok(()) };
        let Some(dialect) = self.plan.dialect(*family) else { return Ok(()) };
        on_context!(self.contexts.find(dialect)?, |context| {
            self.others(dialect, name, &context, |place| match family {
                Family::Binderize => hwbinder::Client::find(place, 0).map(drop),
                _ => place.find_object().map(drop),
            })
        })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.release();
    }
}

fn start(
    watchdog: &Watchdog,
    role: &ServerRole,
    streams: Streams,
    on_end: Option<OnEnd>,
) -> Result<Arc<WorkerProcess>, CaseError> {
    let worker = WorkerProcess::start(role, streams, on_end);
    let worker = Arc::new(worker.map_err(os_failed("starting the server process"))?);
    watchdog.watch(&worker);
    Ok(worker)
}

/// Starts a server, and waits until it is ready. The watchdog limits the wait.
fn start_and_wait(
    watchdog: &Watchdog,
    what: &str,
    role: &ServerRole,
) -> Result<Arc<WorkerProcess>, CaseError> {
    let worker = start(watchdog, role, Streams::heard(), None)?;
    match watchdog.during(|| worker.ready(Duration::MAX)) {
        Ok(_) => Ok(worker),
        Err(why) => Err(CaseError::Failed(format!("the {what} did not start: {why}"))),
    }
}

fn usable_cpus() -> Result<Vec<u32>, CaseError> {
    sys::sched::affinity().map_err(os_failed("asking for the usable CPUs"))
}

fn confine(cpus: &[u32]) -> Result<(), CaseError> {
    sys::sched::set_affinity(cpus).map_err(os_failed("choosing a CPU"))
}

fn spins_at_realtime() -> CaseError {
    CaseError::Unfit("spinning at a real-time priority can stop the machine".to_owned())
}

/// Chooses two CPUs for spinning. At a real-time priority spinning can stop a machine.
fn cpus_to_spin_on(usable: &[u32]) -> Result<(u32, u32), CaseError> {
    if sys::sched::is_realtime() {
        return Err(spins_at_realtime());
    }
    two_cpus(usable, "two spinning processes need two CPUs")
}

/// Returns the last two CPUs: the first one takes the interrupts.
fn two_cpus(usable: &[u32], needed: &str) -> Result<(u32, u32), CaseError> {
    match usable {
        [.., server, client] => Ok((*server, *client)),
        _ => Err(CaseError::Unfit(format!("{needed}, and there is one"))),
    }
}
