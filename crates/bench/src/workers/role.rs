//! One worker of a throughput test with many workers.
//! Not here: starting it (`super`), the calls of a flavour (`endpoint`).
//! Facts: only the call lies between the two clock readings of a sample; choosing the next callee, storing
//! the sample and checking for a stop happen outside of them.

use std::sync::Arc;

use backend::{AnyContext, on_context};
use driver::Connection;
use fastrand::Rng;
use ipc::Binder;
use procgroup::{READY, Role, SERVING, SlotAddress, WorkerSlot};
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic_ns, thread_cpu_ns};

use super::endpoint::{BareCallee, Callee, HidlCallee, InProcess, offer};
use crate::call_error::CallError;
use crate::endpoint::Endpoint;
use crate::measure::echo::Sabotage;
use crate::plan::{Dialect, FaultKind, Flavour};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerRole {
    pub(super) slot: SlotAddress,
    /// Its name in messages, such as `worker 3`.
    pub(super) title: String,
    pub(super) flavour: Flavour,
    /// Address of the context.
    pub(super) address: String,
    /// Android release of the service manager.
    pub(super) release: String,
    /// Number of samples whose pages are touched before the first round.
    pub(super) ready_samples: usize,
    /// Prefix of the services' names, before the number of their worker.
    pub(super) names: String,
    /// Numbers of the workers whose services it calls.
    pub(super) calls: Vec<u32>,
    /// The one service that it pings instead.
    pub(super) pings: Option<String>,
    /// Whether it serves; if so, the number of threads in addition to the first one.
    pub(super) pool: Option<u32>,
    /// Bytes of each call.
    pub(super) payload: u32,
    /// Seed of the random choice of callees.
    pub(super) seed: u64,
    /// Maximum number of calls in a round.
    pub(super) most_calls: u32,
    /// Maximum duration of a round, in ns.
    pub(super) most_time: u64,
    /// Deliberate fault, for tests.
    pub(super) fault: Option<FaultKind>,
}

impl WorkerRole {
    fn name_of(&self, number: u32) -> String {
        self.pings.clone().unwrap_or_else(|| format!("{}{number}", self.names))
    }
}

impl Role for WorkerRole {
    const NAME: &'static str = "throughput";

    fn title(&self) -> String {
        self.title.clone()
    }

    fn run(self) -> Result<(), String> {
        self.slot.work(|slot| act(&self, slot))
    }
}

fn act(role: &WorkerRole, slot: &mut WorkerSlot) -> Result<(), String> {
    let payload = role.payload as usize;
    // As in Android's tool.
    let data: Arc<[u8]> = (0..payload).map(|at| at as u8).collect();
    let Some(dialect) = role.flavour.dialect(role.release.parse()?) else {
        return work(|_| Ok(InProcess::new(&data)), Sabotage::new(role.fault), role, slot);
    };
    on_context!(&AnyContext::parse(&role.address), |context| {
        let endpoint = Endpoint::open(context, dialect, role.pool.unwrap_or(0));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let sabotage = Sabotage::new(role.fault);
        let (_service, own_fault) = match role.pool {
            Some(_) => {
                let service = serve(&endpoint, role, sabotage).map_err(|error| error.to_string())?;
                (Some(service), Sabotage::new(None))
            }
            None => (None, sabotage),
        };
        match dialect {
            Dialect::Binder(_) => {
                let (request, pings) = (vec![0; payload].into(), role.pings.is_some());
                let find = |name: &str| BareCallee::find(&endpoint, name, &request, pings);
                work(find, own_fault, role, slot)
            }
            Dialect::Hwbinder => {
                let find = |name: &str| HidlCallee::find(&endpoint, name, &data);
                work(find, own_fault, role, slot)
            }
        }
    })
}

/// Offers the worker's service, and serves it on other threads.
fn serve<C: Connection>(
    endpoint: &Endpoint<C>,
    role: &WorkerRole,
    sabotage: Sabotage,
) -> Result<Binder, CallError> {
    endpoint.start_thread()?;
    offer(endpoint, &role.name_of(role.slot.number), sabotage.is_planned().then_some(sabotage))
}

/// Executes all steps, until a call breaks. A worker without callees serves until it is killed.
fn work<C: Callee>(
    find: impl Fn(&str) -> Result<C, CallError>,
    fault: Sabotage,
    role: &WorkerRole,
    slot: &mut WorkerSlot,
) -> Result<(), String> {
    slot.finish(SERVING);
    slot.wait_for(READY);
    let mut callees = Vec::with_capacity(role.calls.len());
    for &number in &role.calls {
        let mut callee = find(&role.name_of(number)).map_err(|error| error.to_string())?;
        // First-call setup is not measured.
        callee.call().map_err(|error| error.to_string())?;
        callees.push((number, callee));
    }
    slot.touch(role.ready_samples);
    slot.finish(READY);
    if callees.is_empty() {
        loop {
            std::thread::park();
        }
    }
    let mut caller = Caller { callees, rng: Rng::with_seed(role.seed), fault };
    for step in READY + 1.. {
        slot.wait_for(step);
        caller.round(role, slot)?;
        slot.finish(step);
    }
    Ok(())
}

struct Caller<C> {
    callees: Vec<(u32, C)>,
    rng: Rng,
    /// Fault of a worker that does not serve.
    fault: Sabotage,
}

impl<C: Callee> Caller<C> {
    /// Calls until the round is complete.
    fn round(&mut self, role: &WorkerRole, slot: &mut WorkerSlot) -> Result<(), String> {
        slot.clear();
        let cpu_start = thread_cpu_ns();
        let deadline = monotonic_ns().saturating_add(role.most_time);
        let result = self.calls(role.most_calls, deadline, slot);
        slot.keep_cpu(thread_cpu_ns() - cpu_start);
        result
    }

    fn calls(&mut self, most: u32, deadline: u64, slot: &mut WorkerSlot) -> Result<(), String> {
        loop {
            let chosen = self.rng.usize(..self.callees.len());
            let (number, callee) = &mut self.callees[chosen];
            slot.call(*number);
            let start = monotonic_ns();
            let result = callee.call();
            let end = monotonic_ns();
            result.map_err(|error| error.to_string())?;
            let calls = slot.keep(start, end);
            if calls >= most || end >= deadline || slot.is_stopped() {
                return Ok(());
            }
            self.fault.apply(&mut []);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use procgroup::{BlockLayout, SharedBlock};

    const LAYOUT: BlockLayout = BlockLayout { workers: 2, callers: 2, samples: 100, words: 1 };

    fn role(most_calls: u32, block: &SharedBlock) -> WorkerRole {
        WorkerRole {
            slot: block.address(0),
            title: "worker 0".to_owned(),
            flavour: Flavour::Binder,
            address: "/dev/binder".to_owned(),
            release: "16".to_owned(),
            ready_samples: 10,
            names: "x.".to_owned(),
            calls: vec![1],
            pings: None,
            pool: None,
            payload: 0,
            seed: 5,
            most_calls,
            most_time: u64::MAX,
            fault: None,
        }
    }

    /// Fails after this many calls.
    struct Fake(u32);

    impl Callee for Fake {
        fn call(&mut self) -> Result<(), CallError> {
            self.0 = self.0.checked_sub(1).ok_or(CallError::Closed)?;
            Ok(())
        }
    }

    fn round(calls: u32, time: u64, callees: Vec<(u32, Fake)>, stopped: bool) -> (Result<(), String>, u64) {
        let mut block = SharedBlock::create(LAYOUT).expect("memory");
        let role = WorkerRole { most_time: time, ..role(calls, &block) };
        let mut slot = role.slot.open().expect("the same memory");
        if stopped {
            block.stop();
        }
        let mut caller = Caller { callees, rng: Rng::with_seed(1), fault: Sabotage::new(None) };
        let result = caller.round(&role, &mut slot);
        (result, block.totals(0).calls)
    }

    #[test]
    fn a_round_ends_with_its_calls_its_time_a_stop_or_a_broken_call() {
        let fine = || vec![(0, Fake(1000)), (1, Fake(1000))];
        assert_eq!(round(30, u64::MAX, fine(), false), (Ok(()), 30));
        assert_eq!(round(30, u64::MAX, fine(), true), (Ok(()), 1));
        assert_eq!(round(30, 0, fine(), false), (Ok(()), 1));
        let (result, calls) = round(30, u64::MAX, vec![(1, Fake(4))], false);
        assert_eq!((result.is_err(), calls), (true, 4), "what was measured is kept");
    }
}
