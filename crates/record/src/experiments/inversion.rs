//! The priority-inversion experiment: how an urgent caller fares behind less urgent tasks, with and without inheritance.
//! Not here: carrying it out (`bench::inversion`).

pub(crate) mod chart;
pub mod lateness;
pub(crate) mod schema;
pub(crate) mod text;
pub(crate) mod verdict;
