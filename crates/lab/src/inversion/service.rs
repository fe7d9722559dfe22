//! Room: what is called: a service that answers how its thread runs, in either flavour.
//! Not here: who is which process (`role`), how often it is called.
//! The server has one thread, the one that joins, so the calls of a setting are all served by it.

use std::fmt;
use std::time::Duration;

use abi::codes::tf;
use abi::{Payload, TransactionFlags};
use driver::{Connection, Context};
use ipc::binder::manager::Services;
use ipc::hwbinder::manager as hidl;
use ipc::hwbinder::{HwBinder, HwParcel, Incoming, Object, Status};
use ipc::serve::{Serve, Transaction};
use ipc::{Binder, Outcome, Process, ProcessOptions, Proxy, Release};
use record::Sched;
use sys::clock::thread_cpu_ns;

use super::ask::Flavour;
use crate::measure::CallError;
use crate::realtime;

/// The HIDL interface, with one method.
const INTERFACE: &str = "binderperf.inversion@1.0::IServed";
/// `how() generates (uint64_t sched, uint64_t cpuNs)`
const HOW: u32 = 1;
/// How long a service manager that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a service is waited for.
const ABSENCE: Duration = Duration::from_secs(5);

/// What a served call tells of the thread that served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// How it is scheduled, as [`pack`] writes it.
    pub(super) sched: u64,
    /// CPU time that it has used since it began.
    pub(super) cpu_ns: u64,
}

impl Served {
    fn here() -> Self {
        Self { sched: pack(realtime::own()), cpu_ns: thread_cpu_ns() }
    }

    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.sched.to_le_bytes());
        bytes[8..].copy_from_slice(&self.cpu_ns.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let ([sched, cpu_ns], []) = bytes.as_chunks() else { return None };
        Some(Self { sched: u64::from_le_bytes(*sched), cpu_ns: u64::from_le_bytes(*cpu_ns) })
    }
}

/// How a thread is scheduled, as one word.
pub(super) fn pack(sched: Sched) -> u64 {
    u64::from(sched.policy) << 32 | u64::from(sched.priority as u8) << 8 | u64::from(sched.nice as i8 as u8)
}

/// What [`pack`] wrote.
pub(super) fn unpack(word: u64) -> Sched {
    let [nice, priority, ..] = word.to_le_bytes();
    Sched { policy: (word >> 32) as u32, priority: priority.into(), nice: i32::from(nice as i8) }
}

/// The service, which computes for so long each time before it answers.
struct How {
    work_ns: u64,
}

impl How {
    fn answer(&self) -> Served {
        if self.work_ns > 0 {
            let end = thread_cpu_ns().saturating_add(self.work_ns);
            while thread_cpu_ns() < end {
                std::hint::spin_loop();
            }
        }
        Served::here()
    }
}

impl Serve for How {
    fn serve(&self, call: Transaction<'_>) {
        let flags = call.answer_flags();
        // A reply that cannot be delivered is reported to the caller by the driver.
        let _ = call.reply(flags, Payload { data: &self.answer().bytes(), ..Payload::default() });
    }
}

impl Object for How {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        if call.code() != HOW {
            return Err(Status::UNKNOWN_TRANSACTION);
        }
        let served = self.answer();
        reply.write_u64(served.sched);
        reply.write_u64(served.cpu_ns);
        Ok(())
    }
}

fn refused<E: fmt::Display>(doing: &str) -> impl Fn(E) -> CallError {
    move |error| CallError::Refused(format!("{doing}: {error}"))
}

const CALLING: &str = "calling the service manager";

/// A process of the experiment.
pub(super) struct Place<C: Connection> {
    process: Process<C>,
    flavour: Flavour,
}

impl<C: Connection> Place<C> {
    /// Opens the context. No thread is started, and the driver may ask for none.
    pub(super) fn enter<X: Context<Connection = C>>(
        context: &X,
        flavour: Flavour,
        release: Release,
    ) -> Result<Self, CallError> {
        let options = match flavour {
            Flavour::Binder => ProcessOptions { max_threads: 0, release, ..ProcessOptions::default() },
            Flavour::Hwbinder => ProcessOptions::hwbinder(),
        };
        let process =
            Process::open(context, options).map_err(|error| CallError::Refused(error.to_string()))?;
        Ok(Self { process, flavour })
    }

    /// Registers the service under this name, which computes for so long in each call. It lives as long as
    /// what this returns.
    pub(super) fn offer(&self, name: &str, inherit_rt: bool, work_ns: u64) -> Result<Binder, CallError> {
        let (process, options) = (&self.process, self.flavour.options(inherit_rt));
        let registering = format!("registering {name}");
        match self.flavour {
            Flavour::Binder => {
                let services = Services::wait(process, PATIENCE).map_err(refused(CALLING))?;
                let service = Binder::Local(process.publish_node(Box::new(How { work_ns }), options));
                services.add(name, &service).map_err(refused(&registering))?;
                Ok(service)
            }
            Flavour::Hwbinder => {
                let services = hidl::Services::wait(process, PATIENCE).map_err(refused(CALLING))?;
                let service = process.publish_hidl_with(How { work_ns }, options);
                services.add(name, &service).map_err(refused(&registering))?;
                Ok(service.as_binder().clone())
            }
        }
    }

    /// Serves on the calling thread until the process is ended.
    pub(super) fn serve(&self) -> Result<(), CallError> {
        self.process.join_thread_pool().map_err(|error| CallError::Refused(error.to_string()))
    }

    /// Finds the service of this name; waits some seconds for it.
    pub(super) fn find(&self, name: &str) -> Result<Callee, CallError> {
        let process = &self.process;
        let looking = format!("looking up {name}");
        match self.flavour {
            Flavour::Binder => {
                let services = Services::wait(process, PATIENCE).map_err(refused(CALLING))?;
                match services.get(name).map_err(refused(&looking))? {
                    Binder::Remote(proxy) => Ok(Callee::Binder(proxy)),
                    Binder::Local(_) => Err(refused(&looking)("it is this very process")),
                }
            }
            Flavour::Hwbinder => {
                let services = hidl::Services::wait(process, PATIENCE).map_err(refused(CALLING))?;
                let found = services.wait_for(INTERFACE, name, ABSENCE);
                Ok(Callee::Hwbinder(found.map_err(refused(&looking))?))
            }
        }
    }
}

/// A service that was found.
pub(super) enum Callee {
    /// Answers a bare transaction.
    Binder(Proxy),
    /// Has the interface.
    Hwbinder(HwBinder),
}

impl Callee {
    /// Calls it once.
    ///
    /// # Errors
    /// The call did not come back as it should.
    #[inline]
    pub(super) fn call(&self) -> Result<Served, CallError> {
        let refused = |error: &dyn fmt::Display| CallError::Refused(error.to_string());
        match self {
            Self::Binder(proxy) => {
                let outcome = proxy.transact_payload(HOW, TransactionFlags::CALL, Payload::default());
                match outcome.map_err(|error| refused(&error))? {
                    Outcome::Replied { flags, received } if flags.0 & tf::STATUS_CODE == 0 => {
                        Served::of(received.data()).ok_or_else(|| refused(&"the answer has another length"))
                    }
                    Outcome::Replied { .. } => Err(refused(&"the service answered an error")),
                    Outcome::Taken(_) => Err(refused(&"the call was taken and not answered")),
                }
            }
            Self::Hwbinder(service) => {
                let request = service.request(INTERFACE);
                let reply = service.call(HOW, request).map_err(|error| refused(&error))?;
                let mut reader = reply.reader();
                let sched = reader.read_u64().map_err(|error| refused(&error))?;
                let cpu_ns = reader.read_u64().map_err(|error| refused(&error))?;
                Ok(Served { sched, cpu_ns })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_thread_runs_survives_its_word() {
        for sched in [
            Sched::other(0),
            Sched::other(-20),
            Sched::other(19),
            Sched::fifo(99),
            Sched { policy: 6, priority: 0, nice: -1 },
        ] {
            assert_eq!(unpack(pack(sched)), sched);
            let served = Served { sched: pack(sched), cpu_ns: u64::MAX - 7 };
            assert_eq!(Served::of(&served.bytes()), Some(served));
        }
        assert_eq!(Served::of(&[0; 15]), None);
        assert_eq!(Served::of(&[0; 24]), None);
    }
}
