//! The binary as its users meet it, on a kernel's driver in guests that these tests boot.
//! Not here: what needs no kernel's driver (`tests/cli`).

mod ab;
mod built;
mod conformance;
mod doctor;
mod forward;
mod fuzz;
mod inside;
mod killed;
mod lava;
mod matrix;
mod module;
mod patched;
mod profile;
mod root;
mod session;
mod stolen;
#[path = "../support/mod.rs"]
mod support;
mod throughput;
mod vm;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Guests run one after another: emulated CPUs need real ones.
fn one_guest() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
