//! Room: one request to the broker and its answer.
//! Not here: which requests (`write`, `ioctls`), what an answer does to a thread (`inbox`).

use std::io;
use std::os::fd::BorrowedFd;

use super::state::{Answer, Pending};
use super::wait::{Until, Woken};
use super::{Guard, Process};
use crate::embedded::protocol::{Request, ThreadKey};

impl Process {
    /// Sends a request that nobody waits for. Of their answers only one means anything ([`Process::stocked`]).
    pub(super) fn post(&self, request: &Request) {
        // A broker that is gone is noticed by whoever waits for something; there is nothing to add.
        let _ = self.line.send(ThreadKey::NOBODY, 0, request, &[]);
    }

    /// Sends a request and waits for its answer; signals do not interrupt that, as they do not
    /// interrupt a kernel's driver.
    pub(super) fn ask<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        pending: Pending,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(Guard<'p>, Answer)> {
        let thread = st.thread(slot);
        thread.seq = thread.seq.wrapping_add(1).max(1);
        (thread.pending, thread.answer) = (pending, None);
        let (key, seq) = (thread.key, thread.seq);
        self.unlock(st, slot);
        let sent = self.line.send(key, seq, request, descriptors);
        let mut st = self.lock();
        if let Err(error) = sent {
            st.thread(slot).pending = Pending::Plain;
            return Err(error);
        }
        loop {
            let (guard, woken) = self.wait(st, slot, Until::Answer);
            st = guard;
            if let Some(answer) = st.thread(slot).answer.take() {
                return Ok((st, answer));
            }
            if woken == Woken::TimedOut && !self.is_connected() {
                return Err(self.line.gone());
            }
        }
    }

    /// [`Self::ask`] without the lock, for calls beside `BINDER_WRITE_READ`.
    pub(super) fn ask_plainly(&self, request: &Request) -> io::Result<Answer> {
        let mut st = self.lock();
        let slot = self.enter(&mut st)?;
        let (_st, answer) = self.ask(st, slot, Pending::Plain, request, &[])?;
        match answer.errno {
            0 => Ok(answer),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
