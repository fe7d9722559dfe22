//! Worker roles of the scenes: the controller and its servers.
//! Not here: their work (`controller`, `server`).

use ipc::{Minimum, Nice, NodeOptions, RtPriority};
use procgroup::Role;
use serde::{Deserialize, Serialize};

use super::{controller, server};
use crate::plan::Dialect;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InheritanceRole {
    PlayScenes {
        /// Address of the context.
        address: String,
        /// Address of the context for the servers.
        servers: String,
        dialect: String,
        inherit_rt: bool,
        /// Rule by which the driver is expected to inherit; `None` if it is not known.
        rule: Option<String>,
    },
    /// Serves calls with one thread.
    Serve(ServerParameters),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerParameters {
    /// Address of the context.
    pub(super) address: String,
    /// Name of its process.
    pub(super) title: String,
    pub(super) dialect: String,
    /// Name to register under.
    pub(super) name: String,
    /// Nice at which it opens the context, and so waits.
    pub(super) nice: i32,
    pub(super) inherit_rt: bool,
    pub(super) least: Least,
}

/// Minimum priority of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Least {
    /// The library's default.
    Usual,
    Nice(i32),
    /// `SCHED_FIFO` with this priority.
    Fifo(i32),
}

/// Returns the options of a node in this flavour.
pub(super) fn node(dialect: Dialect, inherit_rt: bool, least: Least) -> Result<NodeOptions, String> {
    let usual = dialect.node_options();
    let minimum = match least {
        Least::Usual => usual.minimum,
        Least::Nice(nice) => Minimum::Normal(Nice::try_from(nice).map_err(|error| error.to_string())?),
        Least::Fifo(priority) => {
            Minimum::Fifo(RtPriority::try_from(priority).map_err(|error| error.to_string())?)
        }
    };
    Ok(NodeOptions { minimum, inherit_rt, ..usual })
}

impl Role for InheritanceRole {
    const NAME: &'static str = "inheritance";

    fn title(&self) -> String {
        match self {
            Self::PlayScenes { .. } => "scenes".to_owned(),
            Self::Serve(server) => server.title.clone(),
        }
    }

    fn run(self) -> Result<(), String> {
        // Far more than any scene needs; the kernel ends the process of a thread that exceeds it.
        const RUNNING_US: (u64, u64) = (2_000_000, 3_000_000);
        // Refused only where the limit is already lower.
        let _ = sys::limits::set_realtime_us(RUNNING_US.0, RUNNING_US.1);
        // Waiting threads are SCHED_OTHER, whatever policy this program was started with. The kernel may
        // refuse the change from SCHED_IDLE, which then shows in every hop.
        let _ = sys::sched::set_policy(0, sys::sched::Policy::Other);
        match self {
            Self::PlayScenes { address, servers, dialect, inherit_rt, rule } => {
                let rule = rule.as_ref().map(|rule| rule.parse()).transpose()?;
                controller::play_scenes(&address, &servers, dialect.parse()?, inherit_rt, rule)
            }
            Self::Serve(parameters) => {
                controller::mark_scene();
                server::serve(&parameters)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
