//! Options of a run with many workers, and their validation.
//! Not here: parsing them (the command line), the callees of each worker (`layout`).
//! Facts: a receiver's area is 1 MiB less two pages, as libbinder's; defaults of the Android tools.

use driver::connection::default_map_size;
use record::CrowdShape;

use crate::plan::{CALLS_IN_AREA, Fault, FaultKind, Flavour, MinTime, Release, SPARE, Wanted};
use host;

/// Maximum number of processes in one case; more are taken for a typing error.
pub const MOST_WORKERS: u32 = 512;

/// Maximum number of samples of one worker when the time is given and not the number of calls.
const MOST_SAMPLES: usize = 1 << 26;
/// Upper bound of any worker's calls per second.
const CALLS_PER_SECOND: f64 = 4e6;
/// Memory for samples of all workers of a case that is touched before their calls, when the time is given, in
/// bytes.
const READY_BYTES: u64 = 64 << 20;
const SAMPLE_BYTES: u64 = size_of::<u64>() as u64;

/// Bytes of a call in the receiver's buffer in addition to its payload.
fn overhead(flavour: Flavour) -> u64 {
    match flavour {
        Flavour::Binder | Flavour::Passthrough => 0,
        // The header, and the objects of the vector and its content.
        Flavour::Hwbinder => 256,
    }
}

/// Returns the part of a case's name before the arguments.
pub(super) fn family(flavour: Flavour) -> String {
    format!("workers_{flavour}")
}

/// Shape of the calls: servers and callees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each worker serves, and calls a random other one each time.
    Random,
    /// Half of the workers serve; each of the others calls its own server.
    Pairs,
    /// Additional processes serve, on one thread each or on a whole pool; all workers call a random one of
    /// them each time.
    Services {
        /// Number of services.
        count: u32,
        /// Threads of each that the driver may ask for, in addition to the first one.
        more_threads: u32,
    },
    /// All workers ping an existing service.
    Named(String),
}

impl Shape {
    pub(super) fn kind(&self) -> CrowdShape {
        match self {
            Self::Random => CrowdShape::Random,
            Self::Pairs => CrowdShape::Pairs,
            Self::Services { .. } | Self::Named(_) => CrowdShape::Services,
        }
    }

    pub(super) fn label(&self) -> Option<String> {
        match self {
            Self::Named(name) => Some(name.clone()),
            _ => None,
        }
    }
}

/// One case: a number of workers of one shape with one payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Shape of the calls.
    pub shape: Shape,
    /// Number of workers, without the services of [`Shape::Services`].
    pub workers: u32,
    /// Bytes of each call.
    pub payload: u32,
}

impl Group {
    /// Returns the number of callers.
    #[must_use]
    pub fn clients(&self) -> u32 {
        if self.shape == Shape::Pairs { self.workers / 2 } else { self.workers }
    }

    /// Returns the number of callees.
    #[must_use]
    pub fn services(&self) -> u32 {
        match self.shape {
            Shape::Random => self.workers,
            Shape::Pairs => self.workers / 2,
            Shape::Services { count, .. } => count,
            Shape::Named(_) => 1,
        }
    }

    /// Maximum number of calls in one service's area at once. With a pool, a client's next call may find a
    /// further thread that has replied but not yet freed its buffer.
    fn calls_in_area(&self) -> u64 {
        let (clients, has_pool) = match self.shape {
            Shape::Random => (self.workers.saturating_sub(1), true),
            Shape::Pairs => (1, true),
            Shape::Services { more_threads, .. } => (self.workers, more_threads > 0),
            Shape::Named(_) => (self.workers, true),
        };
        u64::from(clients.max(1)) * (CALLS_IN_AREA + u64::from(has_pool))
    }

    pub(super) fn case_name(&self, flavour: Flavour) -> String {
        let (family, clients, payload) = (family(flavour), self.clients(), self.payload);
        match self.shape {
            Shape::Random => format!("{family}/random:{clients}/payload:{payload}"),
            Shape::Pairs => format!("{family}/pairs:{clients}/payload:{payload}"),
            Shape::Services { .. } | Shape::Named(_) => {
                format!("{family}/services:{}/clients:{clients}/payload:{payload}", self.services())
            }
        }
    }

    /// Returns the number of processes started for it.
    fn processes(&self) -> u64 {
        match self.shape {
            Shape::Services { count, .. } => u64::from(self.workers) + u64::from(count),
            _ => self.workers.into(),
        }
    }

    fn check(&self, flavour: Flavour) -> Result<(), String> {
        let workers = self.workers;
        if workers == 0 {
            return Err("there must be a worker".to_owned());
        }
        let processes = self.processes();
        if processes > MOST_WORKERS.into() {
            return Err(format!("{processes} processes are too many: the limit is {MOST_WORKERS}"));
        }
        match self.shape {
            Shape::Services { count: 0, .. } => return Err("there must be a service to call".to_owned()),
            Shape::Random if workers == 1 => {
                return Err("one worker has no other to call: use 2 or more".to_owned());
            }
            Shape::Pairs if !workers.is_multiple_of(2) => {
                return Err(format!(
                    "{workers} workers do not make pairs of client and server: use an even number"
                ));
            }
            _ => {}
        }
        self.check_payload(flavour)
    }

    /// Checks that a receiver's buffer has space for the payloads of all simultaneous calls.
    ///
    /// # Errors
    /// The excess, and the limit.
    pub fn check_payload(&self, flavour: Flavour) -> Result<(), String> {
        let at_once = self.calls_in_area();
        let area = default_map_size() as u64;
        // The driver allocates in steps of 8 bytes, and leaves some space for the service manager's answers.
        let most = ((area - SPARE) / at_once).saturating_sub(overhead(flavour)) / 8 * 8;
        if u64::from(self.payload) <= most {
            return Ok(());
        }
        Err(format!(
            "a payload of {} B does not fit into the receiver's buffer of {area} B, in which up to {at_once} calls lie \
             at once (a client's next one beside those whose space is not given back yet): the limit is {most} B",
            self.payload
        ))
    }
}

/// Options of a run with many workers.
#[derive(Clone, Debug)]
pub struct WorkersOptions {
    /// Name of the test for the record.
    pub test: String,
    /// Flavour of the calls.
    pub flavour: Flavour,
    /// The cases, at least one.
    pub groups: Vec<Group>,
    /// Calls of each client in a round, or their duration.
    pub length: MinTime,
    /// Rounds of each case; at least 1.
    pub rounds: u32,
    /// Whether a training round precedes the others; twice its worst call is then the longest expected.
    pub training: bool,
    /// Whether to keep the percentiles of Android's tool as well, whose index is one too high.
    pub as_android: bool,
    /// Longest expected duration of a call, in ns; longer ones are counted.
    pub expected_max_ns: Option<u64>,
    /// Seed of the choice of callees.
    pub seed: u64,
    /// Driver and context.
    pub wanted: Wanted,
    /// Android release of the service manager's protocol.
    pub android: Release,
    /// Deliberate faults, for tests of this tool itself; a case is a worker's title without its space.
    pub faults: Vec<Fault>,
    /// Time limit without a call after which a worker is given up, in seconds.
    pub patience_s: u64,
    /// Command line, for the record.
    pub command_line: Vec<String>,
}

impl WorkersOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// The invalid option, and its limits.
    pub fn check(&self) -> Result<(), String> {
        self.groups.iter().try_for_each(|group| group.check(self.flavour))?;
        if self.length == MinTime::Iterations(0) || matches!(self.length, MinTime::Seconds(s) if s <= 0.0) {
            return Err("a worker must make a call: the count or time is 0".to_owned());
        }
        if self.faults.iter().any(|fault| fault.kind == FaultKind::CorruptReply) {
            return Err("replies are empty, so none can be corrupted".to_owned());
        }
        self.groups.iter().try_for_each(|group| self.capacity(group).map(drop))
    }

    /// Returns the capacity for samples of each worker.
    pub(super) fn capacity(&self, group: &Group) -> Result<usize, String> {
        let memory = host::memory_bytes().unwrap_or(u64::MAX);
        // Only callers take samples. Sorting doubles them, and others need memory, too.
        let most = memory / 4 / SAMPLE_BYTES / u64::from(group.clients().max(1));
        match self.length {
            MinTime::Iterations(calls) if calls > most => Err(format!(
                "{calls} calls of each of {} clients need {} MiB for their samples, and this machine has {} MiB of \
                 memory: the limit is {most} calls",
                group.clients(),
                calls.saturating_mul(SAMPLE_BYTES * u64::from(group.clients())) >> 20,
                memory >> 20,
            )),
            MinTime::Iterations(calls) => Ok(calls as usize),
            // The cast saturates at the maximum of the integer.
            MinTime::Seconds(seconds) => {
                let wanted = (seconds * CALLS_PER_SECOND) as usize;
                Ok(wanted.clamp(1, MOST_SAMPLES.min(usize::try_from(most).unwrap_or(usize::MAX))))
            }
        }
    }

    /// Number of samples of each worker whose memory is touched before its calls: all when their number is
    /// known. With a time most of the capacity is never used, so all workers together touch only a small
    /// share of the machine's memory; it is more than they use in seconds.
    pub(super) fn ready_samples(&self, group: &Group) -> usize {
        match self.length {
            MinTime::Iterations(_) => usize::MAX,
            MinTime::Seconds(_) => {
                let memory = host::memory_bytes().map_or(READY_BYTES, |memory| READY_BYTES.min(memory / 16));
                (memory / SAMPLE_BYTES / u64::from(group.clients().max(1))) as usize
            }
        }
    }

    /// Number of descriptors that one of its processes may need: the embedded driver has a channel in each
    /// direction to every other process, of two descriptors each. This process has one pipe per worker, which
    /// is less.
    pub(super) fn descriptors(&self) -> u64 {
        /// All others: the connection, standard streams, those of libraries.
        const BESIDES: u64 = 256;
        4 * self.groups.iter().map(Group::processes).max().unwrap_or(0) + BESIDES
    }

    pub(super) fn for_record(&self) -> record::Plan {
        record::Plan {
            test: self.test.clone(),
            min_time: self.length.to_string(),
            repetitions: self.rounds,
            random_interleaving: false,
            seed: Some(self.seed),
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            command_line: self.command_line.clone(),
            ..record::Plan::default()
        }
    }
}

#[cfg(test)]
mod tests;
