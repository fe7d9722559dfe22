//! Help and manual: what they say of each command beside its definition.
//!
//! - [`help_text`]: examples, exit statuses and more, from `help.txt`; [`shown`]: the whole program as documented; [`page`]: pages of
//!   the manual in roff.
//!
//! Not here: the definitions, of which these are functions (`binderperf`).
#![forbid(unsafe_code)]

pub mod help_text;
pub mod page;
pub mod shown;

/// The program's name, independent of the file name it is started by.
pub const NAME: &str = "binderperf";
