//! The workers of all pairs: start, steps, results. A broken pair does not affect the others.
//! Not here: the workers' own code (`role`), the figures (`tally`).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use procgroup::{BlockLayout, Member, Onlooker, ProcessGroup, SharedBlock, WorkerError};

use super::fault::Injected;
use super::flight::RecordingKeeper;
use super::notes::{self, NotedThread, StoppingMiss, ThreadFacts};
use super::options::LatencyOptions;
use super::role::{DONE, LatencyRole, Side};
use super::sample::{Sample, WORDS};
use crate::brokers::Brokers;
use crate::plan::Flavour;

/// Setup common to both ends of a pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Setup {
    /// Address of the context for clients; empty without IPC.
    pub(super) client: String,
    /// Address for servers: with other settings where a fault asks for that.
    pub(super) server: String,
    /// Folder of the tracing switch, if a miss is to turn it off.
    pub(super) tracing: Option<PathBuf>,
    /// Folder of the flight recorder.
    pub(super) flight: Option<PathBuf>,
    /// Memory of the flight recorder for the embedded driver's events of calls.
    pub(super) records: Option<PathBuf>,
    /// Whether clients have a real-time caller.
    pub(super) realtime: bool,
}

/// The workers of all pairs of a test; killed on drop.
pub(super) struct Pairs {
    workers: ProcessGroup,
    pairs: u32,
    /// Number of workers that are servers: the first ones, one per pair, or none.
    servers: u32,
    /// Time without a reply after which a pair has stopped, for the flight recorder.
    stall: Duration,
}

/// Time without a reply, more on a busy machine, after which a call is old, as `explain` counts, and a pair has stopped.
const STALL: Duration = Duration::from_millis(1200);

/// The results of one pair.
pub(super) struct PairResult {
    pub(super) samples: Vec<Sample>,
    /// Reason why it did not make all its calls, if it broke.
    pub(super) broken: Option<String>,
    pub(super) service: Option<ThreadFacts>,
    pub(super) client: Option<ThreadFacts>,
    pub(super) fifo: Option<ThreadFacts>,
    pub(super) other: Option<ThreadFacts>,
    pub(super) miss: Option<StoppingMiss>,
}

impl Pairs {
    /// Starts all workers, and returns when each has found its service, or broke, or a signal requested a
    /// stop.
    ///
    /// # Errors
    /// No memory, or a process cannot be started.
    pub(super) fn start(options: &LatencyOptions, setup: &Setup) -> Result<Self, String> {
        let pairs = options.pairs;
        let has_servers = options.flavour != Flavour::Passthrough && options.pinged.is_none();
        let servers = if has_servers { pairs } else { 0 };
        let classes = if setup.realtime { 2 } else { 1 };
        let samples = usize::try_from(options.iterations * classes).map_err(|error| error.to_string())?;
        let layout = BlockLayout { workers: servers + pairs, callers: pairs, samples, words: WORDS };
        // The interval between two calls of one class at a slow rate is no silence.
        let period = Duration::from_secs_f64(options.rate_hz.map_or(0.0, |rate| classes as f64 / rate));
        let patience = Duration::from_secs(options.patience_s.max(1)) + period;
        let server = |unit| Member { title: "the server".to_owned(), serves: true, calls: false, unit };
        let client = |unit| Member { title: "the client".to_owned(), serves: false, calls: true, unit };
        let members = (0..servers).map(server).chain((0..pairs).map(client)).collect();
        let workers = ProcessGroup::start(members, layout, patience, |slot| {
            let number = slot.number;
            let (side, pair, address) = match number.checked_sub(servers) {
                None => (Side::Server, number, &setup.server),
                Some(pair) => (Side::Client, pair, &setup.client),
            };
            LatencyRole {
                slot,
                side,
                flavour: options.flavour,
                address: address.clone(),
                release: options.android.to_string(),
                server: (servers > 0).then_some(pair),
                samples,
                pair,
                pinged: options.pinged.is_some(),
                name: options
                    .pinged
                    .clone()
                    .unwrap_or_else(|| format!("binderperf.latency.{}.{pair}", std::process::id())),
                payload: options.payload,
                iterations: options.iterations,
                deadline: options.deadline(),
                rate_hz: options.rate_hz,
                inherit_rt: options.inherit_rt,
                realtime: setup.realtime.then_some(options.priority),
                tracing: setup.tracing.clone(),
                flight: setup.flight.clone(),
                records: setup.records.clone(),
                faults: options.faults_of(pair),
                cpus: cpus_of(options, side),
                seed: 1 + u64::from(pair),
            }
        });
        let mut workers = workers.map_err(|error| error.to_string())?;
        // A failure is a result of its pair; `run` sees a signal again.
        let _ = workers.prepare();
        Ok(Self { workers, pairs, servers, stall: STALL + period })
    }

    /// Returns true if any pair is not broken.
    pub(super) fn any_whole(&self) -> bool {
        (0..self.pairs).any(|pair| self.workers.broken(pair).is_none())
    }

    /// Starts the calls of all pairs, and waits until each has made its calls or broke. Passes the number of
    /// calls made to `progress` from time to time, and has `keeper` save slow calls. Without a broker no pair makes further
    /// calls.
    ///
    /// # Errors
    /// The signal that stopped all pairs.
    pub(super) fn run(
        &mut self,
        keeper: Option<&mut RecordingKeeper>,
        brokers: &Brokers,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), &'static str> {
        let clients: Vec<u32> = (self.servers..self.servers + self.pairs).collect();
        let moved = vec![(0, Instant::now()); clients.len()];
        let mut watch = Watch { keeper, brokers, progress, clients, moved, stall: self.stall };
        match self.workers.round(DONE, &mut watch) {
            Err(WorkerError::Stopped(signal)) => Err(signal),
            _ => Ok(()),
        }
    }

    /// Returns the results of all pairs; kills their workers.
    pub(super) fn results(mut self) -> Vec<PairResult> {
        (0..self.pairs).map(|pair| self.result(pair)).collect()
    }

    fn result(&mut self, pair: u32) -> PairResult {
        let broken = self.workers.broken(pair).map(ToString::to_string);
        let (client, has_server) = (self.servers + pair, self.servers > 0);
        let block = self.workers.block();
        let words = block.samples(&[client]);
        let (samples, _) = words.as_chunks();
        let notes = block.notes(client);
        let service = has_server.then(|| block.notes(pair));
        PairResult {
            samples: samples.iter().map(Sample::of).collect(),
            broken,
            service: service.and_then(|notes| ThreadFacts::read(&notes, NotedThread::Main)),
            client: ThreadFacts::read(&notes, NotedThread::Main),
            fifo: ThreadFacts::read(&notes, NotedThread::Fifo),
            other: ThreadFacts::read(&notes, NotedThread::Other),
            miss: notes::miss(&notes, pair),
        }
    }
}

/// Looks after the pairs while they make their calls.
struct Watch<'w> {
    keeper: Option<&'w mut RecordingKeeper>,
    brokers: &'w Brokers,
    progress: &'w mut dyn FnMut(u64),
    clients: Vec<u32>,
    /// Calls of each client when they last changed, and that time.
    moved: Vec<(u32, Instant)>,
    stall: Duration,
}

impl Watch<'_> {
    /// The first pair without a reply for too long.
    fn stalled(&mut self, block: &SharedBlock) -> Option<u32> {
        let mut stalled = None;
        for (pair, (client, moved)) in (0..).zip(self.clients.iter().zip(&mut self.moved)) {
            let calls = block.calls(*client);
            if calls != moved.0 || block.done(*client) >= DONE || block.is_paused() {
                *moved = (calls, Instant::now());
            } else if sys::patience::is_over(moved.1, self.stall) {
                stalled = stalled.or(Some(pair));
            }
        }
        stalled
    }
}

impl Onlooker for Watch<'_> {
    fn works(&mut self, block: &mut SharedBlock) {
        (&*self.brokers).works(block);
        if let Some(pair) = self.stalled(block) {
            self.breaks(pair);
        }
        match &mut self.keeper {
            Some(keeper) if block.is_paused() => {
                keeper.paused(block, &self.clients, DONE);
                // Saving takes a time in which nobody calls.
                self.moved.iter_mut().for_each(|moved| moved.1 = Instant::now());
            }
            _ => (self.progress)(self.clients.iter().map(|client| u64::from(block.calls(*client))).sum()),
        }
    }

    fn breaks(&mut self, pair: u32) {
        if let Some(keeper) = &mut self.keeper {
            keeper.stop_at(pair);
        }
    }
}

/// CPUs of one end; `None`: all.
fn cpus_of(options: &LatencyOptions, side: Side) -> Option<Vec<u32>> {
    if let Some([client, server]) = options.cpus {
        return Some(vec![if side == Side::Client { client } else { server }]);
    }
    if let Some([client, server]) = &options.sides {
        return Some(if side == Side::Client { client.clone() } else { server.clone() });
    }
    if !options.injected.contains(&Injected::WrongCpu) {
        return None;
    }
    let mut usable = sys::sched::affinity().ok()?;
    let last = usable.pop()?;
    Some(if side == Side::Client { vec![last] } else { usable })
}
