//! Constraints that a test was put under on purpose, and what they did to it.
//! Not here: putting a test under them (`bench::constraints`).

use serde::{Deserialize, Serialize};
use units::bytes;

/// Constraints of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraints {
    /// The memory of all its processes; `None`: not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<LimitedMemory>,
    /// The least and the most utilization that the scheduler assumed of its threads, in 1/1024 of the fastest CPU; `None`: not
    /// clamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<[u32; 2]>,
    /// Whether the ordinary threads of the machine were scheduled by sched_ext, all in one queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sched_ext: bool,
}

impl Constraints {
    /// The constraints in words, without their effects; empty if there are none.
    #[must_use]
    pub fn words(&self) -> String {
        let memory = self.memory.as_ref().map(|memory| format!("memory {}", bytes(memory.limit_bytes)));
        let utilization = self.utilization.map(|[min, max]| format!("utilization {min} to {max} of 1024"));
        let scheduler = self.sched_ext.then(|| "sched_ext".to_owned());
        memory.into_iter().chain(utilization).chain(scheduler).collect::<Vec<_>>().join(", ")
    }
}

/// A limit on memory, and what it did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitedMemory {
    /// Limit of what is charged to the processes and of the kernel driver's buffers together.
    pub limit_bytes: u64,
    /// Largest memory that was charged to the processes; `None`: the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Pages charged to the processes that the kernel reclaimed; `None`, here and below: the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_reclaimed: Option<u64>,
    /// Reclaimed pages that were charged to the processes and soon faulted in again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_refaulted: Option<u64>,
    /// Largest memory of the kernel driver's buffers, which is charged to nobody.
    #[serde(default)]
    pub buffers_peak_bytes: u64,
    /// Pages of those that were reclaimed, because both together were above the limit.
    #[serde(default)]
    pub buffer_pages_reclaimed: u64,
    /// Those that were faulted in again.
    #[serde(default)]
    pub buffer_pages_refaulted: u64,
    /// Processes that the kernel killed for want of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed: Option<u64>,
}

impl LimitedMemory {
    /// The effects in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let known = |number: Option<u64>| number.map_or("unknown".to_owned(), |number| number.to_string());
        let whole = |peak: u64| bytes(peak.checked_next_multiple_of(1024).unwrap_or(peak));
        let charged = self.peak_bytes.map_or("unknown".to_owned(), whole);
        format!(
            "Memory of at most {}: charged up to {charged}, {} pages reclaimed, {} faulted in again; the driver's buffers up to \
             {}, {} pages reclaimed, {} faulted in again; processes killed: {}",
            bytes(self.limit_bytes),
            known(self.pages_reclaimed),
            known(self.pages_refaulted),
            bytes(self.buffers_peak_bytes),
            self.buffer_pages_reclaimed,
            self.buffer_pages_refaulted,
            known(self.killed)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_named_and_their_effects_counted() {
        assert_eq!(Constraints::default().words(), "");
        let memory = LimitedMemory {
            limit_bytes: 16 << 20,
            peak_bytes: Some((9 << 20) + 1),
            pages_reclaimed: Some(0),
            buffers_peak_bytes: 3 << 20,
            buffer_pages_reclaimed: 500,
            buffer_pages_refaulted: 400,
            ..LimitedMemory::default()
        };
        let line = memory.line();
        for want in [
            "at most 16 MiB",
            "up to 9217 KiB, 0 pages reclaimed, unknown faulted",
            "up to 3 MiB, 500 pages reclaimed, 400 faulted",
        ] {
            assert!(line.contains(want), "{line}");
        }
        let hostile = LimitedMemory { peak_bytes: Some(u64::MAX), ..memory.clone() };
        assert!(hostile.line().contains("charged up to "));
        let both = Constraints { memory: Some(memory), utilization: Some([0, 512]), sched_ext: true };
        assert_eq!(both.words(), "memory 16 MiB, utilization 0 to 512 of 1024, sched_ext");
    }
}
