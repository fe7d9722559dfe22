//! Tests whose measurements other tests would disturb: cargo runs test programs one after another.
//! Not here: tests that bear others beside them (`cli`).

mod bisection;
mod kpi;
#[path = "../support/mod.rs"]
mod support;
mod trace_accuracy;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One measurement at a time: a guest or a recording beside another one would disturb it.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
