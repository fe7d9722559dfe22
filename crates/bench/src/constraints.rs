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
        if *self == Self::default() {
            return measure();
        }
        // A group and a scheduler are undone at the end.
        let _ = sys::stop_signal::catch();
        let utilization = self.utilization.map(clamp).transpose().map_err(RunError::Unready)?;
        let limited = |error| RunError::Unready(format!("--memory: {error}"));
        let enclosed = self.memory_bytes.map(Enclosed::enter).transpose().map_err(limited)?;
        let scheduler = self.sched_ext.then(Scheduler::start).transpose().map_err(RunError::Unready)?;
        let measured = measure();
        let is_over = scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_in_force());
        drop(scheduler);
        let (memory, lost) = enclosed.map(Enclosed::leave).unzip();
        let killed = memory.as_ref().and_then(|memory| memory.killed).unwrap_or(0);
        let mut run = measured.map_err(|error| match error {
            RunError::Unready(why) if killed > 0 => RunError::Unready(format!(
                "{why}; for want of memory (--memory) the kernel killed {killed} of its processes"
            )),
            error => error,
        })?;
        let ended =
            is_over.then_some("the kernel ended the scheduler of sched_ext during the test: see its log");
        let lost = lost.flatten().or(ended);
        if let Some(why) = lost {
            (run.complete, run.incomplete_reason) = (false, run.incomplete_reason.or(Some(why.to_owned())));
        }
        run.constraints = Some(Constraints { memory, utilization, sched_ext: self.sched_ext });
        Ok(run)
    }
}

/// Clamps the utilization of this thread and of all that it starts; returns what the kernel says of it then.
fn clamp(range: [u32; 2]) -> Result<[u32; 2], String> {
    let [min, max] = range;
    sys::sched::clamp_utilization(range).and_then(|()| sys::sched::utilization()).map_err(|error| {
        let why = match sys::errno::number(&error) {
            Some(sys::errno::EOPNOTSUPP) => ": the kernel is built without CONFIG_UCLAMP_TASK",
            _ => "",
        };
        format!("clamping the utilization to {min} to {max}: {}{why}", sys::errno::describe(&error))
    })
}
