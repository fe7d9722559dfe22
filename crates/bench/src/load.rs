//! Load on the machine during a measurement: processes of this same binary that compute, move memory, cause
//! timer interrupts, or write and read a file.
//! Not here: measuring (the latency test, the inversion experiment).
//!
//! - [`spec`]: the request, as typed.
//! - [`role`]: one process from inside.
//! - `work`: its work.
//!
//! Load of a real-time class never hangs the machine: it works in slices with sleep in between, all processes
//! together leave every CPU a fifth of its time, and the kernel ends one that does not sleep.

pub(crate) mod role;
pub mod spec;
mod work;

use std::time::Duration;

pub use spec::{LoadClass, LoadKind, LoadSpec, MOST_PROCESSES};

use procgroup::{Streams, WorkerProcess};
use role::LoadRole;

/// Time limit for all processes to begin. A process of class idle begins when no other needs the CPU.
const PATIENCE: Duration = Duration::from_secs(30);

/// Processes that load the machine; killed on drop, and when the *thread* that started them ends.
pub struct Loads {
    /// Each with its load as typed.
    workers: Vec<(WorkerProcess, String)>,
}

impl Loads {
    /// Starts all processes, and returns once each works and is scheduled as requested. `cpus` confines all of
    /// them. This program is started again, so it must call [`crate::start_worker`].
    ///
    /// # Errors
    /// Too many; or a process cannot be set up, such as a real-time class without the right. A message for the
    /// user.
    pub fn start(specs: &[LoadSpec], cpus: Option<&[u32]>) -> Result<Self, String> {
        let count: u32 = specs.iter().map(|spec| spec.count).fold(0, u32::saturating_add);
        if count > MOST_PROCESSES {
            return Err(format!(
                "{} asks for {count} processes of load; {MOST_PROCESSES} are allowed in all",
                describe(specs)
            ));
        }
        let (crowd, streams) = (crowd(specs, cpus), streams(specs));
        let mut workers = Vec::with_capacity(count as usize);
        for spec in specs {
            let load = spec.to_string();
            for _ in 0..spec.count {
                let (number, cpus) = (workers.len(), cpus.map(<[u32]>::to_vec));
                let role = LoadRole { number, load: load.clone(), cpus, crowd, streams };
                let worker = WorkerProcess::start(&role, Streams::heard(), None)
                    .map_err(|error| format!("starting the load {load}: {}", sys::errno::describe(&error)))?;
                workers.push((worker, load.clone()));
            }
        }
        for (worker, load) in &workers {
            let ready = worker.ready(PATIENCE);
            ready.map_err(|why| format!("the load {load} did not start: {why}"))?;
        }
        Ok(Self { workers })
    }

    /// Returns the process numbers.
    pub fn pids(&self) -> Vec<u32> {
        self.workers.iter().map(|(worker, _)| worker.pid()).collect()
    }

    /// Checks that all processes still run: otherwise the measurement was not made under this load.
    ///
    /// # Errors
    /// The first that has ended, as a message for the user.
    pub fn check(&self) -> Result<(), String> {
        let ended = self.workers.iter().find_map(|(worker, load)| Some((worker, load, worker.end()?)));
        let Some((worker, load, how)) = ended else { return Ok(()) };
        Err(format!("the load {load} ended while it was needed: process {}, {how}", worker.pid()))
    }
}

impl Drop for Loads {
    /// Kills all processes before it waits for any.
    fn drop(&mut self) {
        self.workers.iter().for_each(|(worker, _)| worker.kill());
    }
}

/// Returns all loads as typed, e.g. `cpu:4,memory:2:batch`; empty for none. The record contains this text.
#[must_use]
pub fn describe(specs: &[LoadSpec]) -> String {
    specs.iter().map(LoadSpec::to_string).collect::<Vec<_>>().join(",")
}

/// Maximum number of real-time processes per CPU, if they are spread evenly.
fn crowd(specs: &[LoadSpec], cpus: Option<&[u32]>) -> u32 {
    let realtime = specs.iter().filter(|spec| spec.class.is_realtime());
    let count: u32 = realtime.map(|spec| spec.count).fold(0, u32::saturating_add);
    let usable = sys::sched::usable_cpus();
    let cpus = cpus.map_or(usable, |cpus| u32::try_from(cpus.len()).unwrap_or(u32::MAX));
    count.div_ceil(cpus.max(1)).max(1)
}

/// Number of processes that stream through memory.
fn streams(specs: &[LoadSpec]) -> u32 {
    specs.iter().filter(|spec| spec.kind == LoadKind::Memory).map(|spec| spec.count).sum::<u32>().max(1)
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
        let error = Loads::start(&many, None).err().expect("400 of them");
        assert!(error.contains("400") && error.contains("256"), "{error}");
        let none = Loads::start(&[], None).expect("nothing to start");
        assert!(none.pids().is_empty());
        none.check().expect("nobody to die");
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
