//! Room: a latency test over a grid of pairs, payloads, loads and rates: its points, and how many calls
//! missed which deadline at each.
//! Not here: the times, which are in the cases; what is sustained (`crate::sweep`).

use super::latency::{Class, Percentiles};
use serde::{Deserialize, Serialize};

/// A grid, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Deadlines that every call was held against, ascending, in clock units.
    pub deadlines: Vec<u64>,
    /// A rate is sustained if this share of the calls meets the deadline, above 0 and below 1, ...
    pub meet: f64,
    /// ... with this confidence, one-sided, at least 0.5 and below 1.
    pub confidence: f64,
    /// In the order in which they were measured; one for each point and class that made calls.
    pub cells: Vec<Cell>,
}

/// A point of the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Pairs of client and server at work at once.
    pub pairs: u32,
    /// Bytes that each call carries.
    pub payload_bytes: u64,
    /// The load beside it, as typed; empty for none.
    #[serde(default)]
    pub load: String,
    /// Calls per second of each pair, both classes together; `None` for one right after the other.
    #[serde(default)]
    pub rate_hz: Option<f64>,
}

impl Point {
    /// As part of a case's name, e.g. `pairs:2/payload:64/load:cpu:2/rate:1000`.
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

    /// The same without a rate.
    #[must_use]
    pub fn unpaced(&self) -> Point {
        Point { rate_hz: None, ..self.clone() }
    }
}

/// The calls of one class at one point, of all pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Where in the grid.
    pub point: Point,
    /// Whose calls.
    pub class: Class,
    /// How many.
    pub calls: u64,
    /// How many of them took longer than each of [`Sweep::deadlines`].
    pub misses: Vec<u64>,
    /// The longest, in clock units.
    pub worst: u64,
    /// Exact percentiles of the times; `None` where they were not told.
    #[serde(default)]
    pub percentiles: Option<Percentiles>,
    /// Why a pair failed; what it had measured counts.
    #[serde(default)]
    pub failed: Option<String>,
}
