//! Measurements and tests from their options to a result on the screen, a record and an exit status.
//!
//! - [`measure`]: one measurement; [`verdict`]: the exit statuses of their verdicts.
//! - [`gbench`]: throughput in the way of Google Benchmark, whose rows are printed as they are measured; [`crowd`]: tests with many
//!   workers, in the lines of Android's tools; [`latency`]: tests of single calls.
//! - What is made of many runs: [`suite`], all tests after one another; [`soak`], turns of them for hours; [`fuzz`], random programs
//!   on several drivers; [`ab`], two sides in turns; [`matrix`], many kernels; [`bisect`], a commit;
//!   [`conformance`], the suite.
//! - [`tracing`]: recordings of a command; [`atrace`]: those of Android's tool.
//!
//! Not here: the words of the command line (`binderperf`), measuring (`bench`), what is written (`record`).
#![forbid(unsafe_code)]

pub mod ab;
pub mod atrace;
pub mod bisect;
pub mod conformance;
pub mod crowd;
pub mod fuzz;
pub mod gbench;
pub mod latency;
pub mod matrix;
pub mod measure;
pub mod soak;
pub mod suite;
pub mod tracing;
pub mod verdict;
