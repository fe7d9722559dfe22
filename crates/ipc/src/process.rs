//! One process of a binder context: opening it, its pool, its manager.
//! Not here: publishing objects of a flavour (`binder::object`).
//! Facts: contract OPN-01, CTX-01..CTX-05; wire-level habits of libbinder's process start; libhwbinder's
//! `ProcessState.cpp` and `IPCThreadState.cpp`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::Handle;
use abi::codes::object;
use abi::layout::FlatBinderObject;
use driver::connection::default_map_size;
use driver::{Connection, Context, OpenError, OpenOptions};

use crate::background::{Background, BackgroundScheduling, GroupError};
use crate::error::TransactError;
use crate::exchange::ProcessInner;
use crate::exchange::looper::{Join, Pool};
use crate::release::Release;
use crate::runtime::node::{Node, Nodes};
use crate::runtime::proxy::death::Deaths;
use crate::runtime::proxy::{Proxies, Proxy};
use crate::runtime::serve::Serve;
use crate::runtime::{Place, Runtime, Shared};
use crate::scheduling::NodeOptions;

/// How to open a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOptions {
    /// The number of threads that the driver may request, besides those that join on their own.
    pub max_threads: u32,
    /// Bytes of receiving area; see [`OpenOptions::map_size`].
    pub map_size: usize,
    /// The Android release whose dialect to speak.
    pub release: Release,
    /// Report oneway calls that flood a receiver (`BR_ONEWAY_SPAM_SUSPECT`, Linux 5.13; ignored by older
    /// drivers).
    pub spam_detection: bool,
    /// Prefix of the names of pool threads.
    pub thread_prefix: String,
    /// Who makes threads that serve background callers run as background.
    pub background_scheduling: BackgroundScheduling,
}

impl Default for ProcessOptions {
    /// libbinder's defaults: 15 threads, 1 MiB less two pages, spam detection on, background callers left
    /// to the driver.
    fn default() -> Self {
        Self {
            max_threads: 15,
            map_size: default_map_size(),
            release: Release::default(),
            spam_detection: true,
            thread_prefix: "Binder".to_owned(),
            background_scheduling: BackgroundScheduling::default(),
        }
    }
}

impl ProcessOptions {
    /// libhwbinder's defaults: the driver may ask for no threads; otherwise [`Self::default`].
    #[must_use]
    pub fn hwbinder() -> Self {
        Self { max_threads: 0, thread_prefix: "HwBinder".to_owned(), ..Self::default() }
    }

    /// libhwbinder's `setThreadPoolConfiguration`: as many threads in all, of which one is the pool's
    /// first and, if `caller_joins`, one the caller's; the driver may ask for the others.
    #[must_use]
    pub fn hwbinder_pool(threads: u32, caller_joins: bool) -> Self {
        let max_threads = threads.saturating_sub(1 + u32::from(caller_joins));
        Self { max_threads, ..Self::hwbinder() }
    }
}

/// An error of opening a process.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProcessError {
    /// The context could not be opened.
    Open(OpenError),
    /// The driver refused a setting.
    Os {
        /// The operation that failed.
        call: &'static str,
        /// The error.
        source: io::Error,
    },
    /// Threads cannot be moved to the background.
    Background(GroupError),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Os { call, source } => write!(f, "{call} failed: {source}"),
            Self::Background(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProcessError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(error) => Some(error),
            Self::Os { source, .. } => Some(source),
            Self::Background(error) => Some(error),
        }
    }
}

impl From<OpenError> for ProcessError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

/// One process of a binder context. Clones are the same process. Its device stays open while a
/// clone, one of its proxies or one of its pool threads lives; [`Self::shutdown`] ends the pool.
pub struct Process<C: Connection> {
    pub(crate) inner: Arc<ProcessInner<C>>,
}

impl<C: Connection> Clone for Process<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<C: Connection> Process<C> {
    /// Opens a context with these options.
    ///
    /// # Errors
    /// See [`ProcessError`].
    pub fn open<X>(context: &X, options: ProcessOptions) -> Result<Self, ProcessError>
    where
        X: Context<Connection = C>,
    {
        let open = OpenOptions { map_size: options.map_size, ..OpenOptions::default() };
        let place = Place { context: context.describe(), options: context.options() };
        Self::set_up(context.open(open)?, options, place)
    }

    /// Sets up a process on a connection that is open already.
    ///
    /// # Errors
    /// The driver refuses the number of threads, or a background group cannot be opened.
    pub fn on(connection: C, options: ProcessOptions) -> Result<Self, ProcessError> {
        let place = Place { context: "this context".to_owned(), options: String::new() };
        Self::set_up(connection, options, place)
    }

    fn set_up(connection: C, options: ProcessOptions, place: Place) -> Result<Self, ProcessError> {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let background = Background::open(options.background_scheduling).map_err(ProcessError::Background)?;
        connection
            .set_max_threads(options.max_threads)
            .map_err(|source| ProcessError::Os { call: "BINDER_SET_MAX_THREADS", source })?;
        if options.spam_detection {
            // Drivers before Linux 5.13 do not know it; nothing depends on it.
            let _ = connection.enable_oneway_spam_detection(true);
        }
        let shared = Shared {
            place,
            id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            release: options.release,
            nodes: Nodes::new(),
            proxies: Proxies::default(),
            deaths: Deaths::default(),
            background,
            kept: AtomicU64::new(0),
        };
        let pool = Arc::new(Pool::new(options.thread_prefix));
        let inner = Arc::new_cyclic(|me| ProcessInner { connection, shared, pool, me: me.clone() });
        Ok(Self { inner })
    }

    /// The connection, for driver requests outside the runtime.
    #[must_use]
    pub fn connection(&self) -> &C {
        &self.inner.connection
    }

    /// The Android release whose dialect this process speaks.
    #[must_use]
    pub fn release(&self) -> Release {
        self.inner.shared.release
    }

    /// Whether this process refuses to serve background callers as background
    /// (`disableBackgroundScheduling`): objects published from now on without options of their own
    /// ask for nice 0 at least, and threads that would move themselves to the background stay, at
    /// nice 0. Objects that are published already keep what they ask for.
    pub fn disable_background_scheduling(&self, disabled: bool) {
        self.inner.shared.background.disable(disabled);
    }

    /// Starts the pool with one thread, named like "Binder:1234_1". The driver asks for more as
    /// calls come, up to [`ProcessOptions::max_threads`]. After [`Self::shutdown`] there is no pool to start.
    ///
    /// # Errors
    /// See `clone(2)`: `EAGAIN`.
    pub fn start_thread_pool(&self) -> io::Result<()> {
        self.inner.spawn(Join::Enter)
    }

    /// Makes the calling thread one of the pool until [`Self::shutdown`], then returns; at once after it.
    ///
    /// # Errors
    /// The connection broke, or the driver broke the protocol.
    pub fn join_thread_pool(&self) -> Result<(), TransactError> {
        self.inner.join()
    }

    /// Threads that are in the pool now.
    #[must_use]
    pub fn pool_threads(&self) -> usize {
        self.inner.pool.running()
    }

    /// Stops the pool in order and for good: its threads leave as soon as what they serve is answered, and the
    /// objects that only other processes still held are let go. Blocks until then, except for the
    /// calling thread, which may be one of the pool and leaves when it returns there.
    ///
    /// # Errors
    /// The pool's threads could not be interrupted (`EMFILE`).
    pub fn shutdown(&self) -> Result<(), TransactError> {
        self.inner.stop()?;
        self.inner.shared.nodes.clear();
        Ok(())
    }

    /// Offers a flavour-neutral object; flavours have methods of their own on top of this. It lives
    /// while the result, a parcel under way or another process holds it.
    pub fn publish_node(&self, object: Box<dyn Serve>, options: NodeOptions) -> Node {
        self.inner.shared.nodes.publish(object, options.flags())
    }

    /// References that the driver reports others to hold on a node: strong and weak, as it counts
    /// them for the owner (1 or 0 each, however many processes hold).
    #[must_use]
    pub fn remote_references(&self, node: &Node) -> (i32, i32) {
        self.inner.shared.nodes.counts(node)
    }

    /// Makes a flavour-neutral object the context manager: `BINDER_SET_CONTEXT_MGR_EXT`, or the
    /// plain form on drivers before Linux 5.1, which then refuse descriptors in calls to it.
    ///
    /// # Errors
    /// `EBUSY`: there is one. `EPERM`: the first manager had another uid.
    pub fn become_context_manager_node(
        &self,
        object: Box<dyn Serve>,
        options: NodeOptions,
    ) -> io::Result<Node> {
        let nodes = &self.inner.shared.nodes;
        let flags = options.flags();
        let (node, previous) = nodes.publish_manager(object, flags);
        let wanted = FlatBinderObject { kind: object::BINDER, flags, ..FlatBinderObject::default() };
        let connection = &self.inner.connection;
        let result = match connection.become_context_manager(Some(wanted)) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                connection.become_context_manager(None)
            }
            result => result,
        };
        if let Err(error) = result {
            drop(nodes.restore_manager(previous));
            return Err(error);
        }
        Ok(node)
    }

    /// A proxy for the context manager; calls say whether there is one.
    ///
    /// # Errors
    /// This process is the manager itself and cannot call itself (contract REF-05, CTX-05).
    pub fn context_manager(&self) -> Result<Proxy, TransactError> {
        if self.inner.shared.nodes.has_manager() {
            return Err(TransactError::Os {
                call: "calling the context manager from its own process",
                source: io::ErrorKind::InvalidInput.into(),
            });
        }
        Ok(self.inner.shared.proxies.proxy(self.inner.hold(), Handle::CONTEXT_MANAGER))
    }

    /// Writes the calling thread's queued commands (buffers to give back, references to drop). Only a
    /// thread that will not call for a long time needs this.
    pub fn flush(&self) {
        self.inner.flush(&self.inner.thread());
    }
}

impl<C: Connection> fmt::Debug for Process<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.inner.shared.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_may_ask_for_what_is_left_of_the_pool() {
        assert_eq!(ProcessOptions::hwbinder().max_threads, 0);
        for (threads, joins, want) in [(0, false, 0), (1, true, 0), (1, false, 0), (2, true, 0), (4, true, 2)]
        {
            assert_eq!(ProcessOptions::hwbinder_pool(threads, joins).max_threads, want, "{threads} {joins}");
        }
    }
}
