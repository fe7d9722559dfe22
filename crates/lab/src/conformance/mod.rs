//! Room: the conformance suite: one test per promise of `contract/`, run against a real driver or
//! the embedded one. It ships in the binary, so that any kernel can be asked.
//!
//! - [`item`]: an item and its outcome. - [`runner`]: runs items, each in its own process.
//! - [`subject`], [`evidence`]: the driver under test, and which one it is.
//! - [`account`], [`recorder`]: what a driver says of itself, and what it traces.
//! - [`kit`], [`party`], [`worker`], [`lobby`], [`helper`], [`puppet`]: what tests are made of.
//! - [`faulty`]: faults that prove the tests can fail. - [`ktap`]: results as lines.
//! - One file per section of the contract, in the order of [`catalogue`].
//!
//! Not here: the promises' text and sources (`contract/*.md`, under the same numbers).

mod account;
mod binderfs;
mod buffers;
mod death;
mod evidence;
mod exit;
mod faulty;
mod freeze;
mod helper;
mod identity;
mod ioctls;
mod item;
mod kit;
mod ktap;
mod libraries;
mod lobby;
mod looper;
mod manager;
mod objects;
mod oneway;
mod open;
mod party;
mod poll;
mod puppet;
mod recorder;
mod refs;
mod runner;
mod scheduling;
mod state;
mod subject;
mod sync;
mod tracepoints;
mod worker;
mod write_read;

pub use driver::OpenError;
pub use driver::locate::{Device, Located, Wanted};
pub use evidence::{Evidence, Kind, Release, examine};
pub use faulty::Fault;
pub use helper::main as helper_main;
pub use item::{Drivers, Item, Outcome, Slot};
pub use ktap::{Ktap, Totals};
pub use runner::{Options, check_unmanaged, run};
pub use subject::{Probe, Subject};

/// The hidden command under which this binary runs the suite's helpers.
pub const HELPER_COMMAND: &str = "__conformance-peer";

/// Finds the context that the user asked for.
///
/// # Errors
/// Says what was looked for and how to get it.
pub fn find(wanted: &Wanted) -> Result<Located, OpenError> {
    driver::locate::find(wanted, "binder")
}

/// Every item, in the contract's order.
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
    ];
    sections.into_iter().flatten()
}

/// The items that a filter means: those whose number starts with it or whose title
/// contains it; several filters, separated by commas, add up. Case does not matter.
#[must_use]
pub fn select(filter: &str) -> Vec<&'static Item> {
    let words: Vec<String> = filter.split(',').map(|word| word.trim().to_lowercase()).collect();
    let means = |item: &&Item| {
        let (id, title) = (item.id.to_lowercase(), item.title.to_lowercase());
        words.iter().filter(|word| !word.is_empty()).any(|word| id.starts_with(word) || title.contains(word))
    };
    if filter.is_empty() { catalogue().collect() } else { catalogue().filter(means).collect() }
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
}
