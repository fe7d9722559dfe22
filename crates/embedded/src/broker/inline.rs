//! A broker without a thread, for fuzz targets: the thread that sends it a message serves it at once. Nobody waits for a
//! thread to wake up, and an input takes the same steps whenever it runs.
//! Not here: a broker of its own thread or process (`super::run`).

use std::cell::RefCell;
use std::path::Path;

use super::serve::Server;
use super::{Event, Faults, HELLO_PATIENCE, RunError, begin};
use crate::directory;

/// A broker that serves the thread that made it, until this value is dropped.
#[derive(Debug)]
pub(crate) struct InlineBroker(());

thread_local! {
    static HERE: RefCell<Option<Server<'static>>> = const { RefCell::new(None) };
}

impl InlineBroker {
    /// Listens in a directory. A thread has one such broker at a time.
    ///
    /// # Errors
    /// See [`RunError`].
    pub(crate) fn new(directory: &Path) -> Result<Self, RunError> {
        let folder = directory::ensure(directory).map_err(RunError::Directory)?;
        let (listener, _) = begin(&folder, directory)?;
        // A closure without captures is not allocated.
        let tell = Box::leak(Box::new(|_: Event<'_>| ()));
        let failed = |source| RunError::Os { call: "listening in", path: directory.to_owned(), source };
        let server = Server::new(listener, HELLO_PATIENCE, Faults::default(), tell).map_err(failed)?;
        let before = HERE.replace(Some(server));
        assert!(before.is_none(), "this thread has a broker already");
        Ok(Self(()))
    }
}

impl Drop for InlineBroker {
    fn drop(&mut self) {
        drop(HERE.take());
    }
}

/// Serves what this thread has sent to its broker, if it has one.
pub(crate) fn serve() {
    HERE.with_borrow_mut(|server| {
        if let Some(server) = server {
            server.serve_pending().expect("a broker serves what is there");
        }
    });
}
