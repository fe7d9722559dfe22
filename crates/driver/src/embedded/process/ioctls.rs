//! Room: everything beside `BINDER_WRITE_READ`.
//! Not here: the broker's side of it (`broker::core`).
//! Facts: contract section 2, FRZ-01 to FRZ-04, EXT-01, POL-01 to POL-04.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use sys::held_signals::HeldSignals;

use super::state::{Calling, Frame, NO_ERROR, Source, Todo, looper};
use super::wait::{Until, Woken};
use super::{Guard, Process};
use crate::embedded::line::Line;
use crate::embedded::protocol::{Request, StateFile, ThreadKey};

const EAGAIN: i32 = 11;
const EINTR: i32 = 4;
/// How often a freeze looks whether everything pending is over.
const STEP: Duration = Duration::from_millis(1);

/// The steps of a freeze, as the protocol numbers them.
const THAW: u32 = 0;
const LOOK_AGAIN: u32 = 1;
const AFRESH: u32 = 2;
const GIVE_UP: u32 = 3;

impl Process {
    /// Every ioctl ends a thread's first-contact state (contract WR-05).
    fn touch(&self) -> io::Result<()> {
        let mut st = self.lock();
        let slot = self.enter(&mut st)?;
        self.end_first_contact(slot);
        Ok(())
    }

    fn end_first_contact(&self, slot: u32) {
        self.set_need_return(slot, false);
    }

    pub(crate) fn version(&self) -> io::Result<i32> {
        self.touch()?;
        Ok(abi::PROTOCOL_VERSION)
    }

    pub(crate) fn set_max_threads(&self, max: u32) -> io::Result<()> {
        self.touch()?;
        self.lock().pool.max = max;
        self.post(&Request::MaxThreads { max });
        Ok(())
    }

    pub(crate) fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()> {
        self.touch()?;
        let node = node.unwrap_or_default();
        self.ask_plainly(&Request::BecomeManager { node }).map(drop)
    }

    pub(crate) fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        self.touch()?;
        self.ask_plainly(&Request::SpamDetection { enable }).map(drop)
    }

    pub(crate) fn extended_error(&self) -> io::Result<ExtendedError> {
        let mut st = self.lock();
        let slot = self.enter(&mut st)?;
        self.look(&mut st, slot, Until::Answer);
        self.end_first_contact(slot);
        Ok(std::mem::replace(&mut st.thread(slot).extended_error, NO_ERROR))
    }

    pub(crate) fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        self.touch()?;
        let [ptr, cookie, strong, weak] = self.ask_plainly(&Request::NodeDebugInfo { above })?.words;
        Ok(NodeDebugInfo { ptr, cookie, has_strong_ref: strong as u32, has_weak_ref: weak as u32 })
    }

    pub(crate) fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        self.touch()?;
        let [strong, weak, ..] = self.ask_plainly(&Request::NodeInfoForRef { info })?.words;
        Ok(NodeInfoForRef { strong_count: strong as u32, weak_count: weak as u32, ..info })
    }

    /// Freezes step by step, so that the broker never waits (contract FRZ-02).
    pub(crate) fn freeze(&self, info: FreezeInfo) -> io::Result<()> {
        self.touch()?;
        let ask = |step| self.ask_plainly(&Request::Freeze { pid: info.pid, step }).map(drop);
        if info.enable == 0 {
            return ask(THAW);
        }
        let pending = |result: &io::Result<()>| {
            result.as_ref().is_err_and(|error| error.raw_os_error() == Some(EAGAIN))
        };
        let deadline = Instant::now() + Duration::from_millis(info.timeout_ms.into());
        // A signal that comes while the broker is asked counts as well.
        let signals = HeldSignals::hold()?;
        let mut result = ask(AFRESH);
        if !pending(&result) {
            return result;
        }
        while pending(&result) && Instant::now() < deadline {
            // A signal gives up, unless its handler restarts what it interrupts (contract FRZ-04).
            result = signals.sleep(STEP).and_then(|()| ask(LOOK_AGAIN));
        }
        if result.is_err() {
            ask(GIVE_UP)?;
        }
        result
    }

    pub(crate) fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        self.touch()?;
        let [sync_recv, async_recv, ..] = self.ask_plainly(&Request::FrozenInfo { pid })?.words;
        Ok(FrozenStatusInfo { pid, sync_recv: sync_recv as u32, async_recv: async_recv as u32 })
    }

    pub(crate) fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on, Ordering::Relaxed);
    }

    /// The text of a state file.
    pub(crate) fn state(&self, which: StateFile) -> io::Result<String> {
        let key = {
            let mut st = self.lock();
            let slot = self.enter(&mut st)?;
            st.thread(slot).key
        };
        state_text(&self.line, key, which)
    }

    /// Makes every thread's blocking read return early (contract EXT-07).
    pub(crate) fn wake_readers(&self) {
        let st = self.lock();
        for thread in st.threads.iter().flatten() {
            self.set_need_return(thread.key.slot, true);
            self.ring(thread.key.slot);
        }
    }

    /// Waits until the calling thread may read (contract POL-01).
    pub(crate) fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        let mut st = self.lock();
        let slot = self.enter(&mut st)?;
        let deadline = u64::try_from(timeout_ms).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
        let thread = st.thread(slot);
        if thread.looper & looper::POLL == 0 {
            thread.looper |= looper::POLL;
            self.bell(slot).set_looper(thread.looper);
        }
        let proc = thread.is_free();
        loop {
            let (guard, woken) = self.wait_for(st, slot, Until::Readable { proc }, deadline);
            st = guard;
            match woken {
                Woken::Ready => return Ok(true),
                Woken::Interrupted => return Err(io::Error::from_raw_os_error(EINTR)),
                Woken::TimedOut if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    return Ok(false);
                }
                Woken::TimedOut if self.is_connected() => {}
                Woken::TimedOut => return Err(self.line.gone()),
            }
        }
    }

    /// `BINDER_THREAD_EXIT`: who waits for this thread is told, what waits for it is dropped
    /// (contract EXT-01).
    pub(crate) fn thread_exit(&self) -> io::Result<()> {
        let mut st = self.lock();
        let slot = self.enter(&mut st)?;
        self.look(&mut st, slot, Until::Answer);
        self.unlist(&mut st, slot);
        let Some(mut gone) = st.exit(slot) else { return Ok(()) };
        if self.bells.listener() == Some(slot) {
            self.bells.set_listener(None);
        }
        self.bell(slot).move_out();
        for frame in std::mem::take(&mut gone.stack) {
            match frame {
                Frame::Serving(source) => self.abandon(source),
                // Its server is not told; the reply is dropped when it comes.
                Frame::Calling(Calling::Lane(ticket)) => self.disown(&mut st, ticket),
                Frame::Calling(Calling::Broker(_)) => {}
            }
        }
        for todo in gone.unread() {
            self.drop_todo(&mut st, todo);
        }
        Ok(())
    }

    fn abandon(&self, source: Source) {
        match source {
            Source::Broker(call) => {
                let transaction = call.transaction;
                self.post(&Request::Abandon { transaction });
            }
            Source::Lane(call) => call.dead(),
        }
    }

    fn drop_todo(&self, st: &mut Guard<'_>, todo: Todo) {
        match todo {
            Todo::Call(delivery) => {
                self.post(&Request::Abandon { transaction: delivery.transaction });
                // Nobody has its address, so nobody else will (the C driver loses it, contract OW-14).
                self.post(&Request::FreeBuffer { offset: delivery.buffer });
            }
            Todo::LaneCall(call) => {
                call.dead();
                self.let_go(st, u32::MAX, Some(call.node.held));
            }
            Todo::Reply(reply) => self.post(&Request::FreeBuffer { offset: reply.buffer }),
            Todo::LaneReply(reply) => self.disown(st, reply.ticket),
            // Lost with the thread, as in the C driver (contract REF-14).
            Todo::Work(_) | Todo::Word(_) | Todo::Refusal(_) | Todo::Small(..) => {}
        }
    }
}

/// Asks a broker for the text of a state file.
pub(crate) fn state_text(line: &Line, key: ThreadKey, which: StateFile) -> io::Result<String> {
    let (errno, mut descriptors) = line.fetch(key, &Request::State { which: which as u32 })?;
    match (errno, descriptors.pop()) {
        (0, Some(text)) => {
            let (mut file, mut all) = (File::from(text), String::new());
            file.rewind()?;
            file.read_to_string(&mut all)?;
            Ok(all)
        }
        (0, None) => Err(io::ErrorKind::UnexpectedEof.into()),
        (errno, _) => Err(io::Error::from_raw_os_error(errno)),
    }
}
