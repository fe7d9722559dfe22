//! Files of a command: its inputs, the records that its words name, the folder of a run, and logs that are appended to.
//!
//! - [`input`]: files to be read, whatever they are; [`lock`]: a folder that one command at a time writes to.
//! - [`records`]: those that words name; [`across`]: those of many devices.
//! - [`evidence`]: files in which the reasons of failed calls are looked for.
//! - [`traces`]: traces, read once to answer and once to draw, on the way written for Perfetto.
//! - [`bundle`]: the records of folders as one report; [`run`]: the folder of a run while it is written.
//! - [`history`], [`soak`]: logs that are appended to; [`job_log`]: records in the log of a LAVA job.
//! - [`error`]: why a file could not be used; [`Tell`]: what the user gets to know meanwhile.
//!
//! Not here: what is in a record (crate `record`) or a trace (crate `trace`), files of other machines (crate `intake`), the
//! standard streams.
#![forbid(unsafe_code)]

pub mod across;
pub mod bundle;
pub mod error;
pub mod evidence;
pub mod history;
pub mod input;
pub mod job_log;
pub mod lock;
mod perfetto;
pub mod records;
pub mod run;
pub mod soak;
pub mod traces;

pub use error::StoreError;

/// Takes a remark for the user, without the end of its line: what is passed over, or waited for.
pub type Tell = fn(&str);
