//! One process of a load in its context: its object, those that it calls, and what its threads share.
//! Not here: the steps of its threads (`actor`), starting processes (`group`).

use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use driver::{Connection, Context};
use ipc::binder::manager::Services;
use ipc::{Binder, Proxy};
use record::{Distribution, Sampler};
use serde::{Deserialize, Serialize};
use sys::clock::thread_cpu_ns;
use sys::patience::stretched;
use workload::text::MEASURING;

use super::board::Board;
use super::program::Program;
use crate::call_error::{CallError, refused};
use crate::endpoint::{BareService, Endpoint};
use crate::measure::echo::{compute, compute_from};
use crate::plan::{Dialect, FaultKind};

/// Time limit of a wait for a service.
const ABSENCE: Duration = Duration::from_secs(5);

/// Place of a process in a load.
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

/// The calls of a process to another one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Index of the pair.
    pub(crate) pair: usize,
    /// Times of the calls that the driver took, in ns.
    pub(crate) samples: Distribution,
    /// CPU time of the calling threads in them, in ns.
    pub(crate) cpu_ns: u64,
    /// Calls that the driver refused.
    pub(crate) refused: u64,
}

/// Calls of a process to another one, while they are made.
pub(super) struct Tally {
    pair: usize,
    sampler: Sampler,
    cpu_ns: u64,
    refused: u64,
}

impl Tally {
    fn new(pair: usize) -> Self {
        Self { pair, sampler: Sampler::new(), cpu_ns: 0, refused: 0 }
    }
}

/// A process of a load.
pub(super) struct Place<C: Connection> {
    pub(super) identity: Identity,
    pub(super) endpoint: Endpoint<C>,
    pub(super) proxies: OnceLock<Proxies>,
    services: OnceLock<Services>,
    /// The object that all calls go to; nobody else keeps it once the manager has forgotten its name.
    pub(super) service: OnceLock<Binder>,
    /// Objects for the service manager's notices.
    pub(super) callbacks: Mutex<Vec<Binder>>,
    /// Own objects that others asked for.
    objects: Mutex<Vec<Binder>>,
    /// The calls by each pair of this process; `None` where nobody asks for them.
    tallies: Option<Mutex<Vec<Tally>>>,
    /// Calls carry descriptors of it.
    pub(super) file: File,
    /// Zeros, as long as the largest request or reply.
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
        // Made now: the pages of a sampler are not to be touched for the first time between two calls.
        let pairs = identity.program.pairs.iter().enumerate();
        let mine = pairs.filter(|(_, pair)| sampled && pair.from == identity.process);
        let tallies: Vec<Tally> = mine.map(|(pair, _)| Tally::new(pair)).collect();
        Ok(Arc::new(Self {
            endpoint: Endpoint::open(context, dialect, pool)?,
            identity,
            proxies: OnceLock::new(),
            services: OnceLock::new(),
            service: OnceLock::new(),
            callbacks: Mutex::default(),
            objects: Mutex::default(),
            tallies: sampled.then(|| Mutex::new(tallies)),
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
        match self.services()?.wait_for(&self.name(process, copy), stretched(ABSENCE)).map_err(refused)? {
            Binder::Remote(proxy) => Ok(proxy),
            Binder::Local(_) => Err(refused("a process of a load calls itself")),
        }
    }

    /// The service manager, asked once whether it answers.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn services(&self) -> Result<&Services, CallError> {
        if self.services.get().is_none() {
            // A second one is the same.
            let _ = self.services.set(Services::of(&self.endpoint.process).map_err(refused)?);
        }
        Ok(self.services.wait())
    }

    /// Own objects, of which there are at least this many afterwards.
    pub(super) fn objects(&self, count: usize) -> std::sync::MutexGuard<'_, Vec<Binder>> {
        let mut objects = lock(&self.objects);
        while objects.len() < count {
            objects.push(self.new_object());
        }
        objects
    }

    /// A new object, whose answers are empty.
    pub(super) fn new_object(&self) -> Binder {
        self.endpoint.publish_bare(BareService(|| [0_u8; 0]), self.endpoint.node_options(false))
    }

    /// CPU time of the calling thread in ns; 0 where nobody asks for the times of calls.
    pub(super) fn cpu_ns(&self) -> u64 {
        if self.tallies.is_some() { thread_cpu_ns() } else { 0 }
    }

    /// Computes for this much CPU time, in ns; returns the thread's CPU time behind it.
    ///
    /// The time counts from `since` in a replay: the thread's CPU time behind its last step. A trace shows all the time
    /// between two calls as work, with what the calls cost their thread outside of the driver, and so must a replay.
    pub(super) fn work(&self, since: u64, ns: u64) -> u64 {
        if self.tallies.is_none() {
            compute(ns);
            return 0;
        }
        compute_from(since, ns)
    }

    /// Keeps the time of a call and the CPU time of its thread in it, in ns; `None` for one that the driver refused.
    pub(super) fn keep(&self, site: usize, times: Option<(u64, u64)>) {
        let Some(tallies) = &self.tallies else { return };
        let (pair, mut tallies) = (self.identity.program.sites[site].pair, lock(tallies));
        let Some(tally) = tallies.iter_mut().find(|tally| tally.pair == pair) else { return };
        match times {
            Some((ns, cpu_ns)) => {
                tally.sampler.record(ns);
                tally.cpu_ns += cpu_ns;
            }
            None => tally.refused += 1,
        }
    }

    /// The calls so far.
    pub(super) fn reports(&self) -> Vec<Report> {
        let report = |tally: &Tally| Report {
            pair: tally.pair,
            samples: tally.sampler.distribution(),
            cpu_ns: tally.cpu_ns,
            refused: tally.refused,
        };
        let made = |tally: &&Tally| tally.refused > 0 || tally.sampler.count() > 0;
        let tallies = self.tallies.iter().map(|tallies| lock(tallies));
        tallies.flat_map(|tallies| tallies.iter().filter(made).map(report).collect::<Vec<_>>()).collect()
    }
}
