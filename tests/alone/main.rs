//! Tests whose measurements other tests would disturb: cargo runs test programs one after another.
//! Not here: tests that bear others beside them (`cli`).

#[path = "../support/mod.rs"]
mod support;
mod trace_accuracy;
