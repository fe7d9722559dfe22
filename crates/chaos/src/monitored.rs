//! A connection that checks death notifications: each cookie is reported once. The runtime never reuses a cookie and
//! would not notice a second notification.
//! Facts: contract DTH-02, DTH-06.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use abi::stream::Command;
use abi::{Return, Returns};
use driver::{Connection, Exchange};

/// Death notifications that a process received.
#[derive(Debug, Default)]
pub(super) struct DeathNotices {
    seen: Mutex<BTreeSet<u64>>,
    twice: Mutex<Vec<u64>>,
}

impl DeathNotices {
    fn look(&self, returned: &[u8]) {
        for item in Returns::new(returned) {
            if let Ok(Return::DeadBinder(cookie)) = item
                && !self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(cookie.0)
            {
                self.twice.lock().unwrap_or_else(PoisonError::into_inner).push(cookie.0);
            }
        }
    }

    /// Cookies that were reported more than once.
    pub(super) fn twice(&self) -> Vec<u64> {
        self.twice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Remembered exchanges per thread.
const REMEMBERED: usize = 24;

thread_local! {
    /// Bytes written and read in this thread's last exchanges.
    static RECENT: RefCell<VecDeque<(Vec<u8>, Vec<u8>)>> = const { RefCell::new(VecDeque::new()) };
}

fn remember(written: &[u8], returned: &[u8]) {
    // Fails only during thread exit, when no report follows.
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

/// The calling thread's last exchanges, oldest first, for a failure message.
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

/// The name of a command or return, without its fields.
fn short(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

/// A connection with checked death notifications.
pub(super) struct MonitoredConnection<C> {
    pub(super) inner: C,
    pub(super) notices: Arc<DeathNotices>,
}

impl<C: Connection> Connection for MonitoredConnection<C> {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        let (before, write) = (exchange.read_consumed, exchange.write_consumed);
        let result = self.inner.write_read(exchange);
        remember(
            exchange.write.get(write..exchange.write_consumed).unwrap_or_default(),
            exchange.returned().get(before..).unwrap_or_default(),
        );
        self.notices.look(exchange.returned().get(before..).unwrap_or_default());
        result
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        self.inner.poll_readable(timeout_ms)
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.inner.thread_exit()
    }

    driver::forward_connection!(inner);
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
        let notices = DeathNotices::default();
        notices.look(&returned(&[1, 2]));
        notices.look(&returned(&[3]));
        assert_eq!(notices.twice(), [0; 0]);
        notices.look(&returned(&[4, 2]));
        assert_eq!(notices.twice(), [2]);
    }
}
