//! One process of the priority-inversion experiment: a server, or the real-time caller.
//! Not here: starting it (`super`), the service (`service`).
//! Facts: only the call lies between the two clock readings of a sample. The caller sleeps between its calls
//! for a random time: hogs get their share, and calls do not align with the scheduler tick.

use backend::{AnyContext, on_context};
use fastrand::Rng;
use procgroup::{READY, Role, SERVING, SlotAddress, WorkerSlot};
use record::Setting;
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic_ns, thread_cpu_ns};

use super::order;
use super::service::{self, Callee};
use crate::endpoint::Endpoint;
use crate::scheduling::{self, pack};
use ftrace::marker::Marker;
use host::realtime::{self, HIGHEST};

/// Words of a sample: duration, the server's scheduling, CPU time of both sides.
pub(super) const WORDS: usize = 3;
/// Number of the note with the caller's scheduling.
pub(super) const CALLERS_SCHED: usize = 0;

/// CPU time in us without a sleep after which the kernel ends a process (soft and hard limit): thousands of
/// calls.
const RUNAWAY: (u64, u64) = (500_000, 1_000_000);
/// Shortest pause between calls and the maximum of the random addition, in us.
const PAUSE_US: (u64, usize) = (1000, 4000);
/// Number of uncounted first calls, which contain setup costs.
const REHEARSALS: u32 = 5;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InversionRole {
    pub(super) slot: SlotAddress,
    /// Address of the context.
    pub(super) address: String,
    pub(super) dialect: String,
    /// Calls of each setting in each round.
    pub(super) iterations: u32,
    /// The CPU of all processes.
    pub(super) cpu: u32,
    pub(super) side: Side,
}

/// Server or caller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Side {
    Server {
        name: String,
        inherit_rt: bool,
        /// CPU time of each call, in ns.
        work_ns: u64,
        /// Whether it raises itself to the caller's priority.
        raised: bool,
    },
    Caller {
        /// Names of the servers: without inheritance, with it, and raised.
        names: [String; 3],
        /// Seed of the random pauses.
        seed: u64,
    },
}

impl Role for InversionRole {
    const NAME: &'static str = "inversion";

    fn title(&self) -> String {
        match &self.side {
            Side::Server { raised: true, .. } => "raised server",
            Side::Server { inherit_rt: true, .. } => "inherit server",
            Side::Server { .. } => "plain server",
            Side::Caller { .. } => "rt caller",
        }
        .to_owned()
    }

    fn run(self) -> Result<(), String> {
        self.slot.work(|slot| act(&self, slot))
    }
}

fn act(role: &InversionRole, slot: &mut WorkerSlot) -> Result<(), String> {
    scheduling::prepare(RUNAWAY, Some(&[role.cpu]))?;
    let dialect = role.dialect.parse()?;
    on_context!(&AnyContext::parse(&role.address), |context| {
        let endpoint = Endpoint::open(context, dialect, 0).map_err(|error| error.to_string())?;
        match &role.side {
            Side::Server { name, inherit_rt, work_ns, raised } => {
                let service = service::offer(&endpoint, name, *inherit_rt, *work_ns);
                let _service = service.map_err(|error| error.to_string())?;
                if *raised {
                    realtime::become_fifo(HIGHEST).map_err(|problem| problem.to_string())?;
                }
                slot.finish(READY);
                endpoint.serve().map_err(|error| error.to_string())
            }
            Side::Caller { names, seed } => {
                slot.finish(SERVING);
                slot.wait_for(READY);
                let find = |name| Callee::find(&endpoint, name).map_err(|error| error.to_string());
                let [off, on, raised] = names;
                let caller = Caller { off: find(off)?, on: find(on)?, raised: find(raised)? };
                caller.work(role, *seed, slot)
            }
        }
    })
}

struct Caller {
    off: Callee,
    on: Callee,
    raised: Callee,
}

impl Caller {
    /// Returns the callee of a setting, and its number in the group.
    fn callee(&self, setting: Setting) -> (&Callee, u32) {
        match setting {
            Setting::Quiet | Setting::Off => (&self.off, 0),
            Setting::On => (&self.on, 1),
            Setting::Raised => (&self.raised, 2),
        }
    }

    /// Executes all rounds, until a call breaks or the parent kills the process.
    fn work(&self, role: &InversionRole, seed: u64, slot: &mut WorkerSlot) -> Result<(), String> {
        slot.touch(role.iterations as usize);
        let sched = realtime::become_fifo(HIGHEST).map_err(|problem| problem.to_string())?;
        for setting in Setting::ALL {
            for _ in 0..REHEARSALS {
                self.callee(setting).0.call().map_err(|error| error.to_string())?;
            }
        }
        slot.note(CALLERS_SCHED, pack(sched));
        slot.finish(READY);
        let mut rng = Rng::with_seed(seed);
        let stamp = Marker::into(None);
        for round in 0.. {
            for (setting, step) in order(round).into_iter().zip(first_step(round)..) {
                slot.wait_for(step);
                slot.clear();
                let (callee, number) = self.callee(setting);
                let cpu_start = thread_cpu_ns();
                let result = calls(callee, (setting, number), role.iterations, &mut rng, slot, &stamp);
                slot.keep_cpu(thread_cpu_ns() - cpu_start);
                result?;
                slot.finish(step);
            }
        }
        Ok(())
    }
}

pub(super) fn first_step(round: u32) -> u32 {
    READY + 1 + round * Setting::ALL.len() as u32
}

/// Makes the calls of one setting in one round. The first one gives the initial value of the server's CPU
/// time, and is not stored.
fn calls(
    callee: &Callee,
    (setting, number): (Setting, u32),
    most: u32,
    rng: &mut Rng,
    slot: &mut WorkerSlot,
    stamp: &Marker,
) -> Result<(), String> {
    let mut servers = callee.call().map_err(|error| error.to_string())?.cpu_ns;
    let mut made = 0;
    while made < most && !slot.is_stopped() {
        let pause = PAUSE_US.0 + rng.usize(..PAUSE_US.1) as u64;
        sys::clock::sleep_until(monotonic_ns() + pause * 1000);
        slot.call(number);
        stamp.mark("call", format_args!("setting={} class=fifo number={made}", setting.name()));
        let own_start = thread_cpu_ns();
        let start = monotonic_ns();
        let result = callee.call();
        let end = monotonic_ns();
        let own = thread_cpu_ns() - own_start;
        stamp.mark("done", format_args!("setting={} class=fifo number={made}", setting.name()));
        let served = result.map_err(|error| error.to_string())?;
        // CPU time of the server since the previous call: only the end of that call and this one.
        let ran = own + served.cpu_ns.saturating_sub(servers);
        servers = served.cpu_ns;
        made = slot.keep_words(start, end, &[end - start, served.sched, ran]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_rounds_follow_each_other() {
        assert_eq!((first_step(0), first_step(1)), (READY + 1, READY + 5));
    }
}
