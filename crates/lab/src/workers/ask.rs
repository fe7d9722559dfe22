//! Room: what a run with many workers is asked to do, and which of it cannot be.
//! Not here: the words it was typed in (the command line), who calls whom in detail (`layout`).
//! Facts: a receiver's area is 1 MiB less two pages, as libbinder's; defaults of the Android tools.

use std::fmt;

use driver::connection::DEFAULT_MAP_SIZE;
use record::CrowdShape;
use serde::{Deserialize, Serialize};

use crate::host;
use crate::plan::{CALLS_IN_AREA, Fault, FaultKind, MinTime, Release, SPARE, Wanted};

/// More processes in one case are a slip of the pen.
pub const MOST_WORKERS: u32 = 512;

/// Samples of calls that one worker keeps when the time is given and not their number.
const MOST_SAMPLES: usize = 1 << 26;
/// More calls per second than any worker makes.
const CALLS_PER_SECOND: f64 = 4e6;
/// Memory for samples of all workers of a case that is there before they call, when the time is given.
const READY_BYTES: u64 = 64 << 20;
const SAMPLE_BYTES: u64 = size_of::<u64>() as u64;

/// What the workers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavour {
    /// A transaction without header, answered by an empty reply, as the Android tool's.
    Binder,
    /// `IBenchmark::sendVec` through hwbinder.
    Hwbinder,
    /// The same interface in each worker's own process, without IPC.
    Passthrough,
}

impl Flavour {
    /// The binder context that it needs; `None` without IPC.
    pub(crate) fn context(self) -> Option<&'static str> {
        match self {
            Self::Binder => Some("binder"),
            Self::Hwbinder => Some("hwbinder"),
            Self::Passthrough => None,
        }
    }

    /// Whether callees are processes that register with a service manager.
    pub(super) fn has_manager(self) -> bool {
        self.context().is_some()
    }

    /// Bytes of a call besides its payload that the receiver's buffer has to hold.
    fn overhead(self) -> u64 {
        match self {
            Self::Binder | Self::Passthrough => 0,
            // The header, and the objects of the vector and its content.
            Self::Hwbinder => 256,
        }
    }

    /// The part of a case's name before the arguments.
    pub(super) fn family(self) -> String {
        format!("workers_{self}")
    }
}

/// Who calls whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each worker serves, and calls a random other one each time.
    Random,
    /// Half of the workers serve, each other one calls its own.
    Pairs,
    /// So many processes serve besides, on one thread each or on a whole pool; all workers call a random
    /// one of them each time.
    Services {
        /// How many.
        count: u32,
        /// Threads that the driver may ask each for, besides the first.
        more_threads: u32,
    },
    /// All workers ping a service that is there already.
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

/// One case: so many workers of one shape with one payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Who calls whom.
    pub shape: Shape,
    /// Workers; services of [`Shape::Services`] are not among them.
    pub workers: u32,
    /// Bytes of each call.
    pub payload: u32,
}

impl Group {
    /// How many call.
    #[must_use]
    pub fn clients(&self) -> u32 {
        if self.shape == Shape::Pairs { self.workers / 2 } else { self.workers }
    }

    /// How many are called.
    #[must_use]
    pub fn services(&self) -> u32 {
        match self.shape {
            Shape::Random => self.workers,
            Shape::Pairs => self.workers / 2,
            Shape::Services { count, .. } => count,
            Shape::Named(_) => 1,
        }
    }

    /// Calls that may lie in one service's area at once. With a pool a client's next call may find one more thread
    /// that has replied and not come to giving the space back.
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
        let (family, clients, payload) = (flavour.family(), self.clients(), self.payload);
        match self.shape {
            Shape::Random => format!("{family}/random:{clients}/payload:{payload}"),
            Shape::Pairs => format!("{family}/pairs:{clients}/payload:{payload}"),
            Shape::Services { .. } | Shape::Named(_) => {
                format!("{family}/services:{}/clients:{clients}/payload:{payload}", self.services())
            }
        }
    }

    /// Processes that are started for it.
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

    /// Whether a receiver's buffer has room for the payloads of all calls that it may get at once.
    ///
    /// # Errors
    /// What does not fit, and the limit.
    pub fn check_payload(&self, flavour: Flavour) -> Result<(), String> {
        let at_once = self.calls_in_area();
        let area = DEFAULT_MAP_SIZE as u64;
        // The driver takes space in steps of 8 bytes, and leaves some to the service manager's answers.
        let most = ((area - SPARE) / at_once).saturating_sub(flavour.overhead()) / 8 * 8;
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

/// Everything a run with many workers needs to know.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The test's name for the record.
    pub test: String,
    /// What the workers speak.
    pub flavour: Flavour,
    /// The cases, at least one.
    pub groups: Vec<Group>,
    /// Calls of each client in a round, or how long it calls.
    pub length: MinTime,
    /// Rounds of each case; at least 1.
    pub rounds: u32,
    /// A round ahead of the others, after which twice its worst call is the longest expected.
    pub training: bool,
    /// The longest that a call is expected to take; others are counted.
    pub expected_max_ns: Option<u64>,
    /// Decides who is called next.
    pub seed: u64,
    /// Which driver, and which context of it.
    pub wanted: Wanted,
    /// The Android release whose service manager is spoken to.
    pub android: Release,
    /// Deliberate breakage, for tests of this tool itself; a case is a worker's title without its space.
    pub faults: Vec<Fault>,
    /// After how many seconds without one call a worker is given up.
    pub patience_s: u64,
    /// The words of the command line, for the record.
    pub command_line: Vec<String>,
}

impl Ask {
    /// Whether it can be done.
    ///
    /// # Errors
    /// What is wrong with it and what would not be, for whoever typed it.
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

    /// Samples that each worker's memory has room for.
    pub(super) fn capacity(&self, group: &Group) -> Result<usize, String> {
        let memory = host::memory_bytes().unwrap_or(u64::MAX);
        // Only those who call have room. Their samples are there twice when they are sorted, and others
        // want memory, too.
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
            // A float beyond the integer becomes its maximum.
            MinTime::Seconds(seconds) => {
                let wanted = (seconds * CALLS_PER_SECOND) as usize;
                Ok(wanted.clamp(1, MOST_SAMPLES.min(usize::try_from(most).unwrap_or(usize::MAX))))
            }
        }
    }

    /// Samples of each worker for which memory is there before it calls: all when their number is known.
    /// With a time most of the room is never used, so all workers have no more than a small share of the
    /// machine's memory; it is more than they use in seconds.
    pub(super) fn ready_samples(&self, group: &Group) -> usize {
        match self.length {
            MinTime::Iterations(_) => usize::MAX,
            MinTime::Seconds(_) => {
                let memory = host::memory_bytes().map_or(READY_BYTES, |memory| READY_BYTES.min(memory / 16));
                (memory / SAMPLE_BYTES / u64::from(group.clients().max(1))) as usize
            }
        }
    }

    /// Descriptors that one of its processes may need: to each other one the embedded driver has a channel
    /// in each direction, of two descriptors each. Here each worker's output is a pipe, which is less.
    pub(super) fn descriptors(&self) -> u64 {
        /// Everything else: the connection, standard streams, what libraries open.
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

/// The last word of its cases' family: `binder`.
impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binder => "binder",
            Self::Hwbinder => "hwbinder",
            Self::Passthrough => "passthrough",
        })
    }
}

#[cfg(test)]
mod tests;
