//! Room: the lobby, the suite's own context manager: a party leaves a node there under a number, and
//! others fetch a handle to it. It runs in another process than the tests, because a C driver lets
//! nobody in the manager's process call handle 0 (contract CTX-05).
//! Not here: a service manager for real clients (`ipc::manager`).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use abi::codes::object;
use abi::layout::{FlatBinderObject, NodeInfoForRef};
use abi::{Commands, Delivery, Handle, Payload, Return, TransactionFlags};
use driver::OpenOptions;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::item::{Stop, Verdict};
use super::party::{PATIENCE, Party};
use super::subject::{Probe, Subject};

/// Oneway: a [`FlatBinderObject`], then the number under which to keep it.
pub(super) const LEAVE: u32 = 1;
/// A number; the reply is the object left under it, or empty.
pub(super) const FETCH: u32 = 2;
/// A number; forgets what was left under it. The reply is empty.
pub(super) const DROP: u32 = 3;
/// A number, then a [`NodeInfoForRef`]; the lobby asks the driver with its own handle in place of
/// the one given there, unless the number is [`AS_GIVEN`]. The reply is an errno and the answer.
pub(super) const INFO: u32 = 4;
/// The reply is the manager's tag.
pub(super) const TAG: u32 = 5;

/// The number that leaves the handle of an [`INFO`] request alone.
pub(super) const AS_GIVEN: u64 = u64::MAX;

/// The lobby's state: what was left.
struct Lobby {
    party: Party,
    tag: u64,
    left: BTreeMap<u64, FlatBinderObject>,
}

/// Becomes the manager of a context, waiting for a former one's release, which is asynchronous
/// (contract EXT-04).
///
/// # Errors
/// The context cannot be opened, or stays taken.
pub(super) fn take(subject: &dyn Subject) -> Result<Arc<dyn Probe>, Stop> {
    let connection = subject.open(OpenOptions { nonblocking: true, ..OpenOptions::default() })?;
    let node = FlatBinderObject { kind: object::BINDER, flags: 0x113, ..FlatBinderObject::new_zeroed() };
    let start = Instant::now();
    loop {
        match connection.become_context_manager(Some(node)) {
            Ok(()) => return Ok(connection),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(source) => {
                let why = match subject.device() {
                    Some(path) => driver::manager::ManagerError::new(path, source).to_string(),
                    None => format!("could not become the context manager: {source}"),
                };
                return Err(Stop::Fail(why));
            }
        }
    }
}

/// Serves until `stop`; then the connection is closed with its last user.
///
/// # Errors
/// The driver broke a promise that the lobby itself stands on.
pub(super) fn serve(connection: Arc<dyn Probe>, tag: u64, stop: &AtomicBool) -> Verdict {
    let mut lobby = Lobby { party: Party::new(connection), tag, left: BTreeMap::new() };
    lobby.party.enter_looper()?;
    while !stop.load(Ordering::Relaxed) {
        // A signal is no reason to stop; the read below finds out whether there is work.
        let _ = lobby.party.conn.poll_readable(20);
        if let Some(got) = lobby.party.read_now()? {
            for item in &got.returns {
                if let Return::Transaction(call) = item {
                    lobby.serve_call(call)?;
                }
            }
        }
    }
    Ok(())
}

fn number(data: &[u8]) -> u64 {
    u64::read_from_prefix(data).map_or(0, |(number, _)| number)
}

impl Lobby {
    fn serve_call(&mut self, call: &Delivery) -> Verdict {
        let data = self.party.bytes(call)?;
        let mut commands = Commands::default();
        // Kept alive until the commands are written: the driver reads the payload then.
        let (mut reply, mut offsets): (Vec<u8>, &[u64]) = (Vec::new(), &[]);
        match call.code {
            LEAVE => self.leave(&mut commands, &data),
            FETCH => {
                if let Some(object) = self.left.get(&number(&data)) {
                    (reply, offsets) = (object.as_bytes().to_vec(), &[0]);
                }
            }
            DROP => {
                if let Some(object) = self.left.remove(&number(&data)) {
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
        self.party.write_some(&commands)?;
        Ok(())
    }

    fn leave(&mut self, commands: &mut Commands, data: &[u8]) {
        let Ok((object, rest)) = FlatBinderObject::read_from_prefix(data) else { return };
        let handle = Handle(object.binder as u32);
        match object.kind {
            object::HANDLE => commands.acquire(handle),
            _ => commands.increfs(handle),
        }
        if let Some(former) = self.left.insert(number(rest), object) {
            count_down(commands, &former);
        }
    }

    fn info(&self, data: &[u8]) -> Vec<u8> {
        let Ok((wanted, rest)) = u64::read_from_prefix(data) else { return Vec::new() };
        let Ok((mut info, _)) = NodeInfoForRef::read_from_prefix(rest) else { return Vec::new() };
        if let Some(object) = self.left.get(&wanted) {
            info.handle = object.binder as u32;
        }
        let (errno, info) = match self.party.conn.node_info_for_ref(info) {
            Ok(info) => (0, info),
            Err(error) => (error.raw_os_error().unwrap_or(-1), info),
        };
        [i64::from(errno).as_bytes(), info.as_bytes()].concat()
    }
}

fn count_down(commands: &mut Commands, object: &FlatBinderObject) {
    let handle = Handle(object.binder as u32);
    match object.kind {
        object::HANDLE => commands.release(handle),
        _ => commands.decrefs(handle),
    }
}

/// A lobby on a thread of this process; gone, and its context free again, when dropped.
pub(super) struct Open {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Verdict>>,
}

impl Open {
    /// Opens the lobby.
    ///
    /// # Errors
    /// As [`take`].
    pub(super) fn new(subject: &dyn Subject) -> Result<Self, Stop> {
        let connection = take(subject)?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(connection, 0, &flag));
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether the lobby closed by itself, which it does only when a promise broke under it.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(std::thread::JoinHandle::is_finished)
    }

    /// Closes the lobby; why it had closed by itself, if it had.
    pub(super) fn close(mut self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take()?.join() {
            Ok(Ok(())) => None,
            Ok(Err(stop)) => Some(stop.why()),
            Err(_) => Some("it panicked".to_owned()),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it would say, the items that needed it have said already.
            let _ = thread.join();
        }
    }
}
