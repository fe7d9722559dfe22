//! The overload experiment: more real-time pairs than CPUs.
//! Not here: carrying it out (`bench::overload`).

pub(crate) mod chart;
pub(crate) mod schema;
pub(crate) mod text;
pub(crate) mod verdict;
