//! The conformance suite: one test per promise of `contract/`, run against a kernel driver or the embedded one. It is
//! part of the binary, so that any kernel can be tested.
//!
//! - [`item`]: a contract item and its outcome. - [`runner`]: runs each item in its own process.
//! - [`subject`]: the driver under test, and which one it is. - [`prelude`]: what every section uses.
//! - [`state_text`]: the driver's state files. - [`recorder`]: its trace events.
//! - [`kit`], [`raw_process`], [`worker`], [`test_manager`], [`helper`], [`remote_process`], [`payload`]: test support.
//! - [`fault_injection`]: faults that prove the tests can fail. - [`kernel_log`]: faults that the kernel reports.
//! - [`ktap`]: output of results; [`follower`] completes it where a guest went down.
//! - One file per contract section, in the order of [`catalogue`].
//!
//! Not here: text and sources of the promises (`contract/*.md`, with the same numbers).
#![forbid(unsafe_code)]

mod binderfs;
mod buffers;
mod check;
mod death;
mod exit;
mod fault_injection;
mod follower;
mod freeze;
mod helper;
mod identity;
mod ioctls;
mod item;
mod kernel_log;
mod kit;
mod ktap;
mod libraries;
mod looper;
mod manager;
mod memory;
mod numbered_calls;
mod objects;
mod oneway;
mod open;
mod other_user;
mod payload;
mod payload_calls;
mod poll;
mod prelude;
mod probe;
mod raw_process;
mod recorder;
mod refs;
mod remote_process;
mod runner;
mod scheduling;
mod state;
mod state_text;
mod subject;
mod sync;
mod test_manager;
mod tracepoints;
mod waiting;
mod worker;
mod write_read;

pub use backend::locate::{Device, Located, Wanted};
pub use driver::OpenError;
pub use fault_injection::Fault;
pub use follower::Follower;
pub use helper::main as helper_main;
pub use item::{Drivers, Item, Outcome};
pub use ktap::{Ktap, Totals};
pub use probe::Probe;
pub use runner::{Ended, Options, check_unmanaged, run};
pub use subject::{Evidence, Kind, Subject, examine};

/// Hidden command that runs the suite's helper processes.
pub const HELPER_COMMAND: &str = "__conformance-peer";

/// Finds the requested context.
///
/// # Errors
/// The error says which context was looked for, and how to get a driver.
pub fn find(wanted: &Wanted) -> Result<Located, OpenError> {
    backend::locate::find(wanted, "binder")
}

/// All items in contract order.
pub fn catalogue() -> impl Iterator<Item = &'static Item> {
    let sections = [
        open::ITEMS,
        ioctls::ITEMS,
        write_read::ITEMS,
        looper::ITEMS,
        sync::ITEMS,
        oneway::ITEMS,
        buffers::ITEMS,
        objects::ITEMS,
        refs::ITEMS,
        death::ITEMS,
        freeze::ITEMS,
        manager::ITEMS,
        identity::ITEMS,
        scheduling::ITEMS,
        poll::ITEMS,
        exit::ITEMS,
        binderfs::ITEMS,
        tracepoints::ITEMS,
        state::ITEMS,
        libraries::ITEMS,
        memory::ITEMS,
    ];
    sections.into_iter().flatten()
}

/// The items that match a filter: a prefix of the number, or part of the title. A filter may be a comma-separated
/// list. Case is ignored.
#[must_use]
pub fn select(filter: &str) -> Vec<&'static Item> {
    let words: Vec<String> = filter.split(',').map(|word| word.trim().to_lowercase()).collect();
    let means = |item: &&Item| {
        let (id, title) = (item.id.to_lowercase(), item.title.to_lowercase());
        words.iter().filter(|word| !word.is_empty()).any(|word| id.starts_with(word) || title.contains(word))
    };
    if filter.is_empty() { catalogue().collect() } else { catalogue().filter(means).collect() }
}

/// Puts items in a random order, the same for each seed.
pub fn shuffle(items: &mut [&'static Item], seed: u64) {
    fastrand::Rng::with_seed(seed).shuffle(items);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_its_own_number_and_a_test_named_after_it() {
        let mut seen = std::collections::BTreeSet::new();
        for item in catalogue() {
            assert!(seen.insert(item.id), "{} twice", item.id);
            let prefix = format!("{}_", item.id.to_lowercase().replace('-', "_"));
            assert!(item.test_name.starts_with(&prefix), "{} is tested by {}", item.id, item.test_name);
            assert!(
                !item.title.contains('#'),
                "{}: KTAP would take the title's end for a directive",
                item.id
            );
        }
    }

    #[test]
    fn a_filter_means_numbers_titles_and_lists() {
        let ids = |filter| select(filter).iter().map(|item| item.id).collect::<Vec<_>>();
        assert_eq!(ids("wr-03"), ["WR-03"]);
        assert!(ids("TX-").iter().all(|id| id.starts_with("TX-")) && ids("TX-").len() > 20);
        assert_eq!(ids("WR-03, OPN-01"), ["OPN-01", "WR-03"]);
        assert!(ids("no such item").is_empty());
        assert_eq!(ids("").len(), catalogue().count());
    }

    #[test]
    fn an_order_is_that_of_its_seed() {
        let ids = |seed| {
            let mut items = select("");
            shuffle(&mut items, seed);
            items.iter().map(|item| item.id).collect::<Vec<_>>()
        };
        let sorted = |seed| ids(seed).into_iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(ids(7), ids(7));
        assert!(ids(7) != ids(8) && sorted(7) == sorted(8) && sorted(7).len() == catalogue().count());
    }
}
