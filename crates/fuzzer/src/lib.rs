//! Random programs of Binder processes: the same program on several drivers must give the same.
//!
//! - [`program`]: steps. - [`text`]: their text. - [`generate`]: programs from seeds.
//!
//! Not here: guests and the command line (`cli::fuzz`), single promises (`conformance`).
#![forbid(unsafe_code)]

pub mod generate;
pub mod program;
pub mod text;
