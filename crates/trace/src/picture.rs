//! HTML page of an analysis: a timeline for each slow transaction.
//! Not here: the analysis (`verdict`), files for other viewers (`perfetto`).
//!
//! A trace is read twice. The first pass finds the slow calls; [`PictureCollector`] is the second pass and keeps only the
//! history around these calls, so memory does not grow with the trace. `layout` computes all positions before `page`
//! writes anything.

mod answer;
mod axis;
mod collect;
mod data;
mod lane;
mod layout;
mod page;
mod rows;
mod slices;

pub use collect::PictureCollector;
pub use data::PictureData;
pub use page::{Embedded, FRAGMENT_CLASS, fragment, page};

#[cfg(test)]
mod tests;
