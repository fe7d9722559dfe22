//! Room: a trace's answer as one page to look at: a timeline for each slow transaction.
//! Not here: the answer (`verdict`), files that other viewers open.
//!
//! A trace is read twice. The first reading finds which calls are slow; [`Watch`] is the second, which looks
//! at the world around these and nothing else, so that a picture costs no memory before its call is known.
//! What is drawn is decided in numbers (`layout`) before anything is written (`svg`, `page`).

mod axis;
mod escape;
mod keep;
mod layout;
mod page;
mod paint;
mod rows;
mod scene;
mod svg;
mod watch;

pub use page::{FRAGMENT_CLASS, fragment, page};
pub use scene::{CpuLane, Doing, Has, Hop, LeftOut, Role, Scene, Slice, ThreadLane};
pub use watch::Watch;

#[cfg(test)]
mod tests;
