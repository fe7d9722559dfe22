//! A function that does nothing, whose address in a log of executed instructions tells where a measured call begins.
//! Not here: when it is called (`bench::measure`), reading such a log (`profile`).

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

static WANTED: AtomicBool = AtomicBool::new(false);

/// Called before each measured call of a profiled test.
#[inline(never)]
pub extern "C" fn mark() {
    // Its own code: a function like no other is not merged with one.
    black_box(0x6d61_726b_u32);
}

/// The address of [`mark`] in this process.
#[must_use]
pub fn address() -> u64 {
    mark as extern "C" fn() as usize as u64
}

/// Asks for marks from now on.
pub fn want() {
    WANTED.store(true, Ordering::Relaxed);
}

/// Whether marks are wanted.
#[inline]
#[must_use]
pub fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}
