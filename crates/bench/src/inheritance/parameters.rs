//! Parameters of the processes of the scenes, and the node that a server has by them.
//! Not here: their work (`role`).

use ipc::{Minimum, Nice, NodeOptions, RtPriority};
use serde::{Deserialize, Serialize};

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
