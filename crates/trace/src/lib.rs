//! Reads kernel traces of any format as one stream of neutral events, rebuilds binder transactions and explains their
//! durations.
//! Not here: recording (crate `ftrace`), any OS access. A trace can be analysed on any machine.

#![forbid(unsafe_code)]

pub mod cause;
pub mod contents;
pub mod event;
mod fields;
pub mod file;
mod gunzip;
pub mod hash;
pub mod model;
mod number;
mod open;
pub mod perfetto;
pub mod pftrace;
pub mod picture;
pub mod raw;
pub mod report;
mod schema;
mod symbol;
pub mod text;
mod unpack;
pub mod verdict;

pub use file::OpenError;
pub use gunzip::Gunzip;
pub use open::{Reader, open, open_with};
pub use unpack::{Archive, Content, Scratch};
