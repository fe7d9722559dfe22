//! The test manager: the suite's context manager, in which processes leave nodes under a number for others to fetch.
//! It runs in another OS process than the tests, because the C driver refuses calls to handle 0 from the manager's
//! own process (contract CTX-05).
//! Not here: a service manager for real clients (`ipc::manager`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abi::codes::object;
use abi::layout::{FlatBinderObject, NodeInfoForRef};
use abi::{Commands, Delivery, Handle, Payload, Return, TransactionFlags};
use driver::OpenOptions;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::check::{Stop, Verdict, done, patiently};
use super::probe::Probe;
use super::raw_process::RawProcess;
use super::subject::Subject;

/// Oneway call: a [`FlatBinderObject`], then the number under which to keep it.
pub(super) const LEAVE: u32 = 1;
/// A number; the reply is the object left under it, or empty.
pub(super) const FETCH: u32 = 2;
/// A number; drops the object left under it. The reply is empty.
pub(super) const DROP: u32 = 3;
/// A number, then a [`NodeInfoForRef`]. The manager queries the driver, with its own handle unless the number is
/// [`AS_GIVEN`]. The reply is an errno and the result.
pub(super) const INFO: u32 = 4;
/// The reply is the manager's tag.
pub(super) const TAG: u32 = 5;

/// The number with which an [`INFO`] request keeps its handle.
pub(super) const AS_GIVEN: u64 = u64::MAX;

/// State of the test manager.
struct TestManager {
    process: RawProcess,
    tag: u64,
    left: Left,
}

/// The objects left in the test manager, by their numbers.
pub(super) type Left = Arc<Mutex<BTreeMap<u64, FlatBinderObject>>>;

fn locked(left: &Left) -> MutexGuard<'_, BTreeMap<u64, FlatBinderObject>> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Becomes the manager of a context; waits for a former one's release, which is asynchronous (contract EXT-04).
///
/// # Errors
/// The context cannot be opened, or keeps its manager.
pub(super) fn become_manager(subject: &Subject) -> Result<Arc<dyn Probe>, Stop> {
    let connection = subject.open(OpenOptions { nonblocking: true, ..OpenOptions::default() })?;
    let node = FlatBinderObject { kind: object::BINDER, flags: 0x113, ..FlatBinderObject::new_zeroed() };
    let managed = patiently(|| connection.become_context_manager(Some(node)));
    let why = |source| match subject.device() {
        Some(path) => driver::manager::ManagerError::new(path, source).to_string(),
        None => format!("could not become the context manager: {source}"),
    };
    managed.map(|()| connection).map_err(|source| Stop::Fail(why(source)))
}

/// Serves until `stop`; the connection closes with its last user.
///
/// # Errors
/// The driver broke a promise that the manager depends on.
pub(super) fn serve(connection: Arc<dyn Probe>, tag: u64, stop: &AtomicBool, left: Left) -> Verdict {
    let mut manager = TestManager { process: RawProcess::new(connection), tag, left };
    manager.process.enter_looper()?;
    while !stop.load(Ordering::Relaxed) {
        // After a signal the read below finds out whether there is work.
        let _ = manager.process.conn.poll_readable(20);
        if let Some(got) = manager.process.read_now()? {
            for item in &got.returns {
                if let Return::Transaction(call) = item {
                    manager.serve_call(call)?;
                }
            }
        }
    }
    Ok(())
}

fn number(data: &[u8]) -> u64 {
    u64::read_from_prefix(data).map_or(0, |(number, _)| number)
}

impl TestManager {
    fn serve_call(&mut self, call: &Delivery) -> Verdict {
        let data = self.process.bytes(call)?;
        let mut commands = Commands::default();
        // Kept until the commands are written: the driver reads the payload then.
        let (mut reply, mut offsets): (Vec<u8>, &[u64]) = (Vec::new(), &[]);
        match call.code {
            LEAVE => self.leave(&mut commands, &data),
            FETCH => {
                if let Some(object) = locked(&self.left).get(&number(&data)) {
                    (reply, offsets) = (object.as_bytes().to_vec(), &[0]);
                }
            }
            DROP => {
                if let Some(object) = locked(&self.left).remove(&number(&data)) {
                    count_down(&mut commands, &object);
                }
            }
            INFO => reply = self.info(&data),
            TAG => reply = self.tag.as_bytes().to_vec(),
            _ => {}
        }
        commands.free_buffer(call.buffer);
        if !call.flags.is_oneway() {
            commands.reply(TransactionFlags::CALL, Payload { data: &reply, offsets, ..Payload::default() });
        }
        self.process.write_some(&commands)?;
        Ok(())
    }

    fn leave(&mut self, commands: &mut Commands, data: &[u8]) {
        let Ok((object, rest)) = FlatBinderObject::read_from_prefix(data) else { return };
        count_up(commands, &object);
        if let Some(former) = locked(&self.left).insert(number(rest), object) {
            count_down(commands, &former);
        }
    }

    fn info(&self, data: &[u8]) -> Vec<u8> {
        let Ok((wanted, rest)) = u64::read_from_prefix(data) else { return Vec::new() };
        let Ok((mut info, _)) = NodeInfoForRef::read_from_prefix(rest) else { return Vec::new() };
        if let Some(object) = locked(&self.left).get(&wanted) {
            info.handle = object.binder as u32;
        }
        let (errno, info) = match self.process.conn.node_info_for_ref(info) {
            Ok(info) => (0, info),
            Err(error) => (error.raw_os_error().unwrap_or(-1), info),
        };
        [i64::from(errno).as_bytes(), info.as_bytes()].concat()
    }
}

/// Takes a count of the object's kind on its handle.
pub(super) fn count_up(commands: &mut Commands, object: &FlatBinderObject) {
    let handle = Handle(object.binder as u32);
    match object.kind {
        object::HANDLE => commands.acquire(handle),
        _ => commands.increfs(handle),
    }
}

fn count_down(commands: &mut Commands, object: &FlatBinderObject) {
    let handle = Handle(object.binder as u32);
    match object.kind {
        object::HANDLE => commands.release(handle),
        _ => commands.decrefs(handle),
    }
}

/// A test manager on a thread of this process; stopped on drop.
pub(super) struct ManagerThread {
    stop: Arc<AtomicBool>,
    connection: Arc<dyn Probe>,
    left: Left,
    thread: Option<std::thread::JoinHandle<Verdict>>,
}

impl ManagerThread {
    /// Starts the test manager.
    ///
    /// # Errors
    /// Those of [`become_manager`].
    pub(super) fn new(subject: &Subject) -> Result<Self, Stop> {
        let connection = become_manager(subject)?;
        let stop = Arc::new(AtomicBool::new(false));
        let left = Left::default();
        let (own, flag, shared) = (Arc::clone(&connection), Arc::clone(&stop), Arc::clone(&left));
        let thread = sys::title::thread("test manager", move || serve(own, 0, &flag, shared));
        let thread = done("starting a thread", thread)?;
        Ok(Self { stop, connection, left, thread: Some(thread) })
    }

    /// Drops every object left there.
    ///
    /// # Errors
    /// The driver refuses to drop them.
    pub(super) fn forget_all(&self) -> Verdict {
        let left = std::mem::take(&mut *locked(&self.left));
        if left.is_empty() {
            return Ok(());
        }
        let commands = Commands::of(|c| left.values().for_each(|object| count_down(c, object)));
        RawProcess::new(Arc::clone(&self.connection)).write_some(&commands).map(drop)
    }

    /// Whether it ended by itself, which means that the driver broke a promise.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(std::thread::JoinHandle::is_finished)
    }

    /// Stops it; returns why it had ended by itself, if it had.
    pub(super) fn close(&mut self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(stop)) => Some(stop.why()),
            Err(_) => Some("it panicked".to_owned()),
        }
    }
}

impl Drop for ManagerThread {
    fn drop(&mut self) {
        // A failure was already reported by the items that needed the manager.
        let _ = self.close();
    }
}
