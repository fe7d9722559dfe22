//! `--on`: runs this program on another machine and brings back its files, by the user's own `adb` or `ssh`.
//! Not here: the command itself (`fleet::on`), guests (crate `vm`).
//!
//! A [`Target`] names the machine. A `link` starts `adb` or `ssh` with a script (`remote.sh`), whose answers come as frames
//! (`exchange`). The `device` makes a command of them: it pushes this program, starts the command detached from the
//! connection, follows its output, asks again where the connection was lost, and removes what it made. Once the user asks for a stop, each
//! step has an end (`patience`). `placed` renames the files in the command's words, `prepare` looks at their
//! places before, and `places` puts there what comes back.
#![forbid(unsafe_code)]

mod device;
mod error;
mod exchange;
mod frame;
mod lines;
mod link;
mod patience;
mod placed;
mod places;
mod prepare;
mod program;
mod quote;
mod target;

pub use device::{Job, Outcome, Sinks, run};
pub use error::{Refusal, RemoteError};
pub use link::{ADB_VARIABLE, SSH_VARIABLE};
pub use placed::{Naming, Placed, placed};
pub use places::Places;
pub use prepare::{Unprepared, prepare};
pub use program::Programs;
pub use quote::quoted;
pub use target::{Target, labels};
