//! The background experiment: what a scheduling group with little CPU time costs the calls of a server.
//! Not here: carrying it out (`bench::background`).

pub(crate) mod chart;
pub(crate) mod schema;
pub(crate) mod text;
pub(crate) mod verdict;
