//! Room: what a process of the scenes is told when it is started.
//! Not here: doing it (`conductor`, `server`).

use ipc::{Minimum, Nice, NodeOptions, RtPriority};
use serde::{Deserialize, Serialize};

use super::{COMMAND, conductor, server};
use crate::plan::Dialect;

/// What one process is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Assignment {
    /// To play all scenes.
    Conduct {
        /// Of the context.
        address: String,
        /// The same for the servers.
        servers: String,
        dialect: String,
        inherit_rt: bool,
        /// What the driver is expected to hand on; `None` if that is not known.
        rule: Option<String>,
    },
    /// To serve calls with one thread.
    Serve(Serving),
}

/// What a server is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Serving {
    /// Of the context.
    pub(super) address: String,
    pub(super) dialect: String,
    /// To register under.
    pub(super) name: String,
    /// At which nice it opens the context, and so waits.
    pub(super) nice: i32,
    pub(super) inherit_rt: bool,
    pub(super) least: Least,
}

/// Of the priority that a node asks for at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Least {
    /// The library's own.
    Usual,
    /// This nice.
    Nice(i32),
    /// `SCHED_FIFO` with this priority.
    Fifo(i32),
}

/// The options of a node in this flavour.
pub(super) fn node(dialect: Dialect, inherit_rt: bool, least: Least) -> Result<NodeOptions, String> {
    let usual = match dialect {
        Dialect::Binder(_) => NodeOptions::BINDER,
        Dialect::Hwbinder => NodeOptions::HWBINDER,
    };
    let minimum = match least {
        Least::Usual => usual.minimum,
        Least::Nice(nice) => Minimum::Normal(Nice::try_from(nice).map_err(|error| error.to_string())?),
        Least::Fifo(priority) => {
            Minimum::Fifo(RtPriority::try_from(priority).map_err(|error| error.to_string())?)
        }
    };
    Ok(NodeOptions { minimum, inherit_rt, ..usual })
}

impl Assignment {
    /// The words that start a process with it.
    pub(super) fn words(&self) -> Result<Vec<String>, serde_json::Error> {
        Ok(vec![COMMAND.to_owned(), serde_json::to_string(self)?])
    }

    pub(super) fn parse(words: &[String]) -> Option<Self> {
        let [word] = words else { return None };
        serde_json::from_str(word).ok()
    }

    pub(super) fn act(&self) -> Result<(), String> {
        // Far more than any scene needs; a thread that spins all the same ends its process.
        const RUNNING_US: (u64, u64) = (2_000_000, 3_000_000);
        // Refused only where the limit is lower already.
        let _ = sys::rt_limit::limit_realtime_us(RUNNING_US.0, RUNNING_US.1);
        match self {
            Self::Conduct { address, servers, dialect, inherit_rt, rule } => {
                let rule = rule.as_ref().map(|rule| rule.parse()).transpose()?;
                conductor::conduct(address, servers, dialect.parse()?, *inherit_rt, rule)
            }
            Self::Serve(serving) => server::serve(serving),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_is_understood() {
        let serving = Serving {
            address: "/dev/binder".to_owned(),
            dialect: "hwbinder".to_owned(),
            name: "n".to_owned(),
            nice: 4,
            inherit_rt: true,
            least: Least::Fifo(10),
        };
        let assignment = Assignment::Serve(serving);
        let words = assignment.words().expect("JSON");
        assert_eq!(words[0], COMMAND);
        assert_eq!(Assignment::parse(&words[1..]), Some(assignment));
    }

    #[test]
    fn a_node_is_the_librarys_but_for_what_was_asked() {
        let usual = node(Dialect::Hwbinder, true, Least::Usual).expect("fine");
        assert_eq!(usual, NodeOptions::HWBINDER);
        let other = node(Dialect::Hwbinder, false, Least::Fifo(10)).expect("fine");
        assert_eq!(other.flags(), 0x100 | 1 << 9 | 10);
        assert!(node(Dialect::Hwbinder, false, Least::Fifo(100)).is_err());
        assert!(node(Dialect::Hwbinder, false, Least::Nice(20)).is_err());
    }
}
