//! The sweep: a latency test over a grid, and the highest rates that it sustains.
//! Not here: carrying it out (`bench::sweep`), a latency test of one point (`crate::render::latency`).

pub(crate) mod chart;
pub(crate) mod schema;
pub mod sustained;
pub(crate) mod text;
