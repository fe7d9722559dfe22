//! The runtime on a real driver, between several OS processes.
//! Not here: what needs no driver (beside the code).
//!
//! BINDERPERF_TEST_DRIVER says which driver: kernel (the default) or embedded. Without a usable one each
//! test is skipped with the reason; with BINDERPERF_REQUIRE=driver in the environment that is a
//! failure. Tests take turns: a machine may have only one device, and it
//! has one context manager.
#![forbid(unsafe_code)]

mod calls;
mod counting;
mod hot_path;
mod hwcalls;
mod hwmanager;
mod hwtoolbox;
mod manager;
mod objects;
mod peer;
mod scheduling;
mod threads;
mod toolbox;

/// Not a test: what a peer process runs, see `peer`.
#[test]
fn role() {
    peer::play();
}
