//! Where the instructions of one call go: from a log of every executed instruction to functions, groups and a flame graph.
//! Not here: making the log (`vm`), announcing what is measured and marking its calls (`bench`).
//!
//! An emulator that counts instructions can also name each of them. The program under test executes one known instruction
//! before each call ([`Announcement::mark`]), so the log falls into calls. Most calls of a test on one counted CPU take
//! exactly the same instructions, and the profile is of those alone: it is the same in every boot.
#![forbid(unsafe_code)]

mod announcement;
mod capture;
mod group;
mod render;
mod stacks;
mod symbols;
mod tally;

pub use announcement::{Announcement, Reader};
pub use capture::{Capture, program_counter};
pub use render::{folded, html, json, text};
pub use tally::{Function, Profile, Share, StackCost, profile};

/// Environment variable with the path of the port on which a test announces its cases.
pub const PORT_VARIABLE: &str = "BINDERPERF_PROFILE_PORT";
