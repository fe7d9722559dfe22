//! Room: a connection that keeps an eye on death notifications: each cookie is told of once.
//! The runtime never uses a cookie twice, and would not notice a second notification.
//! Facts: contract DTH-02, DTH-06.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};
use abi::stream::Command;
use abi::{Return, Returns};
use driver::{Connection, Exchange};

/// The notifications that one process read.
#[derive(Debug, Default)]
pub(super) struct Obituaries {
    seen: Mutex<BTreeSet<u64>>,
    twice: Mutex<Vec<u64>>,
}

impl Obituaries {
    fn look(&self, returned: &[u8]) {
        for item in Returns::new(returned) {
            if let Ok(Return::DeadBinder(cookie)) = item
                && !self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(cookie.0)
            {
                self.twice.lock().unwrap_or_else(PoisonError::into_inner).push(cookie.0);
            }
        }
    }

    /// Cookies that were told of more than once.
    pub(super) fn twice(&self) -> Vec<u64> {
        self.twice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How many of a thread's exchanges are remembered.
const REMEMBERED: usize = 24;

thread_local! {
    /// The bytes written and read in this thread's last exchanges.
    static RECENT: RefCell<VecDeque<(Vec<u8>, Vec<u8>)>> = const { RefCell::new(VecDeque::new()) };
}

fn remember(written: &[u8], returned: &[u8]) {
    // A thread that ends still takes leave of its driver; there is nothing to complain of by then.
    let _ = RECENT.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        let (mut write, mut read) = if recent.len() < REMEMBERED {
            Default::default()
        } else {
            recent.pop_front().unwrap_or_default()
        };
        write.clear();
        write.extend_from_slice(written);
        read.clear();
        read.extend_from_slice(returned);
        recent.push_back((write, read));
    });
}

/// The calling thread's last exchanges with its driver, oldest first, for a complaint about one.
pub(super) fn recent() -> String {
    let mut text = String::new();
    RECENT.with_borrow(|recent| {
        for (written, returned) in recent {
            let mut rest = &written[..];
            text.push_str(" / wrote");
            while let Ok((word, command)) = abi::stream::first(rest) {
                let _ = match command {
                    Command::Transaction(data, _) => {
                        write!(text, " call({}, {:#x}, {:#x})", data.target, data.code, data.flags)
                    }
                    Command::Reply(..) => write!(text, " reply"),
                    other => write!(text, " {}", short(&other)),
                };
                rest = rest.get(size_of_val(&word) + word.payload_len()..).unwrap_or_default();
            }
            text.push_str(", read");
            for item in Returns::new(returned) {
                let _ = match item {
                    Ok(Return::Noop) => Ok(()),
                    Ok(Return::Transaction(delivery)) => write!(text, " call({:#x})", delivery.code),
                    Ok(other) => write!(text, " {}", short(&other)),
                    Err(error) => write!(text, " {error}"),
                };
            }
        }
    });
    text
}

/// The name of a command or return without its long values.
fn short(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// A connection whose death notifications are watched.
pub(super) struct Watched<C> {
    pub(super) inner: C,
    pub(super) obituaries: Arc<Obituaries>,
}

impl<C: Connection> Connection for Watched<C> {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        let (before, write) = (exchange.read_consumed, exchange.write_consumed);
        let result = self.inner.write_read(exchange);
        remember(
            exchange.write.get(write..exchange.write_consumed).unwrap_or_default(),
            exchange.returned().get(before..).unwrap_or_default(),
        );
        self.obituaries.look(exchange.returned().get(before..).unwrap_or_default());
        result
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        self.inner.poll_readable(timeout_ms)
    }

    fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.inner.lent(address, len)
    }

    fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        self.inner.take_fd(address)
    }

    fn wake_readers(&self) -> io::Result<()> {
        self.inner.wake_readers()
    }

    fn map_size(&self) -> usize {
        self.inner.map_size()
    }

    fn version(&self) -> io::Result<i32> {
        self.inner.version()
    }

    fn set_max_threads(&self, threads: u32) -> io::Result<()> {
        self.inner.set_max_threads(threads)
    }

    fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()> {
        self.inner.become_context_manager(node)
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.inner.thread_exit()
    }

    fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        self.inner.enable_oneway_spam_detection(enable)
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        self.inner.extended_error()
    }

    fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        self.inner.node_debug_info(above)
    }

    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        self.inner.node_info_for_ref(info)
    }

    fn freeze(&self, info: FreezeInfo) -> io::Result<()> {
        self.inner.freeze(info)
    }

    fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        self.inner.frozen_info(pid)
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.inner.set_nonblocking(on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::codes::br;

    fn returned(cookies: &[u64]) -> Vec<u8> {
        let mut bytes = br::NOOP.to_ne_bytes().to_vec();
        for cookie in cookies {
            bytes.extend_from_slice(&br::DEAD_BINDER.to_ne_bytes());
            bytes.extend_from_slice(&cookie.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn a_second_notification_is_noticed() {
        let obituaries = Obituaries::default();
        obituaries.look(&returned(&[1, 2]));
        obituaries.look(&returned(&[3]));
        assert_eq!(obituaries.twice(), [0; 0]);
        obituaries.look(&returned(&[4, 2]));
        assert_eq!(obituaries.twice(), [2]);
    }
}
