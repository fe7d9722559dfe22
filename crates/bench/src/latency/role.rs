//! One end of a pair of the latency test.
//! Not here: starting it (`pairs`), the calls (`caller`), the service (`service`).

use std::path::PathBuf;
use std::sync::Arc;

use backend::{AnyContext, on_context};
use procgroup::{READY, Role, SERVING, SlotAddress, WorkerSlot};
use record::Class;
use serde::{Deserialize, Serialize};
use sys::clock::monotonic_ns;

use super::caller::{CallOrder, CallSettings, Caller, Series};
use super::disturbance::{self, Timers};
use super::endpoint::{BareCallee, Callee, HidlCallee, InProcess, offer};
use super::fault::Injected;
use super::flight::Slowest;
use super::notes::{NotedThread, ThreadFacts, forget_slow, note_miss, note_slow};
use super::pace::Pace;
use super::ping::PingCallee;
use super::sample::{Sample, Timed};
use super::service::Service;
use crate::call_error::CallError;
use crate::endpoint::Endpoint;
use crate::plan::{Dialect, Flavour};
use crate::scheduling;
use driver::Connection;
use embedded::trace_events::Amount;
use ftrace::marker::Marker;
use ftrace::switch::Switch;

/// Step in which all calls are made.
pub(super) const DONE: u32 = READY + 1;

/// Time limit in us for a real-time thread to run without sleeping; the kernel ends its process.
pub(super) const LONGEST_RUN_US: u64 = 1_000_000;

/// End of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Side {
    Server,
    Client,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LatencyRole {
    pub(super) slot: SlotAddress,
    pub(super) side: Side,
    pub(super) flavour: Flavour,
    /// Address of the context; empty without IPC.
    pub(super) address: String,
    /// Android release of the service manager.
    pub(super) release: String,
    /// Number of the server's worker; `None` without IPC.
    pub(super) server: Option<u32>,
    /// Capacity for samples.
    pub(super) samples: usize,
    pub(super) pair: u32,
    /// Whether the calls are pings of another program's object.
    pub(super) pinged: bool,
    /// Name of the called service; empty for the context's manager.
    pub(super) name: String,
    pub(super) payload: u32,
    pub(super) iterations: u64,
    /// Deadline in clock units.
    pub(super) deadline: u64,
    pub(super) rate_hz: Option<f64>,
    pub(super) inherit_rt: bool,
    /// Priority of the real-time caller, if any.
    pub(super) realtime: Option<u8>,
    /// Folder of the tracing switch that a miss turns off.
    pub(super) tracing: Option<PathBuf>,
    /// Folder of the flight recorder.
    pub(super) flight: Option<PathBuf>,
    /// Memory of the flight recorder for the embedded driver's events of calls.
    pub(super) records: Option<PathBuf>,
    pub(super) faults: Vec<Injected>,
    /// CPUs that it may run on; `None`: all.
    pub(super) cpus: Option<Vec<u32>>,
    /// Seed of all random choices.
    pub(super) seed: u64,
}

impl LatencyRole {
    /// Duration of the other client's calls that occupy the server's looper, if a fault asks for them.
    fn busy_us(&self) -> Option<u64> {
        self.faults.iter().find_map(|fault| match *fault {
            Injected::BusyLoopers { us } => Some(us),
            _ => None,
        })
    }

    /// Number of the server's threads: one, as in Android's tests; two with a rate, when both callers may
    /// call at once.
    fn loopers(&self) -> u32 {
        if self.rate_hz.is_some() && self.busy_us().is_none() { 2 } else { 1 }
    }

    /// Name of the service for the calls of [`Self::busy_us`].
    fn others_name(&self) -> String {
        format!("{}.busy", self.name)
    }

    fn timers(&self) -> Result<Timers, String> {
        let wanted = self.faults.iter().find_map(|fault| match *fault {
            Injected::Timers { count, late } => Some((count, late)),
            _ => None,
        });
        let (count, late) = wanted.unwrap_or_default();
        Timers::new(count, late).map_err(|error| format!("making timers: {}", sys::errno::describe(&error)))
    }

    /// Records the server as the next callee, for the parent.
    fn note_callee(&self, slot: &WorkerSlot) {
        if let Some(server) = self.server {
            slot.call(server);
        }
    }

    fn has(&self, fault: Injected) -> bool {
        self.faults.contains(&fault)
    }
}

impl Role for LatencyRole {
    const NAME: &'static str = "latency";

    fn title(&self) -> String {
        let side = match self.side {
            Side::Server => "server",
            Side::Client => "client",
        };
        format!("{side} {}", self.pair)
    }

    fn run(self) -> Result<(), String> {
        self.slot.work(|slot| prepare(&self).and_then(|()| act(&self, slot)))
    }
}

fn prepare(role: &LatencyRole) -> Result<(), String> {
    scheduling::prepare((LONGEST_RUN_US, 2 * LONGEST_RUN_US), role.cpus.as_deref())?;
    sys::clock::set_timer_slack_ns(1)
        .map_err(|error| format!("asking for exact timers: {}", sys::errno::describe(&error)))
}

fn act(role: &LatencyRole, slot: &mut WorkerSlot) -> Result<(), String> {
    let Some(dialect) = role.flavour.dialect(role.release.parse()?) else {
        ThreadFacts::own().note(slot, NotedThread::Main);
        slot.finish(SERVING);
        slot.wait_for(READY);
        let service = Service::with(&role.faults, role.seed);
        return call_all(InProcess(Arc::new(service)), role, slot);
    };
    let context = match (AnyContext::parse(&role.address), &role.flight) {
        (AnyContext::Embedded(context), Some(folder)) => {
            let marked = context.with_marks(folder, Amount::CallsOnly);
            AnyContext::Embedded(match &role.records {
                Some(path) => marked.with_records(path),
                None => marked,
            })
        }
        (context, _) => context,
    };
    on_context!(&context, |context| {
        let endpoint = Endpoint::open(context, dialect, 0).map_err(|error| error.to_string())?;
        ThreadFacts::own().note(slot, NotedThread::Main);
        match (role.side, dialect) {
            (Side::Server, _) => serve(&endpoint, role, slot).map_err(|error| error.to_string()),
            (Side::Client, _) if role.pinged => call(|name| PingCallee::find(&endpoint, name), role, slot),
            (Side::Client, Dialect::Binder(_)) => {
                call(|name| BareCallee::find(&endpoint, name, role.payload as usize), role, slot)
            }
            (Side::Client, Dialect::Hwbinder) => {
                call(|name| HidlCallee::find(&endpoint, name, role.payload as usize), role, slot)
            }
        }
    })
}

/// Serves until the process is killed.
fn serve<C: Connection>(
    endpoint: &Endpoint<C>,
    role: &LatencyRole,
    slot: &mut WorkerSlot,
) -> Result<(), CallError> {
    (0..role.loopers()).try_for_each(|_| endpoint.start_thread())?;
    let service = Service::with(&role.faults, role.seed);
    let _service = offer(endpoint, &role.name, service, role.inherit_rt)?;
    let _other = match role.busy_us() {
        Some(us) => {
            let other = Service::with(&[Injected::StallServer { us }], role.seed);
            Some(offer(endpoint, &role.others_name(), other, false)?)
        }
        None => None,
    };
    for step in [SERVING, READY, DONE] {
        slot.finish(step);
    }
    loop {
        std::thread::park();
    }
}

/// Finds the services, and makes all calls.
fn call<C: Callee>(
    find: impl Fn(&str) -> Result<C, CallError>,
    role: &LatencyRole,
    slot: &mut WorkerSlot,
) -> Result<(), String> {
    slot.finish(SERVING);
    slot.wait_for(READY);
    let callee = find(&role.name).map_err(|error| error.to_string())?;
    if let Some(us) = role.busy_us() {
        let other = find(&role.others_name()).map_err(|error| error.to_string())?;
        disturbance::occupy(other, us)?;
    }
    call_all(callee, role, slot)
}

fn call_all<C: Callee>(callee: C, role: &LatencyRole, slot: &mut WorkerSlot) -> Result<(), String> {
    let switch = role.tracing.as_deref().map(Switch::open).transpose();
    let switch = switch.map_err(|trouble| trouble.to_string())?;
    let stamp = Marker::into(role.tracing.as_deref().or(role.flight.as_deref()));
    let timers = Arc::new(role.timers()?);
    let terms = CallSettings { deadline: role.deadline, switch, stamp, pair: role.pair, timers };
    let spins = role.has(Injected::SpinCaller);
    let (caller, seen) = Caller::start(callee, terms, role.realtime, spins)?;
    for (who, seen) in seen {
        seen.note(slot, who);
    }
    slot.touch(role.samples);
    slot.finish(READY);
    slot.wait_for(DONE);
    match role.rate_hz {
        Some(rate) => call_at_rate(&caller, role, rate, slot)?,
        None => call_in_turns(&caller, role, slot)?,
    }
    slot.finish(DONE);
    Ok(())
}

/// Makes one call after the other.
fn call_in_turns<C: Callee>(
    caller: &Caller<C>,
    role: &LatencyRole,
    slot: &mut WorkerSlot,
) -> Result<(), String> {
    let mut slowest = Slowest::default();
    for number in 0..role.iterations {
        for class in caller.classes() {
            role.note_callee(slot);
            let timed = caller.call(*class, CallOrder { number, intended: None })?;
            keep(slot, number, &timed);
            if role.flight.is_some() {
                record_slow(slot, number, &timed, role.deadline, &mut slowest);
            }
            if slot.is_stopped() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Each class follows its own schedule, like two clients: neither waits for the other's calls.
fn call_at_rate<C: Callee>(
    caller: &Caller<C>,
    role: &LatencyRole,
    rate_hz: f64,
    slot: &mut WorkerSlot,
) -> Result<(), String> {
    let (begin, classes) = (monotonic_ns(), caller.classes().len());
    let mut urgent = caller.series(role.iterations, Pace::new(begin, rate_hz, 0, classes))?;
    let mut pace = Pace::new(begin, rate_hz, classes - 1, classes);
    for number in 0..role.iterations {
        role.note_callee(slot);
        let own = caller.call(Class::Other, CallOrder { number, intended: Some(pace.next()) });
        // The other thread's calls first: this call may break the pair.
        keep_urgent(&mut urgent, false, slot)?;
        keep(slot, number, &own?);
        if slot.is_stopped() {
            return Ok(());
        }
    }
    keep_urgent(&mut urgent, true, slot)
}

/// Stores the calls that the real-time thread has made on its own; all of the series if `all`.
fn keep_urgent(series: &mut Option<Series>, all: bool, slot: &mut WorkerSlot) -> Result<(), String> {
    while let Some(series) = series
        && !slot.is_stopped()
        && let Some((number, timed)) = series.next(all)?
    {
        keep(slot, number, &timed);
    }
    Ok(())
}

/// Has a slow call recorded, and makes way for those of other pairs.
fn record_slow(slot: &mut WorkerSlot, number: u64, timed: &Timed, deadline: u64, slowest: &mut Slowest) {
    let Sample { class, took, .. } = timed.sample;
    if slowest.takes(class, took, deadline) {
        note_slow(slot, class, number, took);
        slot.pause_all();
        forget_slow(slot);
    } else {
        slot.rest_if_paused();
    }
}

/// Stores a call, and stops all workers if it stopped tracing.
fn keep(slot: &mut WorkerSlot, number: u64, timed: &Timed) {
    if timed.stopped_tracing {
        slot.stop_all();
        note_miss(slot, timed.sample.class, number, timed);
    }
    slot.keep_words(timed.start, timed.end, &timed.sample.words());
}
