//! Room: load on the machine while something is measured: processes of this same binary that compute, move
//! memory, have the timer interrupt, or write and read a file.
//! Not here: measuring beside it (the latency test, the inversion experiment).
//!
//! - [`spec`]: what was asked for, as typed. - [`role`]: one process from inside. - `work`: what it does.
//!
//! Load of a real-time class never hangs the machine: it works in slices with sleep in between, those of all
//! processes together leave every CPU a fifth of its time, and the kernel ends one that does not sleep.

pub mod role;
pub mod spec;
mod work;

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sys::sched::Policy;

pub use spec::{BadSpec, Class, Kind, LoadSpec, MOST_PROCESSES};

use crate::stage::Peer;
use role::Assignment;

/// How long all of them together may take to begin. One of class idle begins when nobody else wants the CPU.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the reason of one that just ended may take to be seen.
const GRACE: Duration = Duration::from_secs(2);

/// Why there is not the load that was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// More processes than [`MOST_PROCESSES`].
    TooMany(u32),
    /// The process could not be started.
    Start {
        /// Which, as typed.
        load: String,
        /// What came back.
        source: io::Error,
    },
    /// It was started and cannot do what it should; in its own words.
    Refused {
        /// Which, as typed.
        load: String,
        /// Why.
        why: String,
    },
    /// It ended by itself while it should have gone on.
    Died {
        /// Which, as typed.
        load: String,
        /// Its process.
        pid: u32,
        /// How.
        how: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(count) => {
                write!(f, "{count} processes of load are too many: use at most {MOST_PROCESSES} in all")
            }
            Self::Start { load, source } => {
                write!(f, "starting the load {load}: {}", sys::errno::describe(source))
            }
            Self::Refused { load, why } => write!(f, "the load {load} did not start: {why}"),
            Self::Died { load, pid, how } => {
                write!(f, "the load {load} ended while it was needed: process {pid}, {how}")
            }
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// One process of load that is at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// What it is part of, as typed.
    pub load: String,
    /// Its process.
    pub pid: u32,
    /// The policy that it was found to have.
    pub policy: Policy,
    /// The nice that it was found to have.
    pub nice: i32,
}

/// Processes that load the machine; ended on drop, and when the *thread* that started them ends.
pub struct Loads {
    peers: Vec<(Peer, Running)>,
}

impl Loads {
    /// Starts them all, and returns once each says that it is at work, with the scheduling that it really
    /// has. `program` is this binary, which passes the words behind [`role::COMMAND`] on to [`role::play`];
    /// `cpus` confines all of them.
    ///
    /// # Errors
    /// [`LoadError`]: too many; or one of them cannot be had, such as a real-time class without the right.
    pub fn start(specs: &[LoadSpec], program: &Path, cpus: Option<&[u32]>) -> Result<Self, LoadError> {
        let count: u32 = specs.iter().map(|spec| spec.count).fold(0, u32::saturating_add);
        if count > MOST_PROCESSES {
            return Err(LoadError::TooMany(count));
        }
        let mut loads = Self { peers: Vec::with_capacity(count as usize) };
        let (crowd, streams) = (crowd(specs, cpus), streams(specs));
        let mut started = Vec::with_capacity(count as usize);
        for spec in specs {
            let words = Assignment { spec: *spec, cpus: cpus.map(<[u32]>::to_vec), crowd, streams }.words();
            for _ in 0..spec.count {
                let peer = Peer::spawn(program, &words, Stdio::null(), Stdio::piped(), None)
                    .map_err(|source| LoadError::Start { load: spec.to_string(), source })?;
                started.push((peer, spec.to_string()));
            }
        }
        let start = Instant::now();
        for (peer, load) in started {
            let left = PATIENCE.saturating_sub(start.elapsed());
            let running = heard(&peer, &load, left).map_err(|why| LoadError::Refused { load, why })?;
            loads.peers.push((peer, running));
        }
        Ok(loads)
    }

    /// Who is at work.
    pub fn running(&self) -> impl ExactSizeIterator<Item = &Running> {
        self.peers.iter().map(|(_, running)| running)
    }

    /// Whether all of them are still there: if not, what was measured was not measured under this load.
    ///
    /// # Errors
    /// [`LoadError::Died`], for the first that is not.
    pub fn check(&self) -> Result<(), LoadError> {
        for (peer, running) in &self.peers {
            if let Some(end) = peer.end() {
                let Running { load, pid, .. } = running.clone();
                return Err(LoadError::Died { load, pid, how: end.to_string() });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Loads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.running()).finish()
    }
}

impl Drop for Loads {
    /// All are told to end before any is waited for.
    fn drop(&mut self) {
        self.peers.iter().for_each(|(peer, _)| peer.kill());
    }
}

/// All of them as typed, e.g. `cpu:4,memory:2:batch`; empty for none. This is what a record keeps.
#[must_use]
pub fn describe(specs: &[LoadSpec]) -> String {
    specs.iter().map(LoadSpec::to_string).collect::<Vec<_>>().join(",")
}

/// How many real-time processes share a CPU at most, if they are spread evenly.
fn crowd(specs: &[LoadSpec], cpus: Option<&[u32]>) -> u32 {
    let realtime = specs.iter().filter(|spec| spec.class.is_realtime());
    let count: u32 = realtime.map(|spec| spec.count).fold(0, u32::saturating_add);
    let usable = sys::sched::usable_cpus();
    let cpus = cpus.map_or(usable, |cpus| u32::try_from(cpus.len()).unwrap_or(u32::MAX));
    count.div_ceil(cpus.max(1)).max(1)
}

/// How many processes stream through memory.
fn streams(specs: &[LoadSpec]) -> u32 {
    specs.iter().filter(|spec| spec.kind == Kind::Memory).map(|spec| spec.count).sum::<u32>().max(1)
}

/// Waits for the line that says how it runs, or why it does not.
fn heard(peer: &Peer, load: &str, time: Duration) -> Result<Running, String> {
    let line = peer.first_line(time)?;
    match role::parse_ready(&line) {
        Some((policy, nice)) => Ok(Running { load: load.to_owned(), pid: peer.pid(), policy, nice }),
        None if line.is_empty() => Err(match peer.end_within(GRACE) {
            Some(end) => format!("it ended first ({end})"),
            None => "it closed its output first".to_owned(),
        }),
        None => Err(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(words: &[&str]) -> Vec<LoadSpec> {
        words.iter().map(|word| word.parse().expect("a load")).collect()
    }

    #[test]
    fn too_many_are_not_even_started() {
        let many = specs(&["cpu:200", "io:200"]);
        let error = Loads::start(&many, Path::new("/nonexistent"), None).expect_err("400 of them");
        assert!(error.to_string().contains("400") && error.to_string().contains("256"), "{error}");
        let none = Loads::start(&[], Path::new("/nonexistent"), None).expect("nothing to start");
        assert_eq!(none.running().len(), 0);
        none.check().expect("nobody to die");
    }

    #[test]
    fn a_program_that_is_none_and_one_that_says_nothing_or_nonsense_are_errors() {
        let one = specs(&["cpu:1"]);
        let error = |program: &str| Loads::start(&one, Path::new(program), None).expect_err("no load");
        let missing = error("/nonexistent").to_string();
        assert!(missing.contains("ENOENT") && missing.contains("cpu:1"), "{missing}");
        let silent = error("/bin/true").to_string();
        assert!(silent.contains("ended first (exit status: 0)"), "{silent}");
        let nonsense = error("/bin/echo").to_string();
        assert!(nonsense.contains(role::COMMAND), "what it said: {nonsense}");
    }

    #[test]
    fn real_time_processes_share_a_cpu_by_how_many_there_are() {
        let all = specs(&["cpu:3:fifo10", "memory:2:rr5", "irq:4"]);
        assert_eq!(crowd(&all, Some(&[1])), 5);
        assert_eq!(crowd(&all, Some(&[0, 1])), 3);
        assert_eq!(crowd(&specs(&["cpu:9"]), Some(&[0])), 1, "others are not in it");
        assert_eq!(describe(&all), "cpu:3:fifo10,memory:2:rr5,irq:4");
    }
}
