//! The record of a run: schema, reading and writing, statistics, comparison and all renderings.
//! Not here: measuring, files, terminals, the clock, anything specific to Linux. A record can be read and shown on
//! any machine.

#![forbid(unsafe_code)]

pub mod across;
mod checksum;
pub mod checkup;
pub mod compare;
pub mod date;
pub mod distribution;
pub mod experiments;
mod families;
mod figures;
#[cfg(test)]
mod fixtures;
pub mod formats;
pub mod history;
pub mod import;
pub mod lava;
pub mod matrix;
mod number;
mod one_line;
pub mod permissions;
mod ratio;
pub mod read;
pub mod render;
pub mod schema;
pub mod soak;
pub mod stats;
pub mod verdict;

pub use distribution::{Distribution, Sampler};
pub use read::ReadError;
pub use schema::{
    AndroidCounts, Background, BackgroundRow, Case, CaseKind, Cell, Class, ClassTotals, Clock, ClockUnit,
    Constraints, Counter, CounterKind, Counters, Cpu, CpuCache, CpuLooks, Crowd, CrowdShape, Driver,
    DriverKind, EmbeddedSettings, Evidence, Figure, Finding, Ground, Hop, Host, HostClass, Imported,
    Inheritance, Inversion, InversionRow, Kernel, LONGEST_LOAD, Latency, LatencyTest, Level, Limit,
    LimitedMemory, MOST_RAW, Measured, Measurement, Miss, Outcome, Overload, OverloadRow, Pass, Percentiles,
    PlacedMedians, Plan, Point, Recorder, RecorderCost, Repetition, Role, Run, SavedCall, Sched, ServedAs,
    Setting, Severity, Side, Stated, StoppedPair, Sweep, Tool, anchor_of_recording, same_urgency,
};
pub use schema::{Battery, Cluster, ClusterKind, Conditions, Cooling, Device, Frequency, State, Temperature};
