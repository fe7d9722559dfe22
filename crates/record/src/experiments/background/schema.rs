//! Results of the background experiment: what a scheduling group with little CPU time costs the calls of a server.
//! Not here: the verdicts (`verdict`).
//! Facts: Android's page on Binder performance testing: binder changes the scheduling policy for foreground and
//! background, hwbinder does not.

use serde::{Deserialize, Serialize};

use crate::schema::Percentiles;

/// The experiment: a caller, its servers and CPU hogs on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// `binder` or `hwbinder`.
    pub flavour: String,
    /// The CPU that all of them share.
    pub cpu: u32,
    /// Number of hog processes, all in the foreground.
    pub hogs: u32,
    /// What the background is, e.g. `cgroup v1, cpu.shares 52 of 1024`.
    pub group: String,
    /// Whether the background is a control group, and not a nice value, which binder drivers pass on.
    pub is_cgroup: bool,
    /// Computing time of the server in each call, in clock units.
    pub work: u64,
    /// Calls of each row in each round.
    pub iterations: u64,
    /// Number of rounds; each contains every row once.
    pub rounds: u32,
    /// A call beside hogs that took longer is late, in clock units; `None` without calls to derive it from.
    #[serde(default)]
    pub limit: Option<u64>,
    /// The results, without hogs first, each in the order of [`Ground::ALL`].
    pub rows: Vec<BackgroundRow>,
}

/// Who is in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ground {
    /// Nobody: the reference.
    Foreground,
    /// The server.
    Background,
    /// The server, which moves to the foreground at the begin of each call and back at its end.
    Moves,
    /// The caller.
    Caller,
}

impl Ground {
    /// All of them.
    pub const ALL: [Ground; 4] = [Ground::Foreground, Ground::Background, Ground::Moves, Ground::Caller];

    /// The word used in documents and names of cases.
    pub fn name(self) -> &'static str {
        match self {
            Ground::Foreground => "foreground",
            Ground::Background => "background",
            Ground::Moves => "moves",
            Ground::Caller => "caller",
        }
    }

    /// The words in tables.
    pub fn words(self) -> &'static str {
        match self {
            Ground::Foreground => "both in the foreground",
            Ground::Background => "server in the background",
            Ground::Moves => "server moves for each call",
            Ground::Caller => "caller in the background",
        }
    }
}

/// The calls of one setting over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackgroundRow {
    /// Who is in the background.
    pub ground: Ground,
    /// Whether the hogs ran.
    pub hogs: bool,
    /// The name of the case with the times.
    pub case: String,
    /// Number of calls.
    pub calls: u64,
    /// Calls that took longer than the limit.
    pub late: u64,
    /// Exact percentiles of the times; `None` without calls.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// Exact percentiles of the time that both moves of a call took together; `None` if nobody moves.
    #[serde(default)]
    pub moves: Option<Percentiles>,
    /// Whether many more calls are late than with both in the foreground; `None` if undecided, and for that row.
    #[serde(default)]
    pub waits: Option<bool>,
}

impl Background {
    /// The row of this setting.
    pub fn row(&self, ground: Ground, hogs: bool) -> Option<&BackgroundRow> {
        self.rows.iter().find(|row| row.ground == ground && row.hogs == hogs)
    }
}
