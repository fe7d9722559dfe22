//! Calls under way of supervised threads, and the program as the driver sees it through them.
//! Not here: the answers (`answer`, `ioctl`).

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abi::layout::WriteRead;
use sys::file_key::FileKey;
use sys::notification::{Listener, Place};
use sys::other_process::OtherProcess;

/// The call that a thread waits in.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    /// Number of its notification.
    pub(crate) id: u64,
    /// Its process.
    pub(crate) process: Arc<OtherProcess>,
    /// Address of its `binder_write_read`, and how many commands were taken before the driver's present part.
    pub(crate) exchange: Option<(u64, u64)>,
    /// The driver works for it, and may wait.
    pub(crate) waits_here: bool,
}

/// Tells whether a descriptor names a file that stands for a device.
pub(crate) struct IsDevice(pub(crate) Box<dyn Fn(BorrowedFd<'_>) -> bool + Send + Sync>);

impl fmt::Debug for IsDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IsDevice")
    }
}

/// Calls under way, by the number of their thread.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) listener: Listener,
    is_device: IsDevice,
    by_thread: Mutex<HashMap<i32, Current>>,
}

impl Calls {
    pub(crate) fn new(listener: Listener, is_device: IsDevice) -> Self {
        Self { listener, is_device, by_thread: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Current>> {
        self.by_thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's call begins, or is at another point.
    pub(crate) fn set(&self, thread: i32, current: Current) {
        self.lock().insert(thread, current);
    }

    /// The driver begins or ends its work for a thread.
    pub(crate) fn set_waiting(&self, thread: i32, waits: bool) {
        if let Some(current) = self.lock().get_mut(&thread) {
            current.waits_here = waits;
        }
    }

    /// A thread's call is over.
    pub(crate) fn end(&self, thread: i32) {
        self.lock().remove(&thread);
    }

    /// Copies bytes into the memory of a process while its thread waits in call `id`. Afterwards other things may be there, and the
    /// process's number may be another one's.
    pub(crate) fn write(&self, id: u64, process: &OtherProcess, to: u64, bytes: &[u8]) -> io::Result<()> {
        match self.listener.is_valid(id) {
            true => process.write(to, bytes),
            false => Err(io::Error::from_raw_os_error(sys::errno::ESRCH)),
        }
    }

    fn of(&self, thread: i32) -> io::Result<Current> {
        self.lock().get(&thread).cloned().ok_or_else(|| io::Error::from_raw_os_error(sys::errno::ESRCH))
    }

    /// Tells `each` the threads that the driver works for, though a signal has taken them out of their call.
    pub(crate) fn abandoned(&self, mut each: impl FnMut(i32)) {
        let left = |current: &Current| current.waits_here && !self.listener.is_valid(current.id);
        // Under the lock: what `each` does to a worker must not come after the driver's work.
        self.lock().iter().filter(|(_, current)| left(current)).for_each(|(thread, _)| each(*thread));
    }

    /// True if any call is under way.
    pub(crate) fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// True if the driver works for any call.
    pub(crate) fn any_waits_here(&self) -> bool {
        self.lock().values().any(|current| current.waits_here)
    }
}

/// A program that opened a device.
#[derive(Debug)]
pub(crate) struct Program {
    process: Arc<OtherProcess>,
    calls: Arc<Calls>,
    /// Stands in for closed files: no descriptor of another process can be closed, only replaced.
    placeholder: File,
    /// The program's numbers that hold the placeholder, to be used again.
    spare: Mutex<Vec<i32>>,
}

impl Program {
    pub(crate) fn new(process: Arc<OtherProcess>, calls: Arc<Calls>) -> io::Result<Self> {
        // A file of its own, so that it is recognised.
        let (placeholder, _) = sys::descriptor::nonblocking_pipe()?;
        Ok(Self { process, calls, placeholder, spare: Mutex::default() })
    }

    /// The process that opened the device.
    pub(crate) fn process(&self) -> &Arc<OtherProcess> {
        &self.process
    }

    /// A number of the process that holds the placeholder.
    fn take_spare(&self, process: &OtherProcess) -> Option<i32> {
        let own = FileKey::of(self.placeholder.as_fd()).ok()?;
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(number) = spare.pop() {
            // The program may have closed it, and have something else there.
            let still = process
                .descriptor(number)
                .is_ok_and(|fd| FileKey::of(fd.as_fd()).is_ok_and(|key| key == own));
            if still {
                return Some(number);
            }
        }
        None
    }
}

impl embedded::Program for Program {
    fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn read(&self, thread: i32, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.calls.of(thread)?.process.read(address, bytes)
    }

    fn descriptor(&self, thread: i32, number: i32) -> io::Result<OwnedFd> {
        let copy = self.calls.of(thread)?.process.descriptor(number)?;
        // Other supervisors do not know it, and this copy would hide the program's close.
        match (self.calls.is_device.0)(copy.as_fd()) {
            true => Err(io::Error::from_raw_os_error(sys::errno::EINVAL)),
            false => Ok(copy),
        }
    }

    fn install(&self, thread: i32, descriptor: BorrowedFd<'_>) -> io::Result<i32> {
        let Current { id, process, .. } = self.calls.of(thread)?;
        let place = Place { number: self.take_spare(&process), close_on_exec: true };
        self.calls.listener.install(id, descriptor, place)
    }

    fn close(&self, thread: i32, number: i32) {
        let Ok(Current { id, .. }) = self.calls.of(thread) else { return };
        let place = Place { number: Some(number), close_on_exec: true };
        // Without the thread in its call the descriptor stays open until the program ends.
        if self.calls.listener.install(id, self.placeholder.as_fd(), place).is_ok() {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        }
    }

    fn written(&self, thread: i32, consumed: usize) {
        let Ok(Current { process, exchange: Some((address, before)), .. }) = self.calls.of(thread) else {
            return;
        };
        let count = before + consumed as u64;
        // Also if a signal has taken the thread out of its call: it must not give the same commands again. A structure that
        // cannot be written is reported when the call ends.
        let _ = process.write(address + offset_of!(WriteRead, write_consumed) as u64, &count.to_ne_bytes());
    }

    fn waits(&self, thread: i32) -> bool {
        self.calls.of(thread).is_ok_and(|current| self.calls.listener.is_valid(current.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::{Need, need};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicU64, Ordering};
    use sys::seccomp::{self, Asks};

    #[test]
    fn memory_is_written_only_while_the_call_waits() {
        need!(seccomp::obstacle().map_or(Ok(()), |why| Err(Need::Supervision.lacks(why))));
        let rules = [(sys::call::OPENAT, Asks::Always)];
        let mut command = Command::new("true");
        command.stderr(Stdio::null());
        let (mut child, listener) = seccomp::spawn(command, &rules).expect("started");
        let asked = listener.receive().expect("it opens its libraries");
        let calls = Calls::new(listener, IsDevice(Box::new(|_| false)));
        let (memory, own) = (AtomicU64::new(0), OtherProcess::open(std::process::id()).expect("it lives"));
        let write = |value: u64| calls.write(asked.id, &own, memory.as_ptr() as u64, &value.to_ne_bytes());
        write(1).expect("it waits");
        calls.listener.go_on(asked.id).expect("it waits");
        assert_eq!(write(2).expect_err("it goes on").raw_os_error(), Some(sys::errno::ESRCH));
        assert_eq!(memory.load(Ordering::SeqCst), 1);
        child.kill().and_then(|()| child.wait()).expect("ours");
    }
}
