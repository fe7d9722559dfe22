//! The measurements of a run: case, repetition, outcome, counters.
//! Not here: distributions of samples (`crate::distribution`), aggregates (`crate::stats`).

use super::latency::Latency;
use super::stated::Stated;
use crate::distribution::Distribution;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One benchmark with all its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Full name, e.g. `BM_sendVec_binder/4`. Only `[A-Za-z0-9_/:.-]`, because test harnesses use it in regular
    /// expressions unescaped.
    pub name: String,
    /// The part before the arguments, e.g. `BM_sendVec_binder`.
    pub family: String,
    /// Index of its family in the run, from 0.
    pub family_index: u32,
    /// Index of the case in its family, from 0.
    pub per_family_instance_index: u32,
    /// Whether it is a subject of the test or a control.
    pub kind: CaseKind,
    /// Bytes of payload in each direction of a transaction.
    pub payload_bytes: u64,
    /// Number of concurrent client threads; at least 1.
    pub threads: u32,
    /// The topology of a case with many clients; `None` for one client and its service.
    #[serde(default)]
    pub crowd: Option<Crowd>,
    /// Results of a latency test besides the times; `None` for other tests.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// Free text shown behind the row.
    #[serde(default)]
    pub label: Option<String>,
    /// The repetitions, ordered by index.
    pub repetitions: Vec<Repetition>,
}

/// The topology of a case with many clients. `Measurement::real_total` is then the time that all clients together
/// spent in calls; counters hold their total rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    /// The pattern of calls.
    pub shape: CrowdShape,
    /// Number of services that are called.
    pub services: u32,
    /// True if there were more clients than CPUs: latencies then include queueing for a CPU.
    pub overloaded: bool,
}

/// The pattern of calls between clients and services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrowdShape {
    /// Each worker is a service and calls a random other worker each time.
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

/// The purpose of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CaseKind {
    /// A subject of the test.
    Test,
    /// A control: the same payload by other means of IPC.
    Control,
}

/// One repetition of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Index, from 0.
    pub index: u32,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ran to its end, with at least one iteration.
    Measured(Measurement),
    /// It broke.
    Failed {
        /// The reason.
        reason: String,
        /// The measurement until it broke.
        #[serde(default)]
        partial: Option<Measurement>,
    },
    /// It was not tried.
    Skipped {
        /// The reason.
        reason: String,
    },
}

impl Outcome {
    /// The measurement of a repetition that ran to its end.
    pub fn measured(&self) -> Option<&Measurement> {
        match self {
            Outcome::Measured(measurement) => Some(measurement),
            Outcome::Failed { .. } | Outcome::Skipped { .. } => None,
        }
    }

    /// The measurement; of a failed repetition, the one until it broke.
    pub fn numbers(&self) -> Option<&Measurement> {
        match self {
            Outcome::Failed { partial, .. } => partial.as_ref(),
            Outcome::Measured(_) | Outcome::Skipped { .. } => self.measured(),
        }
    }

    /// The reason why it broke.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Outcome::Failed { reason, .. } => Some(reason),
            Outcome::Measured(_) | Outcome::Skipped { .. } => None,
        }
    }

    /// The reason why it was not tried.
    pub fn skipped(&self) -> Option<&str> {
        match self {
            Outcome::Skipped { reason } => Some(reason),
            Outcome::Measured(_) | Outcome::Failed { .. } => None,
        }
    }
}

/// The numbers of one repetition, in clock units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Transactions made.
    pub iterations: u64,
    /// Wall-clock time of all transactions together.
    pub real_total: u64,
    /// CPU time of the measuring process for all transactions together.
    pub cpu_total: u64,
    /// The times of single round trips; at most `iterations` of them.
    pub samples: Distribution,
    /// Looks at the CPUs of both sides; `None` where the sides were placed, or there is one side only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuLooks>,
    /// Further numbers, in the order in which they were set.
    #[serde(default)]
    pub counters: Counters,
    /// The figures of another program, whose single times are not known; `None` where `samples` are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<Box<Stated>>,
}

/// Looks at the CPUs of the caller and its server between calls, where the scheduler places them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLooks {
    /// Number of looks.
    pub taken: u64,
    /// Number of looks with both on one CPU; at most `taken`.
    pub together: u64,
}

impl Measurement {
    /// Mean wall-clock time of a transaction in clock units; `None` without transactions.
    pub fn mean_real(&self) -> Option<f64> {
        per_iteration(self.real_total, self.iterations)
    }

    /// Mean CPU time of a transaction in clock units; `None` without transactions.
    pub fn mean_cpu(&self) -> Option<f64> {
        per_iteration(self.cpu_total, self.iterations)
    }
}

fn per_iteration(total: u64, iterations: u64) -> Option<f64> {
    (iterations > 0).then(|| total as f64 / iterations as f64)
}

impl Case {
    /// The outcomes of all repetitions.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.repetitions.iter().map(|repetition| &repetition.outcome)
    }

    /// The repetitions that ran to their end.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        self.outcomes().filter_map(Outcome::measured)
    }

    /// The looks of all repetitions that ran to their end; `None` without any.
    pub fn cpu_looks(&self) -> Option<CpuLooks> {
        self.measurements().filter_map(|numbers| numbers.cpus).reduce(|all, more| CpuLooks {
            taken: all.taken + more.taken,
            together: all.together + more.together,
        })
    }

    /// The reason of the first failed repetition.
    pub fn failure(&self) -> Option<&str> {
        self.outcomes().find_map(Outcome::failure)
    }

    /// The samples of all repetitions that ran to their end; `None` without any.
    pub fn samples(&self) -> Option<Distribution> {
        Distribution::merged(self.measurements().map(|numbers| &numbers.samples))
    }

    /// Mean over the repetitions of their mean wall-clock time of a transaction, in clock units.
    pub fn mean_real(&self) -> Option<f64> {
        let means: Vec<f64> = self.measurements().filter_map(Measurement::mean_real).collect();
        crate::stats::mean(&means)
    }

    /// Mean over the repetitions of their mean CPU time of a transaction, in clock units.
    pub fn mean_cpu(&self) -> Option<f64> {
        let means: Vec<f64> = self.measurements().filter_map(Measurement::mean_cpu).collect();
        crate::stats::mean(&means)
    }

    /// Median wall-clock time of a transaction over all repetitions, in clock units.
    pub fn median_real(&self) -> Option<f64> {
        self.samples()?.percentile(50.0).map(|median| median as f64)
    }

    /// Median of each repetition that ran to its end, in clock units.
    pub fn medians(&self) -> impl Iterator<Item = f64> {
        self.measurements().filter_map(|numbers| numbers.samples.percentile(50.0)).map(|median| median as f64)
    }
}

/// A further number of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// The final value: a rate is already divided by its time.
    pub value: f64,
    /// Its kind.
    #[serde(default)]
    pub kind: CounterKind,
}

/// The kind of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CounterKind {
    /// A plain number.
    #[default]
    Plain,
    /// A rate per second.
    Rate,
    /// Seconds per event.
    Inverted,
}

/// Named counters in the order in which they were set. Values are finite, names unique.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters(Vec<(String, Counter)>);

impl Counters {
    /// Sets a counter, replacing one of the same name. A value that is not finite is left out.
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

    /// The counter with this name.
    pub fn find(&self, name: &str) -> Option<Counter> {
        self.iter().find(|(known, _)| *known == name).map(|(_, counter)| counter)
    }

    /// All counters, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Counter)> {
        self.0.iter().map(|(name, counter)| (name.as_str(), *counter))
    }

    /// Whether there are no counters.
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
    /// Largest number of counters that reading accepts.
    pub const LIMIT: usize = 256;
}
