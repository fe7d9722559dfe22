//! Room: the nodes that calls through lanes may hold, and what their owners are told after the last of them.
//! Not here: which binding leads to which node (`books`).
//!
//! Every call looks at its node's place, bindings come and go seldom. All of it takes the same time however
//! many nodes there are: it is done under the process's lock.

use super::super::state::Quick;

/// A return that waits: its word and payload.
pub(super) type Later = (u32, [u64; 2]);

/// A node that calls may hold.
#[derive(Debug)]
struct HeldNode {
    ptr: u64,
    /// By which calls may name it.
    bindings: u32,
    calls: u32,
    later: Vec<Later>,
    /// Whether the end of the last call is also the end of something else: nothing is bound to it any more, or
    /// something waits. One thing to look at, as each call does.
    last: bool,
}

impl HeldNode {
    fn settle(&mut self) {
        self.last = self.bindings == 0 || !self.later.is_empty();
    }
}

/// See the room.
#[derive(Debug, Default)]
pub(super) struct HeldNodes {
    places: Vec<HeldNode>,
    /// The place of each node that has bindings, calls or something that waits.
    by_ptr: Quick<u64, u32>,
    /// The places of no node.
    vacant: Vec<u32>,
}

impl HeldNodes {
    /// The place of a node that gets one more binding: one for all of its channels.
    pub(super) fn bind(&mut self, ptr: u64) -> u32 {
        let place = self.by_ptr.get(&ptr).copied().unwrap_or_else(|| self.make(ptr));
        let held = &mut self.places[place as usize];
        held.bindings += 1;
        held.settle();
        place
    }

    fn make(&mut self, ptr: u64) -> u32 {
        let made = HeldNode { ptr, bindings: 0, calls: 0, later: Vec::new(), last: false };
        let place = match self.vacant.pop() {
            Some(vacant) => {
                self.places[vacant as usize] = made;
                vacant
            }
            None => {
                self.places.push(made);
                self.places.len() as u32 - 1
            }
        };
        self.by_ptr.insert(ptr, place);
        place
    }

    /// A node lost a binding.
    pub(super) fn unbind(&mut self, place: u32) {
        let held = &mut self.places[place as usize];
        held.bindings -= 1;
        held.settle();
        self.vacate_unused(place);
    }

    /// A call came for a node that has a binding.
    #[inline]
    pub(super) fn call(&mut self, place: u32) {
        self.places[place as usize].calls += 1;
    }

    /// The call is over; whether [`after_last`](Self::after_last) is to be asked.
    #[inline]
    #[must_use]
    pub(super) fn end_call(&mut self, place: u32) -> bool {
        let held = &mut self.places[place as usize];
        held.calls -= 1;
        held.calls == 0 && held.last
    }

    /// What waited for the end of a node's last call.
    pub(super) fn after_last(&mut self, place: u32) -> Vec<Later> {
        let held = &mut self.places[place as usize];
        let later = std::mem::take(&mut held.later);
        held.settle();
        self.vacate_unused(place);
        later
    }

    /// Holds a return back that could end a node while a call holds it; whether one does.
    pub(super) fn hold_back(&mut self, ptr: u64, later: Later) -> bool {
        let Some(&place) = self.by_ptr.get(&ptr) else { return false };
        let held = &mut self.places[place as usize];
        if held.calls == 0 {
            return false;
        }
        held.later.push(later);
        held.settle();
        true
    }

    fn vacate_unused(&mut self, place: u32) {
        let held = &self.places[place as usize];
        if held.bindings == 0 && held.calls == 0 && held.later.is_empty() {
            self.by_ptr.remove(&held.ptr);
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

    impl HeldNodes {
        /// Every place is a node's, by whose ptr it is found, or vacant, and never both.
        fn assert_sound(&self) {
            let vacant: BTreeSet<u32> = self.vacant.iter().copied().collect();
            assert_eq!(vacant.len(), self.vacant.len(), "vacant once");
            assert_eq!(self.by_ptr.len() + vacant.len(), self.places.len());
            for (place, held) in (0..).zip(&self.places) {
                let unused = held.bindings == 0 && held.calls == 0 && held.later.is_empty();
                assert_eq!(vacant.contains(&place), unused, "{held:?}");
                assert!(unused || self.by_ptr.get(&held.ptr) == Some(&place), "{held:?}");
                assert_eq!(held.last, held.bindings == 0 || !held.later.is_empty(), "{held:?}");
            }
        }
    }

    #[test]
    fn a_node_has_one_place_for_all_of_its_channels_and_leaves_it_to_another() {
        let mut held = HeldNodes::default();
        let (first, second) = (held.bind(10), held.bind(20));
        assert_eq!((held.bind(10), first == second), (first, false));
        held.unbind(first);
        assert_ne!(held.bind(30), first, "it has a binding left");
        held.call(first);
        held.unbind(first);
        assert_ne!(held.bind(40), first, "it has a call left");
        assert!(held.hold_back(10, (br::RELEASE, [10, 0])));
        assert!(held.end_call(first));
        assert_eq!(held.after_last(first), [(br::RELEASE, [10, 0])]);
        held.assert_sound();
        assert_eq!(held.bind(50), first);
        assert!(!held.hold_back(10, (br::DECREFS, [10, 0])), "it is no node's any more");
        held.call(first);
        assert!(!held.end_call(first), "still bound");
        assert_eq!(held.places.len(), 4);
        held.assert_sound();
    }

    #[test]
    fn many_nodes_come_and_go_without_a_search() {
        // Would take minutes if each looked at all others.
        let mut held = HeldNodes::default();
        let places: Vec<u32> = (0..100_000).map(|ptr| held.bind(ptr)).collect();
        places.iter().for_each(|&place| held.unbind(place));
        for ptr in 0..100_000 {
            held.bind(ptr + 7);
        }
        assert_eq!(held.places.len(), 100_000);
        held.assert_sound();
    }

    /// What a node has, by ptr.
    #[derive(Debug, Default)]
    struct Told {
        place: u32,
        bindings: u32,
        calls: u32,
        later: Vec<Later>,
    }

    proptest! {
        /// The map, the places and the list of vacant ones agree, and each node finds its own, whatever happens.
        #[test]
        fn whatever_happens_each_node_is_found_at_its_place(steps in prop::collection::vec((0_u64..6, 0..5), 0..200)) {
            let mut held = HeldNodes::default();
            let mut told: BTreeMap<u64, Told> = BTreeMap::new();
            for (number, (ptr, step)) in (0..).zip(steps) {
                match (step, told.get_mut(&ptr)) {
                    (0, _) => {
                        let place = held.bind(ptr);
                        let node = told.entry(ptr).or_insert(Told { place, ..Told::default() });
                        prop_assert_eq!(node.place, place, "it moved");
                        node.bindings += 1;
                    }
                    (1, Some(node)) if node.bindings > 0 => {
                        held.unbind(node.place);
                        node.bindings -= 1;
                    }
                    (2, Some(node)) if node.bindings > 0 => {
                        held.call(node.place);
                        node.calls += 1;
                    }
                    (3, Some(node)) if node.calls > 0 => {
                        node.calls -= 1;
                        if held.end_call(node.place) {
                            prop_assert_eq!(node.calls, 0);
                            prop_assert_eq!(held.after_last(node.place), std::mem::take(&mut node.later));
                        }
                        prop_assert!(node.calls > 0 || node.later.is_empty(), "nobody is told");
                    }
                    (4, node) => {
                        let later = (br::RELEASE, [ptr, number]);
                        let node = node.filter(|node| node.calls > 0);
                        prop_assert_eq!(held.hold_back(ptr, later), node.is_some());
                        node.into_iter().for_each(|node| node.later.push(later));
                    }
                    _ => {}
                }
                told.retain(|_, node| node.bindings > 0 || node.calls > 0);
                let places: BTreeSet<u32> = told.values().map(|node| node.place).collect();
                prop_assert_eq!(places.len(), told.len(), "two nodes at one place");
                prop_assert_eq!(held.by_ptr.len(), told.len());
                held.assert_sound();
            }
        }
    }
}
