//! Sends requests to the broker and waits for their answers.
//! Not here: which requests (`write`, `ioctls`), the effect of an answer (`core::broker_items`).

use std::io;
use std::os::fd::BorrowedFd;

use super::Process;
use super::active_thread::ActiveThread;
use super::core::thread::{Answer, Pending};
use super::identity::Identity;
use super::wait::Until;
use crate::rpc::protocol::{Request, ThreadKey};

impl Process {
    /// Sends a request without waiting. Its answer is dropped, except trace numbers
    /// ([`Self::take_trace_numbers`]).
    pub(super) fn send(&self, request: &Request) {
        // An error is dropped: the next thread that waits notices that the broker is gone.
        let _ = self.line.send(ThreadKey::NOBODY, 0, request, &[]);
    }

    /// Sends a request outside `BINDER_WRITE_READ` and waits for its answer.
    pub(super) fn ask(&self, who: Identity, request: &Request) -> io::Result<Answer> {
        let answer = self.enter(who, |thread| thread.ask(Pending::Plain, request, &[]))?;
        match answer.errno {
            0 => Ok(answer),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

impl ActiveThread<'_> {
    /// Sends a request and waits for its answer. Signals do not interrupt the wait, as in the kernel driver.
    ///
    /// # Errors
    /// `ECONNRESET`: the broker is gone. Those of [`BrokerConnection::send`](crate::broker_connection::BrokerConnection::send).
    pub(super) fn ask(
        &mut self,
        pending: Pending,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<Answer> {
        let thread = self.thread();
        let (key, seq) = (thread.key, thread.begin_request(pending));
        let sent = self.unlocked(|process| process.line.send(key, seq, request, descriptors));
        if let Err(error) = sent {
            self.thread().pending = Pending::Plain;
            if error.kind() == io::ErrorKind::ConnectionReset {
                self.state.end_connection(self.process);
            }
            return Err(error);
        }
        loop {
            self.wait(Until::Answer, None)?;
            if let Some(answer) = self.thread().answer.take() {
                return Ok(answer);
            }
        }
    }
}
