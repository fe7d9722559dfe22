//! One process of a load in its context: its object, those that it calls, and what its threads share.
//! Not here: the steps of its threads (`actor`), starting processes (`group`).

use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use driver::{Connection, Context};
use ipc::binder::manager::Services;
use ipc::{Binder, Proxy};
use workload::text::MEASURING;

use super::board::Board;
use super::program::Program;
use super::service::Service;
use crate::call_error::{CallError, refused};
use crate::endpoint::Endpoint;
use crate::plan::{Dialect, FaultKind};

/// What a process is in a load.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) program: Arc<Program>,
    pub(super) board: Arc<Board>,
    /// Begin of the names of all services of the load.
    pub(super) names: String,
    pub(super) process: usize,
    pub(super) copy: u32,
    pub(super) fault: Option<FaultKind>,
}

/// Objects of other processes, by process and copy; without those that this one does not call.
pub(super) type Proxies = Vec<Vec<Proxy>>;

/// A call that was made: its number, and its time in ns.
pub(super) type Sample = (u32, u64);

/// A process of a load.
pub(super) struct Place<C: Connection> {
    pub(super) identity: Identity,
    pub(super) endpoint: Endpoint<C>,
    pub(super) proxies: OnceLock<Proxies>,
    /// Own objects that others asked for.
    pub(super) objects: Mutex<Vec<Binder>>,
    /// Times of the calls; `None` where nobody asks for them.
    pub(super) samples: Option<Mutex<Vec<Sample>>>,
    /// What calls carry descriptors of.
    pub(super) file: File,
    /// As many zeros as the largest request or reply has bytes.
    pub(super) zeros: Vec<u8>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C: Connection> Place<C> {
    /// Opens the context for a process. `pool` threads may be asked for by the driver.
    ///
    /// # Errors
    /// The context cannot be opened.
    pub(super) fn open<X>(
        context: &X,
        dialect: Dialect,
        identity: Identity,
        pool: u32,
        sampled: bool,
    ) -> Result<Arc<Self>, CallError>
    where
        X: Context<Connection = C>,
    {
        let file = File::open("/dev/null").map_err(CallError::os("opening /dev/null"))?;
        let zeros = vec![0; identity.program.largest];
        Ok(Arc::new(Self {
            endpoint: Endpoint::open(context, dialect, pool)?,
            identity,
            proxies: OnceLock::new(),
            objects: Mutex::default(),
            samples: sampled.then(Mutex::default),
            file,
            zeros,
        }))
    }

    /// Name of the service of a process.
    pub(super) fn name(&self, process: usize, copy: u32) -> String {
        let Identity { names, program, .. } = &self.identity;
        let name = program.processes.get(process).map_or(MEASURING, |process| &process.name);
        format!("{names}.{name}.{copy}")
    }

    /// Registers its object and starts the thread that serves it.
    ///
    /// # Errors
    /// The service manager refuses the name; no thread can be started.
    pub(super) fn serve(self: &Arc<Self>) -> Result<(), CallError> {
        let service = Service::new(Weak::clone(&Arc::downgrade(self)));
        let object = self.endpoint.publish_bare(service, self.endpoint.node_options(false));
        self.endpoint.register(&self.name(self.identity.process, self.identity.copy), &object)?;
        // Kept, as nobody else does once the manager has forgotten the name.
        lock(&self.objects).push(object);
        self.endpoint.start_thread()
    }

    /// Looks up all that it calls.
    ///
    /// # Errors
    /// A process is not registered.
    pub(super) fn find(&self) -> Result<(), CallError> {
        let found = self.look_up_all()?;
        // A second search finds the same.
        let _ = self.proxies.set(found);
        Ok(())
    }

    /// The objects of all processes that it calls.
    ///
    /// # Errors
    /// A process is not registered.
    pub(super) fn look_up_all(&self) -> Result<Proxies, CallError> {
        let program = &self.identity.program;
        let called = program.called_by(self.identity.process);
        let find = |process: usize| match called.contains(&process) {
            true => (0..program.processes[process].copies).map(|copy| self.look_up(process, copy)).collect(),
            false => Ok(Vec::new()),
        };
        (0..program.processes.len()).map(find).collect()
    }

    /// The object of a process, as the service manager gives it.
    ///
    /// # Errors
    /// It is not registered.
    pub(super) fn look_up(&self, process: usize, copy: u32) -> Result<Proxy, CallError> {
        self.endpoint.find("", &self.name(process, copy))
    }

    /// The service manager.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn services(&self) -> Result<Services, CallError> {
        Services::of(&self.endpoint.process).map_err(refused)
    }

    /// Own objects, of which there are at least this many afterwards.
    pub(super) fn objects(&self, count: usize) -> std::sync::MutexGuard<'_, Vec<Binder>> {
        let mut objects = lock(&self.objects);
        while objects.len() < count {
            objects.push(self.new_object());
        }
        objects
    }

    /// A new object, which answers nothing.
    pub(super) fn new_object(&self) -> Binder {
        self.endpoint.publish_bare(Service::<C>::silent(), self.endpoint.node_options(false))
    }

    /// Keeps the time of a call.
    pub(super) fn keep(&self, site: usize, ns: u64) {
        if let Some(samples) = &self.samples {
            lock(samples).push((site as u32, ns));
        }
    }
}
