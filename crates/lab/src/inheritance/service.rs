//! Room: the service of the scenes, which says how the thread that serves a call is scheduled, and calling
//! it; the same in either flavour.
//! Not here: who calls it when (`scenes`).
//! Facts: the thread is looked at first of all in the served method; answers travel as one string.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use driver::AnyConnection;
use ipc::hwbinder::{self, HwBinder, HwParcel};
use ipc::{Binder, NodeOptions, Process, binder};
use record::Sched;
use serde::{Deserialize, Serialize};

use crate::plan::Dialect;
use crate::realtime;

pub(super) const AIDL: &str = "binderperf.IInheritance";
pub(super) const HIDL: &str = "binderperf.inheritance@1.0::IInheritance";

/// `string look(uint32 ms)`: how the serving thread is scheduled; it then sleeps for so long.
const LOOK: u32 = 1;
/// `string pass(IInheritance other)`: the same, followed by what the other says to `look(0)`.
const PASS: u32 = 2;
/// `oneway note()`: looks, too, and keeps it.
const NOTE: u32 = 3;
/// `string noted()`: what was kept since the last time.
const NOTED: u32 = 4;

/// One look at a thread that serves a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) tid: i32,
    pub(super) sched: Sched,
    /// When it began to serve, on the clock that all processes share.
    pub(super) from_ns: u64,
    /// When it had done.
    pub(super) to_ns: u64,
}

/// Looks at the calling thread, which then sleeps for so long.
fn look(ms: u32) -> Seen {
    let sched = realtime::own();
    let from_ns = sys::clock::monotonic_ns();
    std::thread::sleep(Duration::from_millis(ms.into()));
    let tid = sys::interrupt::ThreadId::current().number();
    Seen { tid, sched, from_ns, to_ns: sys::clock::monotonic_ns() }
}

/// The service.
#[derive(Default)]
pub(super) struct Watcher {
    kept: Mutex<Vec<Seen>>,
}

/// A call of the service, read from either flavour's parcel.
enum Asked {
    Look(u32),
    Pass(Callee),
    Note,
    Noted,
}

impl Watcher {
    fn kept(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, asked: Asked, own: Seen) -> Result<String, String> {
        let seen = match asked {
            Asked::Look(0) => vec![own],
            Asked::Look(ms) => vec![Seen { to_ns: look(ms).to_ns, ..own }],
            Asked::Pass(other) => [vec![own], other.look(0)?].concat(),
            Asked::Note => {
                self.kept().push(own);
                Vec::new()
            }
            Asked::Noted => std::mem::take(&mut *self.kept()),
        };
        serde_json::to_string(&seen).map_err(|error| error.to_string())
    }
}

impl binder::Object for Watcher {
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
            LOOK => Asked::Look(call.read_u32()?),
            PASS => Asked::Pass(Callee::Binder(call.read_binder()?)),
            NOTE => Asked::Note,
            NOTED => Asked::Noted,
            _ => return Err(binder::Status::UNKNOWN_TRANSACTION),
        };
        let answer = self.answer(asked, own);
        reply.write_str(&answer.map_err(|why| binder::Status::service_specific(1, why))?);
        Ok(())
    }
}

impl hwbinder::Object for Watcher {
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
            LOOK => Asked::Look(call.read_u32()?),
            PASS => Asked::Pass(Callee::Hwbinder(call.read_binder()?)),
            NOTE => Asked::Note,
            NOTED => Asked::Noted,
            _ => return Err(hwbinder::Status::UNKNOWN_TRANSACTION),
        };
        reply.write_str(&self.answer(asked, own).map_err(hwbinder::Status::illegal_argument)?);
        Ok(())
    }
}

/// The service as it is called, and as it is handed to others.
#[derive(Clone, Debug)]
pub(super) enum Callee {
    Binder(Binder),
    Hwbinder(HwBinder),
}

impl Callee {
    /// A service of this process's own.
    pub(super) fn publish(process: &Process<AnyConnection>, dialect: Dialect, options: NodeOptions) -> Self {
        let watcher = Arc::new(Watcher::default());
        match dialect {
            Dialect::Binder(_) => Self::Binder(process.publish_with(watcher, options)),
            Dialect::Hwbinder => Self::Hwbinder(process.publish_hidl_with(watcher, options)),
        }
    }

    fn call(&self, code: u32, number: Option<u32>, other: Option<&Callee>) -> Result<Vec<Seen>, String> {
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

    /// How it serves this thread, in a call that takes so long.
    pub(super) fn look(&self, ms: u32) -> Result<Vec<Seen>, String> {
        self.call(LOOK, Some(ms), None)
    }

    /// The same, and how it is served by another that it calls.
    pub(super) fn pass(&self, other: &Callee) -> Result<Vec<Seen>, String> {
        self.call(PASS, None, Some(other))
    }

    /// Has it look at how it serves a oneway call.
    pub(super) fn note(&self) -> Result<(), String> {
        let taken = match self {
            Self::Binder(binder) => binder.oneway(NOTE, binder.request(AIDL)),
            Self::Hwbinder(binder) => binder.oneway(NOTE, binder.request(HIDL)),
        };
        taken.map(drop).map_err(|error| error.to_string())
    }

    /// What came of that, since the last time.
    pub(super) fn noted(&self) -> Result<Vec<Seen>, String> {
        self.call(NOTED, None, None)
    }
}
