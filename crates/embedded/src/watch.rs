//! A watch on the broker of a context: whether the one that was there at the start still runs.
//! Not here: errors of calls to a broker that is gone (`broker_connection`).

use std::time::Duration;

use super::broker_connection::BrokerConnection;
use super::context::EmbeddedContext;
use super::rpc::framing::Hello;
use driver::error::OpenError;

/// A connection to the broker that makes no requests. While it is open, the broker has a client and does not end by itself,
/// so an end of the connection is a failure of the broker.
#[derive(Debug)]
pub struct BrokerWatch {
    line: BrokerConnection,
    pid: u32,
}

impl EmbeddedContext {
    /// Watches the broker of this context from now on; starts it if there is none.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn watch(&self) -> Result<BrokerWatch, OpenError> {
        let hello = Hello { context: self.name().to_owned(), call_slots: false, pid: 0 };
        let (line, _) = BrokerConnection::open(self.directory(), hello)?;
        let pid = line.broker_pid().unwrap_or_default();
        Ok(BrokerWatch { line, pid })
    }
}

impl BrokerWatch {
    /// Whether the broker still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.line.is_alive()
    }

    /// Waits for the end of the broker, for `patience` at most; whether it ended.
    #[must_use]
    pub fn ends_within(&self, patience: Duration) -> bool {
        self.line.ends_within(patience)
    }

    /// The broker's process; 0 if this process cannot see it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_line_that_breaks_is_the_end_of_the_broker() {
        let context = EmbeddedContext::private("binder", Settings::default()).expect("a directory");
        let watch = context.watch().expect("a broker");
        assert!(watch.is_alive());
        assert_eq!(watch.pid(), std::process::id(), "it is a thread of this process");
        assert!(!watch.ends_within(Duration::from_millis(5)), "it waits in vain");
        watch.line.break_off();
        assert!(!watch.is_alive());
        assert!(watch.ends_within(Duration::from_secs(600)), "without a wait");
    }
}
