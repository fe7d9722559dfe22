//! The binary as its users meet it, on this machine: control cases, records and the embedded driver.
//! Not here: guests with a kernel's driver (`guest`), pages in a browser (`pages`).

mod ab;
mod analyze;
mod aosp;
mod atrace;
mod background;
mod broker_lost;
mod chaos;
mod compare;
mod compare_py;
mod conformance;
mod convert;
mod doctor;
mod folder;
mod history;
mod inheritance;
mod inversion;
mod latency;
mod load;
mod manual;
mod names;
mod overload;
mod perfetto;
mod ping;
mod rights;
mod run;
mod state;
mod statistics_py;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
mod throughput;
mod throughput_hwbinder;
mod trace_compare;
mod trace_events;
mod trace_leftovers;
mod trace_record;
mod via_perfetto;
mod vm;
mod workers;
