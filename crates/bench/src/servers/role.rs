//! Worker that serves one case of a throughput test, or manages its context.
//! Not here: the servers themselves (`crate::measure::echo`), starting them (`super`).

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use backend::{AnyContext, on_context};
use driver::Context;
use ipc::binder::manager::ServiceManager;
use ipc::binder::{Incoming, Object, Parcel, Status};
use procgroup::Role;
use procgroup::role::tell_ready;
use serde::{Deserialize, Serialize};
use sys::shared_memory::SharedMemory;

use crate::call_error::CallError;
use crate::endpoint::{self, Rendezvous};
use crate::measure::echo::{Sabotage, add, binder, event, hwbinder, pipe, raw, rpc, shared, unix};
use crate::plan::{Dialect, FaultKind};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServerRole {
    pub(super) server: Server,
    /// Deliberate fault, for tests.
    pub(super) fault: Option<FaultKind>,
}

/// Service of a server process. Lengths are those of the vector, in bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Server {
    /// Requests from standard input, replies to standard output.
    Pipe { len: usize },
    /// A socket as standard input.
    Unix { len: usize },
    /// A session of RPC binder on sockets that come through standard input.
    Rpc,
    /// Shared memory as standard input; sleeps on a futex.
    Futex { len: usize },
    /// Shared memory as standard input; spins.
    Spin { len: usize },
    /// Event counters as standard input and output, and memory at this path.
    Eventfd { len: usize, memory: PathBuf },
    /// A process in the context of this address.
    InContext { address: String, dialect: String, service: Service },
}

/// Service of a process in a context.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Service {
    /// The service manager.
    Manager,
    /// An echo under this name.
    Echo { name: String },
    /// `binderAddInts` under this name.
    AddInts { name: String },
    /// An echo without a runtime, and the number of additional nodes that it registers.
    Raw { name: String, more_nodes: u32 },
}

impl Server {
    pub(super) fn in_context(context: &AnyContext, dialect: Dialect, service: Service) -> Self {
        Self::InContext { address: context.address(), dialect: dialect.to_string(), service }
    }
}

impl Role for ServerRole {
    const NAME: &'static str = "server";

    fn title(&self) -> String {
        match &self.server {
            Server::Pipe { .. } => "pipe server",
            Server::Unix { .. } => "unix server",
            Server::Rpc => "RPC server",
            Server::Futex { .. } => "futex server",
            Server::Spin { .. } => "spin server",
            Server::Eventfd { .. } => "eventfd server",
            Server::InContext { service: Service::Manager, dialect, .. } => {
                dialect.parse().map_or("servicemanager", Dialect::manager_title)
            }
            Server::InContext { .. } => "server",
        }
        .to_owned()
    }

    fn run(self) -> Result<(), String> {
        let sabotage = Sabotage::new(self.fault);
        let served = match self.server {
            Server::InContext { address, dialect, service } => {
                let (any, dialect) = (AnyContext::parse(&address), dialect.parse()?);
                let explain = |error| any.manager_error(error).to_string();
                on_context!(&any, |context| service.serve(context, dialect, explain, sabotage))
            }
            Server::Rpc => input()
                .and_then(|bootstrap| rpc::take_sockets(&bootstrap))
                .and_then(|sockets| rpc::serve(sockets, self.fault)),
            on_descriptors => on_descriptors.serve(sabotage),
        };
        served.map_err(|error| error.to_string())
    }

    fn sends_data(&self) -> bool {
        !matches!(self.server, Server::InContext { .. })
    }
}

impl Service {
    fn serve<X: Context>(
        &self,
        context: &X,
        dialect: Dialect,
        explain: impl FnOnce(io::Error) -> String,
        sabotage: Sabotage,
    ) -> Result<(), CallError> {
        let ready = || tell_ready("");
        match self {
            Self::Manager if sabotage.is_planned() => {
                let manager = SlowManager { services: ServiceManager::new(), sabotage: Mutex::new(sabotage) };
                endpoint::manage(context, dialect, explain, ready, &Arc::new(manager))
            }
            Self::Manager => {
                endpoint::manage(context, dialect, explain, ready, &Arc::new(ServiceManager::new()))
            }
            Self::Echo { name } => {
                let place = Rendezvous { context, dialect, name };
                match dialect {
                    Dialect::Binder(_) => binder::serve(place, ready, sabotage),
                    Dialect::Hwbinder => hwbinder::serve(place, ready, sabotage),
                }
            }
            Self::AddInts { name } => add::serve(Rendezvous { context, dialect, name }, ready, sabotage),
            Self::Raw { name, more_nodes } => {
                raw::serve(Rendezvous { context, dialect, name }, *more_nodes, ready, sabotage)
            }
        }
    }
}

/// The service manager of binder with a fault, in tests of this tool.
struct SlowManager {
    services: ServiceManager,
    sabotage: Mutex<Sabotage>,
}

impl Object for SlowManager {
    fn descriptor(&self) -> &str {
        self.services.descriptor()
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        self.sabotage.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut []);
        self.services.on_transact(call, reply)
    }
}

impl Server {
    fn serve(self, sabotage: Sabotage) -> Result<(), CallError> {
        match self {
            Self::Pipe { len } => pipe::serve(input()?, output()?, len, sabotage),
            Self::Unix { len } => unix::serve(input()?, len, sabotage),
            Self::Futex { len } => shared::serve::<shared::Sleep>(memory()?, len, sabotage),
            Self::Spin { len } => shared::serve::<shared::Spin>(memory()?, len, sabotage),
            Self::Eventfd { len, memory } => {
                let memory = File::options().read(true).write(true).open(memory);
                let memory = memory.and_then(|file| SharedMemory::map(file.into()));
                let memory = memory.map_err(CallError::os("mapping shared memory"))?;
                event::serve(event::Events { memory, requests: input()?, replies: output()? }, len, sabotage)
            }
            Self::Rpc | Self::InContext { .. } => Ok(()),
        }
    }
}

fn input() -> Result<File, CallError> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(CallError::os("taking over stdin"))
}

fn output() -> Result<File, CallError> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(CallError::os("taking over stdout"))
}

fn memory() -> Result<SharedMemory, CallError> {
    SharedMemory::map(input()?.into()).map_err(CallError::os("mapping shared memory"))
}
