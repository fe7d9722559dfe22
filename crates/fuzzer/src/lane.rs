//! Steps side by side: what each thread of a process does, how long before each step it waits, how urgent it is, and where.
//! Not here: taking the steps (`player`), processes side by side (`stage`).

use std::time::{Duration, Instant};

use fastrand::Rng;
use sys::sched::{self, Policy};

use crate::program::{Action, Step, THREADS};

/// Longest wait before a step, in microseconds: some calls of a busy driver.
const LONGEST_US: u64 = 300;
/// Waits below this are spun, because a sleep takes longer.
const SPUN: Duration = Duration::from_micros(60);

/// One thread's part of a schedule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    /// Its actions, each after a wait.
    pub(crate) turns: Vec<(Duration, Action)>,
    policy: Policy,
    nice: i32,
    cpus: Vec<u32>,
}

/// The lanes of a process by thread: the same for a seed on machines with as many CPUs.
pub(crate) fn lanes(seed: u64, steps: Vec<Step>, cpus: &[u32]) -> [Lane; THREADS] {
    let mut shared = Rng::with_seed(seed);
    // On one CPU only preemption changes the order; apart, threads meet within instructions.
    let (pinning, one) = (shared.u8(..3), shared.usize(..cpus.len().max(1)));
    let proc = steps.first().map_or(0, |step| step.proc as u64);
    let mut own = Rng::with_seed(seed ^ (proc + 1).rotate_left(48));
    let mut lanes = std::array::from_fn(|thread| {
        let own_cpu = own.usize(..cpus.len().max(1)).wrapping_add(thread) % cpus.len().max(1);
        let cpus = match pinning {
            0 => cpus.to_vec(),
            1 => cpus.get(one).copied().into_iter().collect(),
            _ => cpus.get(own_cpu).copied().into_iter().collect(),
        };
        let (policy, nice) = match own.u8(..3) {
            0 => (Policy::Other, 0),
            1 => (Policy::Other, -own.i32(1..11)),
            _ => (Policy::Fifo(own.u8(1..4)), 0),
        };
        Lane { turns: Vec::new(), policy, nice, cpus }
    });
    for step in steps {
        let wait = if own.bool() { 0 } else { own.u64(..LONGEST_US) };
        lanes[step.thread].turns.push((Duration::from_micros(wait), step.action));
    }
    lanes
}

impl Lane {
    /// Makes the calling thread as urgent as the lane says, and puts it on its CPUs, as far as it may.
    pub(crate) fn adopt(&self) {
        let _ = sched::set_affinity(&self.cpus);
        let _ = sched::set_policy(0, self.policy);
        let _ = sched::set_nice(0, self.nice);
    }
}

/// Makes the calling thread a usual one again, on these CPUs.
pub(crate) fn leave(cpus: &[u32]) {
    // What could not be changed need not be changed back.
    let _ = sched::set_policy(0, Policy::Other);
    let _ = sched::set_nice(0, 0);
    let _ = sched::set_affinity(cpus);
}

/// Waits before a step.
pub(crate) fn wait(time: Duration) {
    let start = Instant::now();
    if time > SPUN {
        std::thread::sleep(time);
    }
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_schedule_and_seeds_have_many() {
        let steps = crate::generate::program(5).steps;
        let of = |seed| lanes(seed, steps.clone(), &[0, 1, 2]);
        assert_eq!(of(3), of(3));
        let many: Vec<_> = (0..40).map(of).collect();
        let has = |what: &dyn Fn(&Lane) -> bool| many.iter().flatten().filter(|lane| what(lane)).count();
        assert!(has(&|lane| lane.cpus.len() == 1) > 20 && has(&|lane| lane.cpus.len() == 3) > 20);
        assert!(has(&|lane| lane.policy.is_realtime()) > 20 && has(&|lane| lane.nice < 0) > 20);
        let waits = |lanes: &[Lane]| lanes.iter().map(|lane| lane.turns.len()).sum::<usize>();
        assert!(many.iter().all(|lanes| waits(lanes) == steps.len()));
        let longest = many.iter().flatten().flat_map(|lane| &lane.turns).map(|(wait, _)| *wait).max();
        assert!(longest > Some(SPUN) && longest < Some(Duration::from_micros(LONGEST_US)));
    }
}
