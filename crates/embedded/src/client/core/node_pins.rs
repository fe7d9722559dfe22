//! The nodes that calls through call slots pin, and the returns held back until the last of those calls.
//! Not here: the node of a binding (`channel_table`).
//!
//! Every call looks up its node; bindings rarely change. Each operation takes constant time, because it runs
//! under the process's lock.

use super::QuickMap;

/// A return that is held back: its word and payload.
type Later = (u32, [u64; 2]);

/// A node that calls may pin.
#[derive(Debug)]
struct PinnedNode {
    ptr: u64,
    /// Number of bindings by which calls may name the node.
    bindings: u32,
    calls: u32,
    later: Vec<Later>,
}

impl PinnedNode {
    fn is_unused(&self) -> bool {
        self.bindings == 0 && self.calls == 0 && self.later.is_empty()
    }
}

/// All nodes that have bindings, calls or held returns.
#[derive(Debug, Default)]
pub(super) struct NodePins {
    places: Vec<PinnedNode>,
    by_ptr: QuickMap<u64, u32>,
    vacant: Vec<u32>,
}

impl NodePins {
    /// Adds a binding to a node and returns the node's place, the same for all channels.
    pub(super) fn bind(&mut self, ptr: u64) -> u32 {
        let place = self.by_ptr.get(&ptr).copied().unwrap_or_else(|| self.add(ptr));
        self.places[place as usize].bindings += 1;
        place
    }

    fn add(&mut self, ptr: u64) -> u32 {
        let node = PinnedNode { ptr, bindings: 0, calls: 0, later: Vec::new() };
        let place = self.vacant.pop().unwrap_or(self.places.len() as u32);
        match self.places.get_mut(place as usize) {
            Some(vacant) => *vacant = node,
            None => self.places.push(node),
        }
        self.by_ptr.insert(ptr, place);
        place
    }

    /// Removes a binding from a node.
    pub(super) fn unbind(&mut self, place: u32) {
        self.places[place as usize].bindings -= 1;
        self.vacate_unused(place);
    }

    /// Pins a node that has a binding, for a new call.
    pub(super) fn pin(&mut self, place: u32) {
        self.places[place as usize].calls += 1;
    }

    /// Unpins a node after a call; returns the held returns if it was the last call.
    pub(super) fn unpin(&mut self, place: u32) -> Vec<Later> {
        let node = &mut self.places[place as usize];
        node.calls -= 1;
        if node.calls > 0 || node.bindings > 0 && node.later.is_empty() {
            return Vec::new();
        }
        let later = std::mem::take(&mut node.later);
        self.vacate_unused(place);
        later
    }

    /// Holds back a return that could end a node while a call pins it; false if none does.
    pub(super) fn hold_back(&mut self, ptr: u64, later: Later) -> bool {
        let Some(&place) = self.by_ptr.get(&ptr) else { return false };
        let node = &mut self.places[place as usize];
        if node.calls == 0 {
            return false;
        }
        node.later.push(later);
        true
    }

    fn vacate_unused(&mut self, place: u32) {
        let node = &self.places[place as usize];
        if node.is_unused() {
            self.by_ptr.remove(&node.ptr);
            self.vacant.push(place);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use abi::codes::br;
    use proptest::prelude::*;

    use super::*;

    impl NodePins {
        /// Asserts that each place is either vacant or a node's, found by its ptr.
        fn assert_sound(&self) {
            let vacant: BTreeSet<u32> = self.vacant.iter().copied().collect();
            assert_eq!(vacant.len(), self.vacant.len(), "vacant once");
            assert_eq!(self.by_ptr.len() + vacant.len(), self.places.len());
            for (place, node) in (0..).zip(&self.places) {
                assert_eq!(vacant.contains(&place), node.is_unused(), "{node:?}");
                assert!(node.is_unused() || self.by_ptr.get(&node.ptr) == Some(&place), "{node:?}");
            }
        }
    }

    #[test]
    fn a_node_has_one_place_for_all_of_its_channels_and_leaves_it_to_another() {
        let mut pins = NodePins::default();
        let (first, second) = (pins.bind(10), pins.bind(20));
        assert_eq!((pins.bind(10), first == second), (first, false));
        pins.unbind(first);
        assert_ne!(pins.bind(30), first, "it has a binding left");
        pins.pin(first);
        pins.unbind(first);
        assert_ne!(pins.bind(40), first, "it has a call left");
        assert!(pins.hold_back(10, (br::RELEASE, [10, 0])));
        assert_eq!(pins.unpin(first), [(br::RELEASE, [10, 0])]);
        pins.assert_sound();
        assert_eq!(pins.bind(50), first);
        assert!(!pins.hold_back(10, (br::DECREFS, [10, 0])), "no node has it any more");
        pins.pin(first);
        assert!(pins.unpin(first).is_empty(), "still bound");
        assert_eq!(pins.places.len(), 4);
        pins.assert_sound();
    }

    #[test]
    fn many_nodes_come_and_go_without_a_search() {
        // Takes minutes if an operation searches all nodes.
        let mut pins = NodePins::default();
        let places: Vec<u32> = (0..100_000).map(|ptr| pins.bind(ptr)).collect();
        places.iter().for_each(|&place| pins.unbind(place));
        for ptr in 0..100_000 {
            pins.bind(ptr + 7);
        }
        assert_eq!(pins.places.len(), 100_000);
        pins.assert_sound();
    }

    /// The state a node should be in.
    #[derive(Debug, Default)]
    struct Expected {
        place: u32,
        bindings: u32,
        calls: u32,
        later: Vec<Later>,
    }

    proptest! {
        /// The map, the places and the vacancy list agree after every operation, and each node finds its
        /// place.
        #[test]
        fn whatever_happens_each_node_is_found_at_its_place(steps in prop::collection::vec((0_u64..6, 0..5), 0..200)) {
            let mut pins = NodePins::default();
            let mut nodes: BTreeMap<u64, Expected> = BTreeMap::new();
            for (number, (ptr, step)) in (0..).zip(steps) {
                match (step, nodes.get_mut(&ptr)) {
                    (0, _) => {
                        let place = pins.bind(ptr);
                        let node = nodes.entry(ptr).or_insert(Expected { place, ..Expected::default() });
                        prop_assert_eq!(node.place, place, "it moved");
                        node.bindings += 1;
                    }
                    (1, Some(node)) if node.bindings > 0 => {
                        pins.unbind(node.place);
                        node.bindings -= 1;
                    }
                    (2, Some(node)) if node.bindings > 0 => {
                        pins.pin(node.place);
                        node.calls += 1;
                    }
                    (3, Some(node)) if node.calls > 0 => {
                        node.calls -= 1;
                        let later = if node.calls == 0 { std::mem::take(&mut node.later) } else { Vec::new() };
                        prop_assert_eq!(pins.unpin(node.place), later);
                    }
                    (4, node) => {
                        let later = (br::RELEASE, [ptr, number]);
                        let node = node.filter(|node| node.calls > 0);
                        prop_assert_eq!(pins.hold_back(ptr, later), node.is_some());
                        node.into_iter().for_each(|node| node.later.push(later));
                    }
                    _ => {}
                }
                nodes.retain(|_, node| node.bindings > 0 || node.calls > 0);
                let places: BTreeSet<u32> = nodes.values().map(|node| node.place).collect();
                prop_assert_eq!(places.len(), nodes.len(), "two nodes at one place");
                prop_assert_eq!(pins.by_ptr.len(), nodes.len());
                pins.assert_sound();
            }
        }
    }
}
