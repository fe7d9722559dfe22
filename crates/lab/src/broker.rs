//! Room: this program as the embedded driver's broker.
//! Not here: the broker (`driver::embedded::broker`).

use std::path::{Path, PathBuf};

use driver::embedded::broker::{self, Lifetime, RunError};
use driver::embedded::{EmbeddedContext, Settings, start};

pub use start::COMMAND;

/// Has the embedded driver start this program as its broker when it needs one; to be called first of
/// all. The broker's words go to [`play`].
pub fn register() {
    start::register_broker(&[COMMAND]);
}

/// Is the broker of the directory behind [`COMMAND`] until its last client is gone. Returns the exit
/// code.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    match words {
        [directory] => start::become_broker(Path::new(directory)),
        _ => {
            eprintln!("binderperf: {COMMAND} is started by binderperf itself");
            2
        }
    }
}

/// Serves this directory, or the user's, until SIGINT or SIGTERM ends it; `tell` hears one line for
/// each thing that happens, the first once it serves.
///
/// # Errors
/// The directory is not fit, or has a broker; the text says what to do.
pub fn serve(directory: Option<&Path>, mut tell: impl FnMut(&str)) -> Result<(), String> {
    let directory: PathBuf = match directory {
        Some(directory) => directory.to_owned(),
        None => {
            let context = EmbeddedContext::named("binder", Settings::default());
            context.map_err(|error| error.to_string())?.directory().to_owned()
        }
    };
    let system = |error| format!("preparing to serve failed: {}", sys::errno::describe(&error));
    sys::stop_signal::catch().map_err(system)?;
    // A broker has descriptors of all its clients.
    sys::open_files::allow(u64::MAX).map_err(system)?;
    broker::run(&directory, Lifetime::UntilStopped, |event| tell(&event.to_string()))
        .map_err(|error: RunError| error.to_string())
}
