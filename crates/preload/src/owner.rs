//! Process that the library's tables belong to: a child of `vfork` has them too, and must not change them.
//! Facts: `vfork(2)`.

use std::sync::atomic::{AtomicU32, Ordering};

/// The process to which the tables belong.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The process to which the tables belong.
#[must_use]
pub fn owner() -> u32 {
    OWNER.load(Ordering::Relaxed)
}

/// True if the tables are the calling process's, and no child of `vfork` calls.
#[must_use]
pub fn is_own() -> bool {
    owner() == std::process::id()
}

/// Makes the tables this process's: once before anything else is, and in each forked child.
pub fn take() {
    OWNER.store(std::process::id(), Ordering::Relaxed);
}
