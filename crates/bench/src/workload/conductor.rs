//! The measuring process of a load: the steps between two clock readings, and those before and behind.
//! Not here: the steps that other threads make, too (`actor`); the loop that measures (`crate::measure`).

use std::sync::Arc;

use abi::layout::FreezeInfo;
use driver::{Connection, Context};
use sys::clock::thread_cpu_ns;
use workload::description::Step;

use super::actor::{self, Own};
use super::board::Counter;
use super::group::Group;
use super::place::{Identity, Place};
use super::program::{Act, Program};
use super::service;
use crate::call_error::{CallError, refused};
use crate::measure::RoundTrip;
use crate::plan::Dialect;

/// Longest wait of the driver for calls of a process that is to be frozen, in ms. It is asked again then.
const FREEZE_MS: u32 = 100;

/// The measuring process.
pub(crate) struct Conductor<X: Context> {
    context: X,
    dialect: Dialect,
    group: Group,
    place: Arc<Place<X::Connection>>,
    own: Own,
    /// The place before [`Step::Open`].
    opened: Option<(Arc<Place<X::Connection>>, Own)>,
    /// Values of the counters that the last waits reached, by process.
    reached: Vec<[u32; 3]>,
    /// Whether a sample was taken whose following steps are to be made.
    dirty: bool,
    /// Why the steps before a sample failed.
    failed: Option<CallError>,
    untimed_cpu_ns: u64,
    most: u64,
}

fn slot(counter: Counter) -> usize {
    counter as usize / 2
}

impl<X: Context + Clone> Conductor<X> {
    /// Begins a load whose processes serve, and makes the steps that come once. At most `most` samples are worth their time.
    ///
    /// # Errors
    /// The reason, for the user.
    pub(crate) fn begin(context: &X, dialect: Dialect, group: Group, most: u64) -> Result<Self, String> {
        let place = Self::open_place(context, dialect, &group).map_err(|error| error.to_string())?;
        if group.program.measuring < group.program.processes.len() {
            // First, as others look it up.
            service::publish(&place).map_err(|error| error.to_string())?;
        }
        group.find(|| place.find())?;
        group.run();
        let own = Own::new(&*place, group.program.largest, true);
        let reached = vec![[0; 3]; group.program.processes.len()];
        let mut conductor = Self {
            context: context.clone(),
            dialect,
            group,
            place,
            own,
            opened: None,
            reached,
            dirty: false,
            failed: None,
            untimed_cpu_ns: 0,
            most,
        };
        let program = Arc::clone(&conductor.group.program);
        conductor.perform(&program.measured.once).map_err(|error| conductor.explained(error).to_string())?;
        Ok(conductor)
    }

    fn open_place(
        context: &X,
        dialect: Dialect,
        group: &Group,
    ) -> Result<Arc<Place<X::Connection>>, CallError> {
        let (program, board, names) = (group.program.clone(), group.board.clone(), group.names.clone());
        let process = program.measuring;
        let pool = program.processes.get(process).map_or(0, |process| process.pool);
        let identity = Identity { program, board, names, process, copy: 0, fault: None };
        Place::open(context, dialect, identity, pool, false)
    }

    fn perform(&mut self, acts: &[Act]) -> Result<(), CallError> {
        acts.iter().try_for_each(|act| match act {
            Act::Call(_) => actor::perform(&self.place, &mut self.own, std::slice::from_ref(act)),
            Act::Other(step) => self.step(step),
        })
    }

    fn step(&mut self, step: &Step) -> Result<(), CallError> {
        match step {
            Step::Open => self.open()?,
            Step::Close => {
                if let Some((place, own)) = self.opened.take() {
                    (self.place, self.own) = (place, own);
                }
            }
            Step::Release(process) => self.group.board.release(*process),
            Step::Finished(process) => {
                let threads = self.group.program.released(*process);
                self.await_more(*process, Counter::Finished, threads)?;
            }
            Step::Served { process, calls } => self.await_more(*process, Counter::Served, *calls)?,
            Step::Notified { process, notices } => self.await_more(*process, Counter::Notified, *notices)?,
            Step::Kill(process) => self.group.kill(*process),
            Step::Start(process) => {
                self.group.start_again(*process).map_err(refused)?;
                if self.group.program.called_by(self.group.program.measuring).contains(process) {
                    self.own.proxies = self.place.look_up_all()?;
                }
            }
            Step::Freeze(process) => self.freeze(*process, true)?,
            Step::Thaw(process) => self.freeze(*process, false)?,
            Step::Stop(process) => self.group.pause(*process, true),
            Step::Continue(process) => self.group.pause(*process, false),
            Step::Reclaim => reclaim()?,
            _ => actor::step_of_thread(&self.place, &mut self.own, step)?,
        }
        Ok(())
    }

    /// Waits for this many more of what is counted than at the last such wait.
    fn await_more(&mut self, process: usize, counter: Counter, more: u32) -> Result<(), CallError> {
        let reached = &mut self.reached[process][slot(counter)];
        *reached = reached.wrapping_add(more);
        self.group.board.await_count(process, counter, *reached)
    }

    fn open(&mut self) -> Result<(), CallError> {
        let place = Self::open_place(&self.context, self.dialect, &self.group)?;
        place.find()?;
        let own = Own::new(&*place, self.group.program.largest, true);
        let before = (std::mem::replace(&mut self.place, place), std::mem::replace(&mut self.own, own));
        self.opened.get_or_insert(before);
        Ok(())
    }

    fn freeze(&self, process: usize, on: bool) -> Result<(), CallError> {
        for pid in self.group.pids(process) {
            let info = FreezeInfo { pid, enable: on.into(), timeout_ms: FREEZE_MS };
            loop {
                match self.place.endpoint.process.connection().freeze(info) {
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && !self.is_ending() => {}
                    made => break made.map_err(CallError::os("freezing a process"))?,
                }
            }
        }
        Ok(())
    }

    fn is_ending(&self) -> bool {
        self.group.board.is_broken() || sys::stop_signal::received().is_some()
    }

    /// Names the process that ended, if one did.
    fn explained(&self, error: CallError) -> CallError {
        if sys::stop_signal::received().is_some() {
            return error;
        }
        match self.group.reason_soon() {
            Some(reason) => refused(reason),
            None => error,
        }
    }

    fn prepare(&mut self, program: &Program) -> Result<(), CallError> {
        if std::mem::replace(&mut self.dirty, true) {
            self.perform(&program.measured.after)?;
        }
        self.perform(&program.measured.before)?;
        self.own.prepare(&*self.place, &program.measured.measure)
    }
}

impl<X: Context + Clone> RoundTrip for Conductor<X> {
    fn stamp(&mut self, _sequence: u32) {
        let (program, start) = (Arc::clone(&self.group.program), thread_cpu_ns());
        if self.failed.is_none() {
            self.failed = self.prepare(&program).err();
        }
        self.untimed_cpu_ns += thread_cpu_ns() - start;
    }

    fn call(&mut self) -> Result<(), CallError> {
        let program = Arc::clone(&self.group.program);
        let made = match self.failed.take() {
            None => self.perform(&program.measured.measure),
            Some(error) => Err(error),
        };
        made.map_err(|error| self.explained(error))
    }

    fn check(&self) -> Result<(), CallError> {
        match self.group.board.disorder() {
            0 => Ok(()),
            calls => Err(refused(format_args!(
                "{calls} oneway calls came before others that their thread sent first"
            ))),
        }
    }

    fn untimed_cpu_ns(&self) -> u64 {
        self.untimed_cpu_ns
    }

    fn most_samples(&self) -> u64 {
        self.most
    }
}

impl<X: Context> Drop for Conductor<X> {
    fn drop(&mut self) {
        // Its pool would keep the context open for the rest of the run. A driver that fails keeps it anyway.
        let _ = self.place.endpoint.process.shutdown();
    }
}

/// Has the kernel shrink its caches, among them the driver's unused pages.
fn reclaim() -> Result<(), CallError> {
    /// Slab caches and what is shrunk with them (`drop_caches` of `sysctl/vm`).
    const SHRINKERS: &str = "2";
    std::fs::write("/proc/sys/vm/drop_caches", SHRINKERS).map_err(CallError::os("writing to drop_caches"))
}
