//! One process of load.
//! Not here: starting it (`super`), one portion of the work (`work`).
//! Facts: `RLIMIT_RTTIME` in `getrlimit(2)`; `prctl(2)` on timer slack, which would coalesce interrupts.

use std::io;

use procgroup::Role;
use procgroup::role::tell_ready;
use serde::{Deserialize, Serialize};
use sys::clock::monotonic_ns;
use sys::sched::{self, Policy};

use super::spec::{LoadClass, LoadSpec};
use super::work::Work;

const MS: u64 = 1_000_000;
/// Period of a real-time load, in ns.
const PERIOD: u64 = 10 * MS;
/// Working time of all real-time loads of one CPU in each period, in ns.
const SLICES: u64 = 8 * MS;
/// CPU time in us without a sleep after which the kernel ends a real-time load (soft and hard limit): many
/// slices.
const RUNAWAY: (u64, u64) = (200_000, 400_000);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadRole {
    /// Its number among all loads, from 0.
    pub(super) number: usize,
    /// The load as typed; its count does not apply to this process.
    pub(super) load: String,
    /// CPUs that it may run on; `None`: those of its parent.
    pub(super) cpus: Option<Vec<u32>>,
    /// Number of real-time loads per CPU.
    pub(super) crowd: u32,
    /// Number of loads that share the memory for streams.
    pub(super) streams: u32,
}

impl Role for LoadRole {
    const NAME: &'static str = "load";

    fn title(&self) -> String {
        let kind = self.load.split(':').next().unwrap_or_default();
        format!("hog {} {kind}", self.number)
    }

    fn run(self) -> Result<(), String> {
        let spec: LoadSpec = self.load.parse()?;
        let mut work = prepare(&self, spec)?;
        tell_ready("").map_err(|error| sys::errno::describe(&error))?;
        work_on(&mut work, spec, self.crowd)
    }
}

/// Prepares everything but the work: memory and files are allocated before the process becomes urgent.
fn prepare(role: &LoadRole, spec: LoadSpec) -> Result<Work, String> {
    let LoadRole { cpus, crowd, streams, .. } = role;
    let os = |what: &'static str| move |error: io::Error| format!("{what}: {}", sys::errno::describe(&error));
    if let Some(cpus) = cpus {
        sched::set_affinity(cpus).map_err(os("choosing its CPUs"))?;
    }
    // A real-time parent must not pass its policy on by accident.
    sched::set_policy(0, Policy::Other).map_err(os("becoming SCHED_OTHER"))?;
    let stretch = if spec.class.is_realtime() { *crowd } else { 1 };
    let work = Work::prepare(spec.kind, stretch, *streams)?;
    sys::clock::set_timer_slack_ns(1).map_err(os("having its timers on time"))?;
    sys::limits::set_realtime_us(RUNAWAY.0, RUNAWAY.1)
        .map_err(os("limiting its real-time CPU time (RLIMIT_RTTIME)"))?;
    take_class(spec.class)?;
    let own = sched::own_now();
    let as_asked = own.policy == spec.class.policy() && spec.class.nice().is_none_or(|nice| nice == own.nice);
    if !as_asked {
        return Err(format!("it asked for {} and runs as {:?}, nice {}", spec.class, own.policy, own.nice));
    }
    Ok(work)
}

fn take_class(class: LoadClass) -> Result<(), String> {
    if let Some(nice) = class.nice() {
        sched::set_nice(0, nice).map_err(|error| {
            let what = sys::errno::describe(&error);
            format!(
                "taking nice {nice}: {what}; below its own it needs CAP_SYS_NICE or RLIMIT_NICE (ulimit -e)"
            )
        })?;
    }
    sched::set_policy(0, class.policy()).map_err(|error| {
        let (what, most) = (sys::errno::describe(&error), sys::limits::realtime_priority());
        let advice = match class.is_realtime() {
            true => format!(
                "; a real-time class needs CAP_SYS_NICE or RLIMIT_RTPRIO (ulimit -r, now {most}), and with real-time \
                 group scheduling a share for its cgroup (cpu.rt_runtime_us)"
            ),
            false => String::new(),
        };
        format!("becoming {class}: {what}{advice}")
    })
}

/// Works until the process is killed.
fn work_on(work: &mut Work, spec: LoadSpec, crowd: u32) -> ! {
    let slice = SLICES / u64::from(crowd.max(1));
    let rest = PERIOD - slice;
    loop {
        let start = monotonic_ns();
        while monotonic_ns() - start < slice {
            work.portion();
        }
        if spec.class.is_realtime() {
            // From now, not from the start: a delayed load does not catch up.
            sys::clock::sleep_until(monotonic_ns() + rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_slices_leave_some_of_every_period() {
        for crowd in 1..=u64::from(super::super::MOST_PROCESSES) {
            let slice = SLICES / crowd;
            assert!(slice > 0 && slice * crowd <= SLICES && SLICES < PERIOD, "{crowd}");
        }
    }
}
