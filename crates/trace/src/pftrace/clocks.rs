//! Clocks of a trace: snapshots, and times on the boot clock.
//! Facts: `clock_snapshot.proto`: each snapshot has the times of several clocks at one moment. Numbers up to 63 are the
//! system's clocks, 64 to 127 are those of one packet sequence.

use std::collections::{BTreeMap, HashMap};

use super::wire::{Fields, first};

/// `BUILTIN_CLOCK_MONOTONIC_RAW`, `BUILTIN_CLOCK_BOOTTIME`.
pub(super) const MONOTONIC_RAW: u32 = 5;
pub(super) const BOOT: u32 = 6;
/// Clocks of one packet sequence.
pub(super) const OF_SEQUENCE: std::ops::Range<u32> = 64..128;
/// Numbers of our own for clocks that ftrace names and no snapshot has.
pub(super) const FTRACE: u32 = 1 << 16;

/// Maximum number of snapshots of one clock; a day has 8640.
const MOST: usize = 1 << 16;
/// Maximum number of clocks.
const MOST_CLOCKS: usize = 256;

/// Time of one clock in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) clock: u32,
    pub(super) ts: u64,
    pub(super) incremental: bool,
    /// Nanoseconds per unit.
    pub(super) unit: u64,
}

/// Readings of a `ClockSnapshot`.
pub(super) fn readings(snapshot: &[u8]) -> Vec<Reading> {
    let clocks = Fields::of(snapshot).filter(|(number, _)| *number == 1).take(256);
    clocks
        .map(|(_, clock)| {
            let number = |field| first(clock.bytes(), field).map_or(0, |value| value.number());
            Reading {
                clock: u32::try_from(number(1)).unwrap_or(u32::MAX),
                ts: number(2),
                incremental: number(3) != 0,
                unit: number(4).max(1),
            }
        })
        .collect()
}

/// Known pairs of each clock's time and boot time.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    pairs: HashMap<u32, BTreeMap<u64, u64>>,
}

impl Clocks {
    /// Takes a snapshot; returns its boot time, if it is known.
    pub(super) fn take(&mut self, readings: &[Reading]) -> Option<u64> {
        let of_boot = readings.iter().find(|reading| reading.clock == BOOT).map(|reading| reading.ts);
        let global = || readings.iter().filter(|reading| !OF_SEQUENCE.contains(&reading.clock));
        let boot =
            of_boot.or_else(|| global().find_map(|reading| self.to_boot(reading.clock, reading.ts)))?;
        for reading in global().filter(|reading| reading.clock != BOOT) {
            self.pair(reading.clock, reading.ts, boot);
        }
        Some(boot)
    }

    /// Notes that a clock showed `ts` at the boot time `boot`.
    pub(super) fn pair(&mut self, clock: u32, ts: u64, boot: u64) {
        if self.pairs.len() >= MOST_CLOCKS && !self.pairs.contains_key(&clock) {
            return;
        }
        let pairs = self.pairs.entry(clock).or_default();
        if pairs.len() < MOST {
            // Snapshots come in order, but for joined traces.
            pairs.insert(ts, boot);
        }
    }

    /// Boot time of a clock's time, by the last snapshot before it; `None` if no snapshot has the clock.
    pub(super) fn to_boot(&self, clock: u32, ts: u64) -> Option<u64> {
        if clock == BOOT {
            return Some(ts);
        }
        let pairs = self.pairs.get(&clock)?;
        let before = pairs.range(..=ts).next_back();
        let (known, boot) = before.or_else(|| pairs.first_key_value())?;
        Some(boot.wrapping_add(ts.wrapping_sub(*known)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(clock: u32, ts: u64) -> Reading {
        Reading { clock, ts, incremental: false, unit: 1 }
    }

    #[test]
    fn times_go_by_the_last_snapshot() {
        let mut clocks = Clocks::default();
        assert_eq!((clocks.to_boot(BOOT, 5), clocks.to_boot(3, 5)), (Some(5), None));
        assert_eq!(clocks.take(&[reading(BOOT, 1000), reading(3, 100)]), Some(1000));
        assert_eq!(clocks.take(&[reading(3, 200), reading(BOOT, 5000)]), Some(5000));
        assert_eq!([50, 150, 250].map(|ts| clocks.to_boot(3, ts)), [Some(950), Some(1050), Some(5050)]);
        // Without boot time, another clock that is known gives it.
        assert_eq!(clocks.take(&[reading(3, 250), reading(1, 7)]), Some(5050));
        assert_eq!(clocks.to_boot(1, 8), Some(5051));
        assert_eq!(clocks.take(&[reading(2, 1)]), None);
    }
}
