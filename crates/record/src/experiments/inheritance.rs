//! Priority inheritance, hop by hop, against what the driver promises.
//! Not here: carrying it out (`bench::inheritance`).

pub(crate) mod schema;
pub mod text;
pub(crate) mod verdict;
