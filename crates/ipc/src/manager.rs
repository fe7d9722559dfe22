//! Parts that the service managers of both flavours share: access to the context's manager, the table of services.
//! Not here: methods and payloads (`binder::manager`, `hwbinder::manager`).

pub(crate) mod registry;
pub(crate) mod strangers;

use std::time::{Duration, Instant};

use driver::Connection;

use crate::process::Process;
use crate::runtime::Place;
use crate::runtime::target::Binder;
use crate::status::CallError;

/// Pause between two looks for something that is about to start.
const BETWEEN: Duration = Duration::from_millis(5);

/// The manager of a process's context, once it answers `ping`; waits up to `patience` for one to start. `flag`: the
/// option with which `binderperf servicemanager` serves the flavour.
pub(crate) fn reach<C: Connection>(
    process: &Process<C>,
    patience: Duration,
    flag: &str,
    ping: impl Fn(Binder) -> Result<(), CallError>,
) -> Result<Binder, CallError> {
    let end = Instant::now() + patience;
    loop {
        // A reference to a manager that is not there yet comes to nothing, and no driver says so. The one
        // taken after an answer holds, and deaths can be told of it.
        match ping(process.context_manager()?.into()) {
            Ok(()) => return Ok(process.context_manager()?.into()),
            Err(error) if !error.is_dead() => return Err(error),
            Err(_) if Instant::now() < end => std::thread::sleep(BETWEEN),
            Err(_) => {
                let Place { context, options } = &process.inner.shared.place;
                let remedy = command(&["binderperf servicemanager", flag, options]);
                return Err(CallError::NoManager { context: context.clone(), remedy });
            }
        }
    }
}

fn command(words: &[&str]) -> String {
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The command that lists a manager's names. `flag`: as for [`reach`].
pub(crate) fn listing(manager: &Binder, flag: &str) -> String {
    let options = match manager {
        Binder::Remote(proxy) => proxy.inner.runtime.shared().place.options.as_str(),
        Binder::Local(_) => "",
    };
    command(&["binderperf services list", flag, options])
}

/// Repeats `look` until it finds something; after `patience` it is [`CallError::NoService`].
pub(crate) fn wait_for<T>(
    name: &str,
    patience: Duration,
    listing: impl Fn() -> String,
    look: impl Fn() -> Result<Option<T>, CallError>,
) -> Result<T, CallError> {
    let start = Instant::now();
    loop {
        match look()? {
            Some(found) => return Ok(found),
            None if start.elapsed() >= patience => {
                return Err(CallError::NoService {
                    name: name.to_owned(),
                    waited: patience,
                    remedy: listing(),
                });
            }
            None => std::thread::sleep(BETWEEN.min(patience)),
        }
    }
}
