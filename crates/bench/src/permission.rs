//! Tries what the tests need: contexts and their managers, registering a service, a binderfs, tracing.
//! Not here: what follows from it (`doctor::allows`), `SCHED_FIFO` (`doctor::measure`).
//! A manager that does not answer is waited for a limited time, in a thread that is then left behind.

use std::sync::mpsc::channel;
use std::time::Duration;

use backend::locate::{self, Device, Driver, Wanted};
use backend::{AnyContext, on_context};
use doctor::{Attempt, ContextTried, Tried};
use driver::{Context, OpenOptions};
use ftrace::instances::Instance;
use ftrace::record::perfetto;
use ftrace::tracefs::Tracefs;
use host::klog;
use ipc::Release;

use crate::endpoint::{Endpoint, is_managed};
use crate::latency::offer_idle;
use crate::plan::Dialect;

/// Contexts of Android.
const NAMES: [&str; 3] = ["binder", "hwbinder", "vndbinder"];
/// Time limit of one attempt.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time limit to remove a trace instance.
const LET_GO: Duration = Duration::from_secs(1);
/// Most denials that are kept.
const MOST_DENIALS: usize = 20;

/// Tries everything, and undoes it.
#[must_use]
pub fn try_all() -> Tried {
    let log = klog::Watch::begin().ok();
    let tried = Tried {
        uid: Some(sys::identity::effective_uid()),
        contexts: NAMES.into_iter().filter_map(context).collect(),
        private: Some(attempt(|| private_context().map(drop))),
        tracefs: Some(attempt(record_by_tracefs)),
        perfetto: Some(attempt(perfetto::usable)),
        denials: None,
    };
    let denied = |text: &String| text.contains("avc:") && text.contains("denied");
    let texts = log.and_then(|log| log.texts().ok());
    Tried {
        denials: texts.map(|texts| texts.into_iter().filter(denied).take(MOST_DENIALS).collect()),
        ..tried
    }
}

/// Makes an attempt in a thread of its own, and gives up after [`PATIENCE`].
fn within<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    let (sender, receiver) = channel();
    let started = sys::title::thread("attempt", move || {
        // Nobody listens any more after the time limit.
        let _ = sender.send(work());
    });
    started.map_err(|error| sys::errno::describe(&error))?;
    sys::patience::receive(&receiver, PATIENCE)
        .unwrap_or_else(|_| Err(format!("no answer in {} s", PATIENCE.as_secs())))
}

fn attempt(work: impl FnOnce() -> Result<(), String> + Send + 'static) -> Attempt {
    Attempt { refused: within(work).err() }
}

fn wanted(device: Device) -> Wanted {
    Wanted { driver: Driver::Kernel, device, ..Wanted::default() }
}

/// Opens the context once.
fn opened(device: Device, flavour: &str) -> Result<AnyContext, String> {
    let located = locate::find(&wanted(device), flavour).map_err(|error| error.to_string())?;
    let options = OpenOptions { map_size: 0, ..OpenOptions::default() };
    located.context.open(options).map(drop).map_err(|error| error.to_string())?;
    Ok(located.context)
}

fn private_context() -> Result<AnyContext, String> {
    opened(Device::Private, "binder")
}

/// Tries a context of the system; `None` if this machine has none of this name.
fn context(name: &'static str) -> Option<ContextTried> {
    let there =
        ["/dev", "/dev/binderfs"].iter().any(|folder| std::path::Path::new(folder).join(name).exists());
    if !there {
        return None;
    }
    let dialect = if name == "hwbinder" { Dialect::Hwbinder } else { Dialect::Binder(Release::default()) };
    let (name, device) = (name.to_owned(), Device::Named(name.to_owned()));
    let flavour = name.clone();
    let refused = |why: String| {
        let opened = Attempt { refused: Some(why) };
        Some(ContextTried { name: name.clone(), opened, managed: None, registered: None })
    };
    let any = match within(move || opened(device, &flavour)) {
        Ok(any) => any,
        Err(why) => return refused(why),
    };
    let asked = any.clone();
    let managed = within(move || {
        on_context!(&asked, |context| is_managed(context, dialect)).map_err(|error| error.to_string())
    });
    let (managed, registered) = match managed {
        Ok(false) => (Some(false), None),
        Ok(true) => (Some(true), Some(attempt(move || register(&any, dialect)))),
        Err(why) => (None, Some(Attempt { refused: Some(why) })),
    };
    let opened = Attempt { refused: None };
    Some(ContextTried { name, opened, managed, registered })
}

/// Registers a service, which goes with this function.
fn register(any: &AnyContext, dialect: Dialect) -> Result<(), String> {
    let name = format!("binderperf.permission.{}", std::process::id());
    on_context!(any, |context| {
        let endpoint = Endpoint::open(context, dialect, 0).map_err(|error| error.to_string())?;
        offer_idle(&endpoint, &name).map(drop).map_err(|error| error.to_string())
    })
}

fn record_by_tracefs() -> Result<(), String> {
    let tracefs = Tracefs::find().map_err(|error| error.to_string())?;
    let instance = Instance::new(&tracefs).map_err(|error| error.to_string())?;
    instance.remove(LET_GO).map_err(|error| error.to_string())
}
