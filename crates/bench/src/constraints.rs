//! Constraints that a whole test is put under: little memory, clamped utilization, another scheduler.
//! Not here: load beside a test (`load`), where it runs (`placing`).
//!
//! - [`memory`]: a control group with little memory; [`scheduler`]: sched_ext.
//!
//! Facts: `sched_setattr(2)`: a thread's clamps pass on to threads and processes that it starts, and stay when its policy changes.

mod memory;
mod scheduler;

use record::{Constraints, Run};

use crate::run::RunError;
use memory::Enclosed;
use scheduler::Scheduler;

/// The constraints that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Memory of all processes of the test and of the kernel driver's buffers, in bytes.
    pub memory_bytes: Option<u64>,
    /// The least and the most utilization of its threads, in 1/1024 of the fastest CPU.
    pub utilization: Option<[u32; 2]>,
    /// Whether sched_ext schedules the ordinary threads of the machine.
    pub sched_ext: bool,
}

impl Wanted {
    /// Measures under these constraints, which the record then has.
    ///
    /// # Errors
    /// [`RunError::Unready`]: this machine cannot, or does not permit it; else as `measure`.
    pub fn held(&self, measure: impl FnOnce() -> Result<Run, RunError>) -> Result<Run, RunError> {
        if let Some(range) = self.utilization {
            clamp(range).map_err(RunError::Unready)?;
        }
        let enclosed = self.memory_bytes.map(Enclosed::enter).transpose().map_err(RunError::Unready)?;
        let scheduler = self.sched_ext.then(Scheduler::start).transpose().map_err(RunError::Unready)?;
        let mut run = measure()?;
        if scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_in_force()) {
            let why = "the kernel ended the scheduler of sched_ext during the test: see its log".to_owned();
            (run.complete, run.incomplete_reason) = (false, run.incomplete_reason.or(Some(why)));
        }
        let memory = enclosed.map(Enclosed::leave);
        let constraints = Constraints { memory, utilization: self.utilization, sched_ext: self.sched_ext };
        run.constraints = (constraints != Constraints::default()).then_some(constraints);
        Ok(run)
    }
}

fn clamp(range: [u32; 2]) -> Result<(), String> {
    let [min, max] = range;
    sys::sched::clamp_utilization(range).map_err(|error| {
        let why = match sys::errno::number(&error) {
            Some(sys::errno::EOPNOTSUPP) => ": the kernel is built without CONFIG_UCLAMP_TASK",
            _ => "",
        };
        format!("clamping the utilization to {min} to {max}: {}{why}", sys::errno::describe(&error))
    })
}
