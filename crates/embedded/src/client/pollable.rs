//! Descriptors that poll readable exactly while their thread has something to read (contract POL-01 to POL-05).
//! Not here: a wait in one call ([`super::Process::poll_readable`]).
//!
//! Readiness belongs to a thread (POL-04), so each thread that asks for a descriptor has its own: the reading end
//! of a pipe that holds one byte while the thread is readable. Unlike an event counter, it never polls writable.
//!
//! While such a thread is outside the driver, its descriptor is *armed*: its bell is announced as sleeping, a
//! helper thread sleeps on the bell in its place, and takes in new work when the bell is rung. Every thread that
//! changes the queues updates all armed descriptors before it releases the lock. A thread that enters the driver
//! disarms its descriptor and uses its bell itself. If the helper still sleeps there and takes a wake-up meant for
//! the thread, it passes the wake-up on.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;

use sys::held_signals::HeldSignals;

use super::active_thread::ActiveThread;
use super::core::looper;
use super::identity::Identity;
use super::wait::Until;
use super::{Process, State};
use crate::rpc::protocol::ThreadKey;
use crate::shm::doorbell::{BellMemory, Doorbells};
use crate::shm::wait::LOOK_AGAIN;

/// A thread's descriptor. Dropping it ends its helper thread.
#[derive(Debug)]
pub(super) struct Pollable {
    reader: File,
    writer: File,
    /// Whether the pipe holds its byte.
    readable: bool,
    armed: bool,
    helper: thread::Thread,
    /// The helper waits to be unparked, because the thread is inside the driver.
    parked: bool,
}

impl Pollable {
    fn set_readable(&mut self, readable: bool) {
        if self.readable == readable {
            return;
        }
        self.readable = readable;
        // Does not wait, even if the program or a forked child took the byte. One byte fits an empty pipe.
        let _ = match readable {
            true => self.writer.write_all(&[1]),
            false => self.reader.read_exact(&mut [0]),
        };
    }
}

impl Drop for Pollable {
    fn drop(&mut self) {
        self.helper.unpark();
    }
}

/// State of a descriptor and its thread, as the helper thread finds it after a sleep.
enum Found {
    /// The thread is outside the driver; its descriptor is up to date.
    Armed,
    /// The thread is inside the driver.
    Disarmed,
    /// The thread or its connection is gone.
    Gone,
}

impl State {
    /// Updates all armed descriptors.
    pub(super) fn show_readiness(&mut self, process: &Process) {
        for slot in 0..self.own.len() as u32 {
            let Some(pollable) = self.own[slot as usize].pollable.as_mut().filter(|pollable| pollable.armed)
            else {
                continue;
            };
            let takes_any = self.core.thread(slot).is_free();
            let must_return = process.local(slot).need_return.load(Ordering::Relaxed);
            pollable.set_readable(must_return || self.core.has_work(slot, takes_any));
        }
    }

    /// Disarms a thread's descriptor, if it has one: the thread enters the driver.
    pub(super) fn disarm(&mut self, process: &Process, slot: u32) {
        let Some(pollable) = &mut self.own[slot as usize].pollable else { return };
        pollable.armed = false;
        self.core.withdraw(slot);
        process.bell(slot).awake();
    }

    /// Whether a thread's armed descriptor shows its work, so that its bell need not be rung.
    pub(super) fn is_armed(&self, slot: u32) -> bool {
        self.own.get(slot as usize).and_then(|own| own.pollable.as_ref()).is_some_and(|own| own.armed)
    }
}

impl Process {
    /// Returns a descriptor that polls readable while the thread has something to read.
    pub(crate) fn poll_descriptor(self: &Arc<Self>, who: Identity) -> io::Result<OwnedFd> {
        self.enter(who, |thread| {
            if self.has_ended() {
                // It hangs up as those do that were there before.
                return Ok(sys::descriptor::nonblocking_pipe()?.0.into());
            }
            if thread.own().pollable.is_none() {
                thread.make_pollable(Arc::downgrade(self))?;
            }
            let pollable = thread.own().pollable.as_ref().ok_or(io::ErrorKind::NotFound)?;
            Ok(pollable.reader.try_clone()?.into())
        })
    }

    /// Takes in new work in place of a thread outside the driver, and updates the descriptors. Hangs them up if the
    /// broker is gone, of which nobody else may tell; `checks`: time to check that.
    fn look_for(&self, key: ThreadKey, checks: bool) -> Found {
        let mut state = self.state.lock();
        if state.core.slot_of(key).is_none() {
            return Found::Gone;
        }
        let tid = state.core.thread(key.slot).tid;
        match &mut state.own[key.slot as usize].pollable {
            None => return Found::Gone,
            Some(pollable) if !pollable.armed => {
                pollable.parked = true;
                return Found::Disarmed;
            }
            Some(_) => {}
        }
        let gone = checks && !self.is_connected();
        let mut thread = ActiveThread::new(self, Identity::Other(tid), key.slot, state);
        if gone {
            thread.state.end_connection(self);
        }
        thread.leave();
        if gone { Found::Gone } else { Found::Armed }
    }
}

impl ActiveThread<'_> {
    fn make_pollable(&mut self, process: Weak<Process>) -> io::Result<()> {
        let (reader, writer) = sys::descriptor::nonblocking_pipe()?;
        let (bells, key) = (self.process.bells.clone(), self.thread().key);
        // The program's signals are not for the helper.
        let signals = HeldSignals::hold()?;
        let helper = thread::Builder::new().name("binder-poll".to_owned());
        let helper = helper.spawn(move || watch(&process, &bells, key))?;
        drop(signals);
        let thread = self.thread();
        thread.looper |= looper::POLL;
        let bits = thread.looper;
        self.bell().set_looper(bits);
        let helper = helper.thread().clone();
        self.own().pollable =
            Some(Box::new(Pollable { reader, writer, readable: false, armed: false, helper, parked: false }));
        self.state.pollables += 1;
        Ok(())
    }

    /// Arms the thread's descriptor, if it has one: the thread leaves the driver. Returns the helper to unpark.
    pub(super) fn arm(&mut self) -> Option<thread::Thread> {
        let pollable = self.own().pollable.as_mut()?;
        pollable.armed = true;
        let helper = std::mem::take(&mut pollable.parked).then(|| pollable.helper.clone());
        let takes_any = self.thread().is_free();
        if takes_any {
            self.state.core.add_poller(self.slot);
        }
        // From here on the helper hears of everything new; what came before is taken in now.
        self.bell().announce_sleep();
        self.look(Until::Readable { takes_any });
        helper
    }
}

/// The helper thread of one descriptor: sleeps on the thread's bell while the thread is outside the driver.
fn watch(process: &Weak<Process>, bells: &Doorbells<Arc<BellMemory>>, key: ThreadKey) {
    let Some(bell) = bells.slot(key.slot) else { return };
    // It counts across sleeps: other processes may ring the bell more often.
    let next_check = || sys::clock::monotonic_ns() + LOOK_AGAIN.as_nanos() as u64;
    let mut check_ns = next_check();
    loop {
        // Returns at once if the bell was rung since it was announced. Whatever ended it, the thread looks.
        let _ = bell.sleep(check_ns);
        let checks = sys::clock::monotonic_ns() >= check_ns;
        if checks {
            check_ns = next_check();
        }
        let Some(process) = process.upgrade() else { return };
        match process.look_for(key, checks) {
            Found::Armed => {}
            Found::Disarmed => {
                bell.wake();
                drop(process);
                thread::park();
            }
            Found::Gone => {
                // The wake-up may have been for the slot's next thread.
                bell.wake();
                return;
            }
        }
    }
}
