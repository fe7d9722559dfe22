//! The ioctls other than `BINDER_WRITE_READ`, and polling.
//! Not here: the broker's part of them (`broker::core`).
//! Facts: contract section 2, FRZ-01 to FRZ-04, EXT-01, POL-01 to POL-04.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use abi::codes::br;
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use sys::held_signals::HeldSignals;

use sys::errno::EAGAIN;

use super::Process;
use super::core::looper;
use super::core::thread::{NO_ERROR, Pending};
use super::exit::exit;
use super::identity::Identity;
use super::wait::Until;
use crate::broker_connection::BrokerConnection;
use crate::rpc::protocol::{Request, StateFile, ThreadKey};

/// Interval at which a freeze checks whether everything pending is over.
const STEP: Duration = Duration::from_millis(1);

/// Steps of a freeze, numbered as in the protocol.
const THAW: u32 = 0;
const LOOK_AGAIN: u32 = 1;
const AFRESH: u32 = 2;
const GIVE_UP: u32 = 3;

impl Process {
    /// Every ioctl ends a thread's first-contact state (contract WR-05).
    fn touch(&self, who: Identity) -> io::Result<()> {
        self.enter(who, |thread| {
            self.set_need_return(thread.slot, false);
            Ok(())
        })
    }

    pub(crate) fn version(&self, who: Identity) -> io::Result<i32> {
        self.touch(who)?;
        Ok(abi::PROTOCOL_VERSION)
    }

    pub(crate) fn set_max_threads(&self, who: Identity, max: u32) -> io::Result<()> {
        self.touch(who)?;
        self.enter(who, |thread| {
            thread.state.core.pool.max = max;
            self.send(&Request::MaxThreads { max });
            Ok(())
        })
    }

    pub(crate) fn become_context_manager(
        &self,
        who: Identity,
        node: Option<FlatBinderObject>,
    ) -> io::Result<()> {
        self.touch(who)?;
        let node = node.unwrap_or_default();
        self.ask(who, &Request::BecomeManager { node }).map(drop)
    }

    pub(crate) fn enable_oneway_spam_detection(&self, who: Identity, enable: bool) -> io::Result<()> {
        self.touch(who)?;
        self.ask(who, &Request::SpamDetection { enable }).map(drop)
    }

    pub(crate) fn extended_error(&self, who: Identity) -> io::Result<ExtendedError> {
        self.enter(who, |thread| {
            thread.look(Until::Answer);
            self.set_need_return(thread.slot, false);
            let mut error = std::mem::replace(&mut thread.thread().extended_error, NO_ERROR);
            if error.id == 0 && error.command != br::OK {
                // The broker did not see the failure; its number comes from the same sequence (contract TX-21).
                let numbers = thread.ask(Pending::Plain, &Request::Numbers { count: 1 }, &[]);
                error.id = numbers.map_or(0, |answer| answer.words[0] as u32);
            }
            Ok(error)
        })
    }

    pub(crate) fn node_debug_info(&self, who: Identity, above: u64) -> io::Result<NodeDebugInfo> {
        self.touch(who)?;
        let [ptr, cookie, strong, weak] = self.ask(who, &Request::NodeDebugInfo { above })?.words;
        Ok(NodeDebugInfo { ptr, cookie, has_strong_ref: strong as u32, has_weak_ref: weak as u32 })
    }

    pub(crate) fn node_info_for_ref(
        &self,
        who: Identity,
        info: NodeInfoForRef,
    ) -> io::Result<NodeInfoForRef> {
        self.touch(who)?;
        let [strong, weak, ..] = self.ask(who, &Request::NodeInfoForRef { info })?.words;
        Ok(NodeInfoForRef { strong_count: strong as u32, weak_count: weak as u32, ..info })
    }

    /// Freezes or thaws in steps, so that the broker never waits (contract FRZ-02).
    pub(crate) fn freeze(&self, who: Identity, info: FreezeInfo) -> io::Result<()> {
        self.touch(who)?;
        let ask = |step| self.ask(who, &Request::Freeze { pid: info.pid, step }).map(drop);
        if info.enable == 0 {
            return ask(THAW);
        }
        let pending = |result: &io::Result<()>| {
            result.as_ref().is_err_and(|error| error.raw_os_error() == Some(EAGAIN))
        };
        let deadline = Instant::now() + Duration::from_millis(info.timeout_ms.into());
        // A signal that arrives while the broker is asked counts as well.
        let signals = HeldSignals::hold()?;
        let mut result = ask(AFRESH);
        if !pending(&result) {
            return result;
        }
        while pending(&result) && Instant::now() < deadline {
            // A signal aborts the freeze, unless its handler restarts interrupted calls (contract FRZ-04).
            let there = |()| self.check_presence(who);
            result = signals.sleep(STEP).and_then(there).and_then(|()| ask(LOOK_AGAIN));
        }
        if result.is_err() {
            ask(GIVE_UP)?;
        }
        result
    }

    pub(crate) fn frozen_info(&self, who: Identity, pid: u32) -> io::Result<FrozenStatusInfo> {
        self.touch(who)?;
        let [sync_recv, async_recv, ..] = self.ask(who, &Request::FrozenInfo { pid })?.words;
        Ok(FrozenStatusInfo { pid, sync_recv: sync_recv as u32, async_recv: async_recv as u32 })
    }

    pub(crate) fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on, Ordering::Relaxed);
    }

    /// Returns the text of a state file.
    pub(crate) fn state(&self, who: Identity, which: StateFile) -> io::Result<String> {
        let key = self.enter(who, |thread| Ok(thread.thread().key))?;
        state_text(&self.line, key, which)
    }

    /// Makes every thread's blocking read return early (contract EXT-07).
    pub(crate) fn wake_readers(&self) {
        let mut state = self.state.lock();
        for slot in state.core.slots() {
            self.set_need_return(slot, true);
            self.ring(slot);
        }
        if state.pollables > 0 {
            state.show_readiness(self);
        }
    }

    /// Waits until the thread has something to read (contract POL-01).
    pub(crate) fn poll_readable(&self, who: Identity, timeout_ms: i32) -> io::Result<bool> {
        let deadline = u64::try_from(timeout_ms).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
        self.enter(who, |active| {
            let thread = active.thread();
            let takes_any = thread.is_free();
            thread.looper |= looper::POLL;
            let bits = thread.looper;
            active.bell().set_looper(bits);
            active.wait(Until::Readable { takes_any }, deadline)
        })
    }

    /// Executes `BINDER_THREAD_EXIT` (contract EXT-01).
    pub(crate) fn thread_exit(&self, who: Identity) -> io::Result<()> {
        self.enter(who, |thread| {
            exit(thread);
            Ok(())
        })
    }
}

/// Requests the text of a state file from a broker.
pub(crate) fn state_text(line: &BrokerConnection, key: ThreadKey, which: StateFile) -> io::Result<String> {
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
