//! Scheduling of worker processes: what one with real-time threads sets first, and a thread's scheduling in a
//! word, as services report it and samples store it.
//! Not here: reading it (`host::realtime`).

use host::realtime;
use record::Sched;
use sys::sched::{self, Policy};

/// Prepares a process for real-time threads. `longest_run_us`: CPU time without a sleep after which the kernel
/// ends the process (soft and hard limit; the signal of the soft one tells the cause). `cpus`: all that it may
/// run on; `None` for those of its parent.
pub(crate) fn prepare(longest_run_us: (u64, u64), cpus: Option<&[u32]>) -> Result<(), String> {
    // Threads that are not real-time are SCHED_OTHER, whatever policy this program was started with. The kernel
    // may refuse the change from SCHED_IDLE; the record holds the actual scheduling of each thread.
    let _ = sched::set_policy(0, Policy::Other);
    let (soft, hard) = longest_run_us;
    sys::limits::set_realtime_us(soft, hard).map_err(|error| {
        let error = sys::errno::describe(&error);
        format!("limiting its real-time CPU time (RLIMIT_RTTIME): {error}")
    })?;
    let Some(cpus) = cpus else { return Ok(()) };
    sched::set_affinity(cpus).map_err(|error| format!("choosing its CPUs: {}", sys::errno::describe(&error)))
}

/// Tries a real-time policy in a thread of this process; returns the thread's actual scheduling.
///
/// # Errors
/// Why the machine does not permit it.
pub(crate) fn try_fifo(priority: u8) -> Result<Sched, String> {
    let thread = sys::title::thread("rt trial", move || realtime::become_fifo(priority));
    let thread = thread.map_err(|error| format!("starting a thread: {}", sys::errno::describe(&error)))?;
    match thread.join() {
        Ok(Ok(sched)) => Ok(sched),
        Ok(Err(problem)) => Err(problem.to_string()),
        Err(_) => Err("the thread that tried broke".to_owned()),
    }
}

/// Encodes scheduling in 24 bits.
pub(crate) fn pack(sched: Sched) -> u64 {
    let nice = u64::from((sched.nice as i8).cast_unsigned());
    u64::from(sched.policy & 0xff) << 16 | u64::from(sched.priority & 0xff) << 8 | nice
}

/// Decodes the lowest 24 bits.
pub(crate) fn unpack(word: u64) -> Sched {
    let byte = |shift: u32| (word >> shift) as u8;
    Sched { policy: byte(16).into(), priority: byte(8).into(), nice: byte(0).cast_signed().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduling_fits_its_bits() {
        for (policy, priority) in [(0, 0), (1, 99), (2, 1), (3, 0), (5, 0), (6, 0), (42, 0)] {
            for nice in [-20, 0, 19] {
                let whole = Sched { policy, priority, nice };
                assert_eq!(unpack(pack(whole)), whole);
            }
        }
    }
}
