//! Tests that share one guest, which `session` boots: inside it they are a program's only tests, one after another.

mod chaos;
mod inheritance;
mod inversion;
mod latency;
mod names;
mod scenario;
mod state;
mod throughput;
mod top;
mod trace;
mod watch;
mod workers;
