//! A counting global allocator, for tests that code does not allocate.
//! Not here: the memory itself (the system's allocator).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Needs neither lazy initialisation nor a destructor, so counting never allocates.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count of allocations (and reallocations) per thread.
///
/// # Invariants
/// Every request is handed to [`System`] unchanged.
#[derive(Debug, Default)]
pub struct CountingAlloc;

impl CountingAlloc {
    /// A counting allocator, for `#[global_allocator]`.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// How often the calling thread has asked for memory so far. 0 for ever when this is not the
    /// global allocator.
    #[must_use]
    pub fn allocations_of_this_thread() -> u64 {
        COUNT.get()
    }
}

fn count() {
    // Fails only while the thread's storage is torn down; nobody asks for the count after that.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: `System` fulfils the contract of `GlobalAlloc`, and every request goes to it unchanged
// (Invariants); counting touches only the thread's own cell and does not allocate.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises about `layout` are passed on with it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises about `layout` are passed on with it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: `ptr` came from this allocator, so from `System` (Invariants), with this layout;
        // the caller's promise about `new_size` is passed on with it.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from this allocator, so from `System` (Invariants), with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}
