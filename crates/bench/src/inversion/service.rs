//! Service of the experiment, which reports its thread's scheduling and CPU time, in either flavour.
//! Not here: the processes (`role`), the number of calls. The server has one thread, the one that joins, so
//! it serves all calls of a setting.

use driver::Connection;
use ipc::hwbinder::{HwBinder, HwParcel, Incoming, Object, Status};
use ipc::{Binder, Proxy};
use sys::clock::{monotonic_ns, thread_cpu_ns};
use zerocopy::{FromBytes, transmute};

use crate::call_error::{CallError, refused};
use crate::endpoint::{BareService, Endpoint, call_bare};
use crate::plan::Dialect;
use crate::scheduling::pack;
use host::realtime;

/// The HIDL interface, with one method.
const INTERFACE: &str = "binderperf.inversion@1.0::IServed";
/// `how() generates (uint64_t sched, uint64_t cpuNs, uint64_t aroundNs)`
const HOW: u32 = 1;

/// A served call's report on the thread that served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// Scheduling of the thread, encoded by [`pack`].
    pub(crate) sched: u64,
    /// CPU time of the thread since its start, in ns.
    pub(crate) cpu_ns: u64,
    /// Time of what it did around its work, in ns.
    pub(crate) around_ns: u64,
}

/// Work of a service around its work in each call: `true` before it, `false` after it.
pub(crate) type Around = Box<dyn Fn(bool) + Send + Sync>;

/// The service, which computes for a fixed time in each call before it answers.
struct StatusService {
    work_ns: u64,
    around: Option<Around>,
}

impl StatusService {
    fn answer(&self) -> Served {
        let around = |before: bool| {
            self.around.as_ref().map_or(0, |around| {
                let start = monotonic_ns();
                around(before);
                monotonic_ns() - start
            })
        };
        let before_ns = around(true);
        if self.work_ns > 0 {
            let end = thread_cpu_ns().saturating_add(self.work_ns);
            while thread_cpu_ns() < end {
                std::hint::spin_loop();
            }
        }
        let around_ns = before_ns + around(false);
        Served { sched: pack(realtime::own()), cpu_ns: thread_cpu_ns(), around_ns }
    }
}

impl Object for StatusService {
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
        reply.write_u64(served.around_ns);
        Ok(())
    }
}

/// Registers the service under this name, with this computing time per call. It lives as long as the returned
/// value.
pub(crate) fn offer<C: Connection>(
    endpoint: &Endpoint<C>,
    name: &str,
    inherit_rt: bool,
    work_ns: u64,
) -> Result<Binder, CallError> {
    offer_around(endpoint, name, inherit_rt, (work_ns, None))
}

/// Like [`offer`], with what the service does around its work.
pub(crate) fn offer_around<C: Connection>(
    endpoint: &Endpoint<C>,
    name: &str,
    inherit_rt: bool,
    (work_ns, around): (u64, Option<Around>),
) -> Result<Binder, CallError> {
    let (service, options) = (StatusService { work_ns, around }, endpoint.node_options(inherit_rt));
    let service = match endpoint.dialect {
        Dialect::Binder(_) => {
            let answer = move || -> [u8; 24] {
                let Served { sched, cpu_ns, around_ns } = service.answer();
                transmute!([sched, cpu_ns, around_ns])
            };
            endpoint.publish_bare(BareService(answer), options)
        }
        Dialect::Hwbinder => endpoint.process.publish_hidl_with(service, options).as_binder().clone(),
    };
    endpoint.register(name, &service)?;
    Ok(service)
}

/// A found service.
pub(crate) enum Callee {
    /// Answers a bare transaction.
    Binder(Proxy),
    /// Implements the HIDL interface.
    Hwbinder(HwBinder),
}

impl Callee {
    /// Finds the service of this name; waits up to the time limit for it.
    pub(crate) fn find<C: Connection>(endpoint: &Endpoint<C>, name: &str) -> Result<Self, CallError> {
        let found = endpoint.find(INTERFACE, name)?;
        Ok(match endpoint.dialect {
            Dialect::Binder(_) => Self::Binder(found),
            Dialect::Hwbinder => Self::Hwbinder(HwBinder::from(Binder::Remote(found))),
        })
    }

    /// Makes one call.
    ///
    /// # Errors
    /// The call failed or its reply is malformed.
    pub(crate) fn call(&self) -> Result<Served, CallError> {
        match self {
            Self::Binder(proxy) => call_bare(proxy, HOW, &[], |bytes| {
                let [sched, cpu_ns, around_ns] = <[u64; 3]>::read_from_bytes(bytes).ok()?;
                Some(Served { sched, cpu_ns, around_ns })
            }),
            Self::Hwbinder(service) => {
                let request = service.request(INTERFACE);
                let reply = service.call(HOW, request).map_err(refused)?;
                let mut reader = reply.reader();
                let mut word = || reader.read_u64().map_err(refused);
                Ok(Served { sched: word()?, cpu_ns: word()?, around_ns: word()? })
            }
        }
    }
}
