//! Random programs of Binder processes: the same program on several drivers must give the same.
//!
//! - [`program`]: steps. - [`text`]: their text. - [`generate`]: programs from seeds.
//! - `player`: a process that takes steps; `payload`, the bytes that it sends; `outcome`, what came back as text; `lane`, steps
//!   side by side.
//! - [`stage`]: runs a program on one driver, step by step. - [`transcript`]: what it gave.
//! - [`runner`]: drivers of this machine, and many programs.
//! - [`compare`]: the first difference; [`known`]: which are expected, and why. [`shrink`]: shorter programs. [`session`]: all of it.
//! - `finding`, [`c_form`]: a difference as text, and as C.
//!
//! Not here: guests (`fleet::guest::fuzz`), rounds and report (`conduct::fuzz`), single promises (`conformance`).
#![forbid(unsafe_code)]

pub mod c_form;
pub mod compare;
pub mod corpus;
mod finding;
pub mod generate;
mod heir;
pub mod known;
mod lane;
mod outcome;
mod payload;
mod player;
pub mod program;
pub mod runner;
pub mod session;
pub mod shrink;
pub mod stage;
mod state;
pub mod text;
pub mod transcript;

/// The worker roles of this crate.
pub const ROLES: [procgroup::RoleEntry; 2] =
    [procgroup::RoleEntry::of::<player::PlayerRole>(), procgroup::RoleEntry::of::<player::HeirRole>()];
