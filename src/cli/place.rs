//! Options about the CPUs of both sides, shared by throughput and latency tests.
//! Not here: finding and choosing them (`bench::placing`).

use bench::placing::{Clusters, Sides, enter};
use clap::Args;

/// Cluster and cpuset of the processes of a test.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// CPUs of client and server: big, mid or little, as in big or big,little (client, server)
    #[arg(long, help_heading = "Placement", value_name = "CLIENT[,SERVER]")]
    pub(crate) cluster: Option<Clusters>,

    /// Put all processes into this existing cpuset, e.g. top-app
    #[arg(long, help_heading = "Placement", value_name = "NAME")]
    cpuset: Option<String>,
}

impl PlaceArgs {
    /// Moves this process there; returns the CPUs of both sides, if a cluster was chosen.
    ///
    /// # Errors
    /// This machine has no such cluster or cpuset, or does not permit it.
    pub(crate) fn enter(&self) -> Result<Option<Sides>, String> {
        enter(self.cluster, self.cpuset.as_deref())
    }

    /// The placement for the record, if one was chosen.
    pub(crate) fn words(&self) -> Option<String> {
        let cpuset = self.cpuset.as_ref().map(|name| format!("cpuset {name}"));
        let words: Vec<String> =
            self.cluster.map(|clusters| clusters.to_string()).into_iter().chain(cpuset).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}
