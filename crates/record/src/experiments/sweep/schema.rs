//! A sweep: a latency test over a grid of pairs, payloads, loads and rates, with the missed deadlines at each point.
//! Not here: the times (in the cases), sustained rates (`sustained`).

use crate::schema::{Class, Percentiles};
use serde::{Deserialize, Serialize};

/// The measured grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Deadlines that every call was compared with, ascending, in clock units.
    pub deadlines: Vec<u64>,
    /// Least share of calls that must meet the deadline at a sustained rate, above 0 and below 1.
    pub meet: f64,
    /// One-sided confidence of `meet`, at least 0.5 and below 1.
    pub confidence: f64,
    /// The cells in the order of measurement, one for each point and class that made calls.
    pub cells: Vec<Cell>,
}

/// A point of the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Number of concurrent pairs of client and server.
    pub pairs: u32,
    /// Payload of each call in bytes.
    pub payload_bytes: u64,
    /// The background load, as typed; empty for none.
    #[serde(default)]
    pub load: String,
    /// Calls per second of each pair, both classes together; `None` if each call followed the one before.
    #[serde(default)]
    pub rate_hz: Option<f64>,
}

impl Point {
    /// The point as part of a case's name, e.g. `pairs:2/payload:64/load:cpu:2/rate:1000`.
    pub fn name(&self) -> String {
        let mut name = format!("pairs:{}/payload:{}", self.pairs, self.payload_bytes);
        if !self.load.is_empty() {
            let allowed = |c: char| if c.is_ascii_alphanumeric() || ":.-".contains(c) { c } else { '_' };
            name += &format!("/load:{}", self.load.chars().map(allowed).collect::<String>());
        }
        if let Some(rate) = self.rate_hz {
            name += &format!("/rate:{rate}");
        }
        name
    }

    /// This point without a rate.
    #[must_use]
    pub fn unpaced(&self) -> Point {
        Point { rate_hz: None, ..self.clone() }
    }
}

/// The calls of one class at one point, over all pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The point.
    pub point: Point,
    /// The class of the callers.
    pub class: Class,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that took longer than each of [`Sweep::deadlines`].
    pub misses: Vec<u64>,
    /// The longest time, in clock units.
    pub worst: u64,
    /// Exact percentiles of the times; `None` if they were not recorded.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// The reason why a pair failed; its calls before the failure count.
    #[serde(default)]
    pub failed: Option<String>,
}
