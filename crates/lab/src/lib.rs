//! Room: plans, stages, measuring loops and the machines they run on.
//! Not here: terminal output; whoever calls is told through [`run::Observer`] and gets a record.
#![forbid(unsafe_code)]

pub mod ab;
mod board;
pub mod broker;
pub mod chaos;
pub mod conformance;
mod dice;
pub mod doctor;
pub mod host;
pub mod inheritance;
pub mod inversion;
pub mod latency;
pub mod load;
pub mod measure;
pub mod plan;
pub mod realtime;
pub mod run;
pub mod serialisation;
pub mod speed;
pub mod stage;
pub mod state;
pub mod suite;
pub mod trace;
pub mod vm;
pub mod workers;

pub use sys::errno::describe as describe_errno;
pub use sys::sched::usable_cpus;
