//! This program as the embedded driver's broker.
//! Not here: the broker (`embedded::broker`).

use std::path::{Path, PathBuf};

use embedded::broker::{self, Faults, Lifetime, RunError};
use embedded::{EmbeddedContext, Settings, start};

pub use start::COMMAND;

/// Makes the embedded driver start this program as its broker when it needs one. Call it first in `main`; pass the
/// broker's arguments to [`run`].
pub fn register() {
    start::register_broker(&[COMMAND]);
}

/// Word before the directory that makes the broker keep the nodes of processes that ended: a fault that a soak must find.
pub const LEAKING: &str = "--leaking";

/// Runs the broker of the directory named after [`COMMAND`] until its last client is gone. Returns the exit code.
#[must_use]
pub fn run(words: &[String]) -> u8 {
    match words {
        [directory] => start::become_broker(Path::new(directory), Faults::default()),
        [leaking, directory] if leaking == LEAKING => {
            start::become_broker(Path::new(directory), Faults { keeps_dead_nodes: true })
        }
        _ => {
            eprintln!("binderperf: {COMMAND} is started by binderperf itself");
            2
        }
    }
}

/// Serves `directory`, by default the user's, until SIGINT or SIGTERM; `tell` gets one line per event, the first
/// when the broker is ready.
///
/// # Errors
/// The directory is not fit, or has a broker; the text says what to do.
pub fn serve(directory: Option<&Path>, mut tell: impl FnMut(&str)) -> Result<(), String> {
    let directory: PathBuf = match directory {
        Some(directory) => directory.to_owned(),
        None => EmbeddedContext::named("binder", Settings::default()).directory().to_owned(),
    };
    sys::title::name_thread("broker");
    let system = |error| format!("preparing to serve failed: {}", sys::errno::describe(&error));
    sys::stop_signal::catch().map_err(system)?;
    // A broker has descriptors of all its clients.
    sys::limits::raise_open_files(u64::MAX).map_err(system)?;
    broker::run(&directory, Lifetime::UntilStopped, |event| tell(&event.to_string()))
        .map_err(|error: RunError| error.to_string())
}
