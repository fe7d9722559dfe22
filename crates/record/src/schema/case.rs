//! Room: what was measured: case, repetition, outcome, counters.
//! Not here: the spread of single samples (`crate::distribution`), aggregates (`crate::stats`).

use super::latency::Latency;
use crate::distribution::Distribution;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One named thing that is measured, with all its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Full name, e.g. `BM_sendVec_binder/4`; only `[A-Za-z0-9_/:.-]`, as test harnesses put it
    /// into regular expressions unescaped.
    pub name: String,
    /// The part before the arguments, e.g. `BM_sendVec_binder`.
    pub family: String,
    /// Which family of the run, from 0.
    pub family_index: u32,
    /// Which case of its family, from 0.
    pub per_family_instance_index: u32,
    /// Whether it is a subject of the test or a yardstick beside it.
    pub kind: CaseKind,
    /// Payload bytes one transaction carries each way.
    pub payload_bytes: u64,
    /// Client threads at work at once; at least 1.
    pub threads: u32,
    /// Who called whom, where many were at work; `None` for one client and its service.
    #[serde(default)]
    pub crowd: Option<Crowd>,
    /// What a latency test found beside the times; `None` for other tests.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// Free words shown behind the row.
    #[serde(default)]
    pub label: Option<String>,
    /// In the order of their index.
    pub repetitions: Vec<Repetition>,
}

/// Who called whom in a case with many at work. `Measurement::real_total` is then the time that all
/// clients together spent in calls, and counters tell the pace of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    /// Who calls whom.
    pub shape: CrowdShape,
    /// Services that are called.
    pub services: u32,
    /// True when there were more clients than CPUs: latencies then tell of the queue.
    pub overloaded: bool,
}

/// Who calls whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrowdShape {
    /// Each worker serves, and calls a random other one each time.
    Random,
    /// Each client calls a service of its own.
    Pairs,
    /// All clients call the same services, a random one each time.
    Services,
}

impl CrowdShape {
    /// The word used in documents, names of cases and tables.
    pub fn name(self) -> &'static str {
        match self {
            CrowdShape::Random => "random",
            CrowdShape::Pairs => "pairs",
            CrowdShape::Services => "services",
        }
    }
}

/// What a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseKind {
    /// A subject of the test.
    Test,
    /// A yardstick: the same payload by other means.
    Control,
}

/// One repetition of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// From 0.
    pub index: u32,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ran to its end, with at least one iteration.
    Measured(Measurement),
    /// It broke.
    Failed {
        /// Why.
        reason: String,
        /// What had been measured until then.
        #[serde(default)]
        partial: Option<Measurement>,
    },
    /// It was not tried.
    Skipped {
        /// Why.
        reason: String,
    },
}

impl Outcome {
    /// The numbers of a repetition that ran to its end.
    pub fn measured(&self) -> Option<&Measurement> {
        match self {
            Outcome::Measured(measurement) => Some(measurement),
            Outcome::Failed { .. } | Outcome::Skipped { .. } => None,
        }
    }
}

/// The numbers of one repetition, in clock units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Transactions made.
    pub iterations: u64,
    /// Wall clock spent on all of them together.
    pub real_total: u64,
    /// CPU time of the measuring process spent on all of them together.
    pub cpu_total: u64,
    /// The single round trips; not more than `iterations`.
    pub samples: Distribution,
    /// Further numbers, in order.
    #[serde(default)]
    pub counters: Counters,
}

impl Measurement {
    /// Wall clock per transaction in clock units; `None` when there was none.
    pub fn mean_real(&self) -> Option<f64> {
        per_iteration(self.real_total, self.iterations)
    }

    /// CPU time per transaction in clock units; `None` when there was none.
    pub fn mean_cpu(&self) -> Option<f64> {
        per_iteration(self.cpu_total, self.iterations)
    }
}

fn per_iteration(total: u64, iterations: u64) -> Option<f64> {
    (iterations > 0).then(|| total as f64 / iterations as f64)
}

impl Case {
    /// The repetitions that ran to their end.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        self.repetitions.iter().filter_map(|rep| rep.outcome.measured())
    }

    /// Mean of the repetitions' mean wall clock per transaction, in clock units.
    pub fn mean_real(&self) -> Option<f64> {
        let means: Vec<f64> = self.measurements().filter_map(Measurement::mean_real).collect();
        crate::stats::mean(&means)
    }

    /// Median wall clock of a transaction over all repetitions, in clock units.
    pub fn median_real(&self) -> Option<f64> {
        let samples = Distribution::merged(self.measurements().map(|numbers| &numbers.samples))?;
        samples.percentile(50.0).map(|median| median as f64)
    }
}

/// A further number of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// The final value: a rate is already divided by its time.
    pub value: f64,
    /// How to read it.
    #[serde(default)]
    pub kind: CounterKind,
}

/// How to read a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterKind {
    /// The number itself.
    #[default]
    Plain,
    /// Per second.
    Rate,
    /// Seconds per one.
    Inverted,
}

/// Named counters in the order they were set; every value is finite, every name there once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters(Vec<(String, Counter)>);

impl Counters {
    /// Sets a counter, replacing one of the same name; a value that is not finite is no
    /// measurement and is left out.
    pub fn set(&mut self, name: impl Into<String>, value: f64, kind: CounterKind) {
        if !value.is_finite() {
            return;
        }
        let (name, counter) = (name.into(), Counter { value, kind });
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = counter,
            None => self.0.push((name, counter)),
        }
    }

    /// The counter of this name.
    pub fn find(&self, name: &str) -> Option<Counter> {
        self.iter().find(|(known, _)| *known == name).map(|(_, counter)| counter)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Counter)> {
        self.0.iter().map(|(name, counter)| (name.as_str(), *counter))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, counter) in &self.0 {
            map.serialize_entry(name, counter)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Counters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Counters, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Counters;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from counter name to {value, kind}")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Counters, M::Error> {
                let mut counters = Counters::default();
                while let Some((name, counter)) = map.next_entry::<String, Counter>()? {
                    counters.0.push((name, counter));
                    if counters.0.len() > Counters::LIMIT {
                        return Err(serde::de::Error::custom("too many counters"));
                    }
                }
                Ok(counters)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Counters {
    /// More counters than this are refused on reading.
    pub const LIMIT: usize = 256;
}
