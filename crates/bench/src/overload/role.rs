//! One process of the overload experiment: a server, or the caller of a pair.
//! Not here: starting it (`super`), the service (`crate::inversion::service`).
//! Facts: a call's time counts from its intended start, which all callers share, so it includes the caller's own wait
//! for a CPU.

use backend::{AnyContext, on_context};
use procgroup::{READY, Role, SERVING, SlotAddress, WorkerSlot};
use record::Class;
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic_ns, sleep_until};
use sys::sched::Policy;

use crate::endpoint::Endpoint;
use crate::inversion::service::{self, Callee};
use crate::scheduling;
use host::realtime::{self, HIGHEST};

/// CPU time in us without a sleep after which the kernel ends a process (soft and hard limit).
const RUNAWAY: (u64, u64) = (500_000, 1_000_000);
/// Time from the release of a step to its first call, in ns: all callers are awake by then.
const HEAD_START_NS: u64 = 50_000_000;
/// Number of uncounted first calls, which contain setup costs.
const REHEARSALS: u32 = 5;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OverloadRole {
    pub(super) slot: SlotAddress,
    /// Address of the context.
    pub(super) address: String,
    pub(super) dialect: String,
    /// The CPUs of all processes.
    pub(super) cpus: Vec<u32>,
    pub(super) side: Side,
}

/// Server or caller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Side {
    Server {
        name: String,
        class: Class,
        /// CPU time of each call, in ns.
        work_ns: u64,
    },
    Caller {
        /// Number of the pair, from 0: it calls in steps with more pairs than that.
        pair: u32,
        /// Names of the pair's servers, each with its class and its number in the group.
        servers: Vec<(Class, String, u32)>,
        /// Class and number of pairs of each step, in the order of all steps.
        steps: Vec<(Class, u32)>,
        /// Calls of each step.
        iterations: u32,
        /// Time between two calls, in ns.
        period_ns: u64,
    },
}

impl Role for OverloadRole {
    const NAME: &'static str = "overload";

    fn title(&self) -> String {
        match &self.side {
            Side::Server { class: Class::Fifo, .. } => "rt server".to_owned(),
            Side::Server { .. } => "plain server".to_owned(),
            Side::Caller { pair, .. } => format!("caller {pair}"),
        }
    }

    fn run(self) -> Result<(), String> {
        self.slot.work(|slot| act(&self, slot))
    }
}

fn act(role: &OverloadRole, slot: &mut WorkerSlot) -> Result<(), String> {
    scheduling::prepare(RUNAWAY, Some(&role.cpus))?;
    let dialect = role.dialect.parse()?;
    on_context!(&AnyContext::parse(&role.address), |context| {
        let endpoint = Endpoint::open(context, dialect, 0).map_err(|error| error.to_string())?;
        match &role.side {
            Side::Server { name, class, work_ns } => {
                // The node must permit the server's priority, else Android's kernels would lower it.
                let service = service::offer(&endpoint, name, *class == Class::Fifo, *work_ns);
                let _service = service.map_err(|error| error.to_string())?;
                become_class(*class)?;
                slot.finish(READY);
                endpoint.serve().map_err(|error| error.to_string())
            }
            Side::Caller { pair, servers, steps, iterations, period_ns } => {
                slot.finish(SERVING);
                slot.wait_for(READY);
                let mut callees = Vec::new();
                for (class, name, number) in servers {
                    let callee = Callee::find(&endpoint, name).map_err(|error| error.to_string())?;
                    for _ in 0..REHEARSALS {
                        callee.call().map_err(|error| error.to_string())?;
                    }
                    callees.push((*class, callee, *number));
                }
                slot.touch(*iterations as usize);
                slot.finish(READY);
                for (step, (class, pairs)) in (READY + 1..).zip(steps) {
                    let released = slot.wait_for(step);
                    slot.clear();
                    if let Some((_, callee, number)) = callees.iter().find(|(of, ..)| of == class)
                        && pair < pairs
                    {
                        become_class(*class)?;
                        calls((callee, *number), *iterations, (released + HEAD_START_NS, *period_ns), slot)?;
                        become_class(Class::Other)?;
                    }
                    slot.finish(step);
                }
                Ok(())
            }
        }
    })
}

/// Gives the calling thread the scheduling of a class.
fn become_class(class: Class) -> Result<(), String> {
    match class {
        Class::Fifo => realtime::become_fifo(HIGHEST).map(drop).map_err(|problem| problem.to_string()),
        Class::Other => sys::sched::set_policy(0, Policy::Other)
            .map_err(|error| format!("leaving the real-time policy: {}", sys::errno::describe(&error))),
    }
}

/// Makes the calls of one step, one at each multiple of the period. The first one is not stored: the callers' CPUs
/// may have slept before it.
fn calls(
    (callee, number): (&Callee, u32),
    iterations: u32,
    (first, period_ns): (u64, u64),
    slot: &mut WorkerSlot,
) -> Result<(), String> {
    for turn in 0..=u64::from(iterations) {
        if slot.is_stopped() {
            break;
        }
        let start = first + turn * period_ns;
        sleep_until(start);
        slot.call(number);
        callee.call().map_err(|error| error.to_string())?;
        let end = monotonic_ns();
        if turn > 0 {
            slot.keep(start, end);
        }
    }
    Ok(())
}
