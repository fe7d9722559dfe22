//! Service of the scenes, which reports the scheduling of the thread that serves a call, and its client side;
//! the same in either flavour.
//! Not here: who calls it when (`scenes`).
//! Facts: the served method reads the thread's scheduling first; answers are sent as one string.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backend::AnyConnection;
use ipc::hwbinder::{self, HwBinder, HwParcel};
use ipc::{Binder, NodeOptions, binder};
use record::Sched;
use serde::{Deserialize, Serialize};

use crate::endpoint::Endpoint;
use crate::plan::Dialect;
use host::realtime;

const AIDL: &str = "binderperf.IInheritance";
const HIDL: &str = "binderperf.inheritance@1.0::IInheritance";

/// `string look(uint32 ms)`: returns the serving thread's scheduling, after a sleep of `ms`.
const LOOK: u32 = 1;
/// `string pass(IInheritance other)`: the same, followed by the other service's answer to `look(0)`.
const PASS: u32 = 2;
/// `string passTwice(IInheritance other)`: the same with two calls of the other service.
const PASS_TWICE: u32 = 5;
/// `oneway note()`: stores the serving thread's scheduling.
const NOTE: u32 = 3;
/// `string noted()`: returns and clears what `note` stored.
const NOTED: u32 = 4;

/// Scheduling of a thread while it serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServedCall {
    pub(super) tid: i32,
    pub(super) sched: Sched,
    /// Start of serving, on the clock that all processes share.
    pub(super) from_ns: u64,
    /// End of serving.
    pub(super) to_ns: u64,
}

/// Reads the calling thread's scheduling, then sleeps for `ms`.
fn look(ms: u32) -> ServedCall {
    let sched = realtime::own();
    let from_ns = sys::clock::monotonic_ns();
    std::thread::sleep(Duration::from_millis(ms.into()));
    let tid = sys::interrupt::ThreadId::current().number();
    ServedCall { tid, sched, from_ns, to_ns: sys::clock::monotonic_ns() }
}

#[derive(Default)]
pub(super) struct InheritanceService {
    kept: Mutex<Vec<ServedCall>>,
}

/// A call to the service, read from either flavour's parcel.
enum Request {
    Look(u32),
    /// A service to call, and how often.
    Pass(Callee, usize),
    Note,
    Noted,
}

impl InheritanceService {
    fn kept(&self) -> MutexGuard<'_, Vec<ServedCall>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, asked: Request, own: ServedCall) -> Result<String, String> {
        let seen = match asked {
            Request::Look(0) => vec![own],
            Request::Look(ms) => vec![ServedCall { to_ns: look(ms).to_ns, ..own }],
            Request::Pass(other, times) => {
                let mut seen = vec![own];
                for _ in 0..times {
                    seen.extend(other.look(0)?);
                }
                seen
            }
            Request::Note => {
                self.kept().push(own);
                Vec::new()
            }
            Request::Noted => std::mem::take(&mut *self.kept()),
        };
        serde_json::to_string(&seen).map_err(|error| error.to_string())
    }
}

impl binder::Object for InheritanceService {
    fn descriptor(&self) -> &str {
        AIDL
    }

    fn on_transact(
        &self,
        call: &mut binder::Incoming<'_>,
        reply: &mut binder::Parcel,
    ) -> Result<(), binder::Status> {
        let own = look(0);
        let asked = match call.code() {
            LOOK => Request::Look(call.read_u32()?),
            PASS => Request::Pass(Callee::Binder(call.read_binder()?), 1),
            PASS_TWICE => Request::Pass(Callee::Binder(call.read_binder()?), 2),
            NOTE => Request::Note,
            NOTED => Request::Noted,
            _ => return Err(binder::Status::UNKNOWN_TRANSACTION),
        };
        let answer = self.answer(asked, own);
        reply.write_str(&answer.map_err(|why| binder::Status::service_specific(1, why))?);
        Ok(())
    }
}

impl hwbinder::Object for InheritanceService {
    fn interfaces(&self) -> &[&str] {
        &[HIDL]
    }

    fn on_transact<'t>(
        &self,
        call: &mut hwbinder::Incoming<'t>,
        reply: &mut HwParcel<'t>,
    ) -> Result<(), hwbinder::Status> {
        let own = look(0);
        let asked = match call.code() {
            LOOK => Request::Look(call.read_u32()?),
            PASS => Request::Pass(Callee::Hwbinder(call.read_binder()?), 1),
            PASS_TWICE => Request::Pass(Callee::Hwbinder(call.read_binder()?), 2),
            NOTE => Request::Note,
            NOTED => Request::Noted,
            _ => return Err(hwbinder::Status::UNKNOWN_TRANSACTION),
        };
        reply.write_str(&self.answer(asked, own).map_err(hwbinder::Status::illegal_argument)?);
        Ok(())
    }
}

/// The service as callers see it, and as they pass it on.
#[derive(Clone, Debug)]
pub(super) enum Callee {
    Binder(Binder),
    Hwbinder(HwBinder),
}

impl Callee {
    /// Publishes a service of this process.
    pub(super) fn publish(endpoint: &Endpoint<AnyConnection>, options: NodeOptions) -> Self {
        let (process, service) = (&endpoint.process, InheritanceService::default());
        match endpoint.dialect {
            Dialect::Binder(_) => Self::Binder(process.publish_with(service, options)),
            Dialect::Hwbinder => Self::Hwbinder(process.publish_hidl_with(service, options)),
        }
    }

    /// Finds a server's service by name.
    pub(super) fn find(endpoint: &Endpoint<AnyConnection>, name: &str) -> Result<Self, String> {
        let found = Binder::Remote(endpoint.find(HIDL, name).map_err(|error| error.to_string())?);
        Ok(match endpoint.dialect {
            Dialect::Binder(_) => Self::Binder(found),
            Dialect::Hwbinder => Self::Hwbinder(HwBinder::from(found)),
        })
    }

    pub(super) fn as_binder(&self) -> &Binder {
        match self {
            Self::Binder(binder) => binder,
            Self::Hwbinder(binder) => binder.as_binder(),
        }
    }

    fn call(
        &self,
        code: u32,
        number: Option<u32>,
        other: Option<&Callee>,
    ) -> Result<Vec<ServedCall>, String> {
        let answer = match self {
            Self::Binder(binder) => {
                let mut request = binder.request(AIDL);
                number.into_iter().for_each(|number| request.write_u32(number));
                if let Some(Self::Binder(other)) = other {
                    request.write_binder(other);
                }
                let reply = binder.call(code, request).map_err(|error| error.to_string())?;
                reply.reader().read_str().map_err(|error| error.to_string())?
            }
            Self::Hwbinder(binder) => {
                let mut request = binder.request(HIDL);
                number.into_iter().for_each(|number| request.write_u32(number));
                if let Some(Self::Hwbinder(other)) = other {
                    request.write_binder(other);
                }
                let reply = binder.call(code, request).map_err(|error| error.to_string())?;
                reply.reader().read_str().map_err(|error| error.to_string())?.to_owned()
            }
        };
        serde_json::from_str(&answer).map_err(|error| format!("an answer makes no sense: {error}"))
    }

    /// Returns how the service serves this thread, in a call of this duration.
    pub(super) fn look(&self, ms: u32) -> Result<Vec<ServedCall>, String> {
        self.call(LOOK, Some(ms), None)
    }

    /// Like [`Self::look`], followed by how another service serves its call.
    pub(super) fn pass(&self, other: &Callee) -> Result<Vec<ServedCall>, String> {
        self.call(PASS, None, Some(other))
    }

    /// Like [`Self::pass`], with two calls of the other service.
    pub(super) fn pass_twice(&self, other: &Callee) -> Result<Vec<ServedCall>, String> {
        self.call(PASS_TWICE, None, Some(other))
    }

    /// Makes a oneway call, whose scheduling the service stores.
    pub(super) fn note(&self) -> Result<(), String> {
        let taken = match self {
            Self::Binder(binder) => binder.oneway(NOTE, binder.request(AIDL)),
            Self::Hwbinder(binder) => binder.oneway(NOTE, binder.request(HIDL)),
        };
        taken.map(drop).map_err(|error| error.to_string())
    }

    /// Returns the scheduling stored by oneway calls since the last time.
    pub(super) fn noted(&self) -> Result<Vec<ServedCall>, String> {
        self.call(NOTED, None, None)
    }
}
