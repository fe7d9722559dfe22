//! Parts that the service managers of both flavours share: access to the context's manager, the table of services.
//! Not here: methods and payloads (`binder::manager`, `hwbinder::manager`).

pub(crate) mod registry;

use std::time::{Duration, Instant};

use driver::Connection;

use crate::process::Process;
use crate::runtime::target::Binder;
use crate::status::CallError;

/// Pause between two looks for something that is about to start.
const BETWEEN: Duration = Duration::from_millis(5);

/// The manager of a process's context, once it answers `ping`; waits up to `patience` for one to start.
pub(crate) fn reach<C: Connection>(
    process: &Process<C>,
    patience: Duration,
    ping: impl Fn(Binder) -> Result<(), CallError>,
) -> Result<Binder, CallError> {
    let end = Instant::now() + patience;
    loop {
        // A reference to a manager that is not there yet comes to nothing, and no driver says so. The one
        // taken after an answer holds, and deaths can be told of it.
        match ping(process.context_manager()?.into()) {
            Ok(()) => return Ok(process.context_manager()?.into()),
            Err(error) if error.is_dead() && Instant::now() < end => std::thread::sleep(BETWEEN),
            Err(error) => return Err(error),
        }
    }
}

/// Repeats `look` until it finds something or fails, up to `patience`.
pub(crate) fn look_until<T, E>(
    patience: Duration,
    look: impl Fn() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let start = Instant::now();
    loop {
        let found = look()?;
        if found.is_some() || start.elapsed() >= patience {
            return Ok(found);
        }
        std::thread::sleep(BETWEEN.min(patience));
    }
}
