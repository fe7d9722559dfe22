//! Triggers that a watch has caught: one that lasts is caught once, one that found no room when there is some.
//! Not here: what is wrong (`when`, crate `explain`), how many catches an hour has (`catches`).

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use crate::catches::Catches;

/// A reason for a catch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Key by which the next look knows it again.
    pub key: String,
    /// A word for the catch's name.
    pub word: String,
    /// The fault, as a clause.
    pub said: String,
    /// Whether the driver's files show it: a look without them does not tell whether it still holds.
    pub by_files: bool,
}

#[derive(Clone, Copy, Debug)]
struct State {
    is_caught: bool,
    by_files: bool,
}

/// The triggers that hold, by their keys.
#[derive(Debug, Default)]
pub struct Known(HashMap<String, State>);

impl Known {
    /// Whether the trigger with this key held in the last look.
    #[must_use]
    pub fn holds(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Takes all that holds in a look, and returns what is to be caught now: what was not since it began to hold, if `catches`
    /// has room. What gets no room is counted once, and stays due while it holds.
    pub fn due(
        &mut self,
        holding: Vec<Trigger>,
        has_files: bool,
        catches: &mut Catches,
        now: Instant,
    ) -> Vec<Trigger> {
        let keys: HashSet<&String> = holding.iter().map(|trigger| &trigger.key).collect();
        self.0.retain(|key, state| keys.contains(key) || state.by_files && !has_files);
        let is_open = |trigger: &Trigger| self.0.get(&trigger.key).is_none_or(|state| !state.is_caught);
        let open: Vec<Trigger> = holding.into_iter().filter(is_open).collect();
        let begins = open.iter().any(|trigger| !self.holds(&trigger.key));
        let has_room = |trigger: &Trigger| catches.has_room(now, &trigger.word);
        if open.is_empty() || !begins && !open.iter().any(has_room) {
            return Vec::new();
        }
        let is_caught = catches.admits(now, open.iter().map(|trigger| trigger.word.as_str()));
        let states =
            open.iter().map(|trigger| (trigger.key.clone(), State { is_caught, by_files: trigger.by_files }));
        self.0.extend(states);
        if is_caught { open } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    fn holding(keys: &[&str]) -> Vec<Trigger> {
        let trigger = |key: &&str| Trigger {
            key: (*key).to_owned(),
            word: key.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(),
            said: String::new(),
            by_files: *key != "deadline",
        };
        keys.iter().map(trigger).collect()
    }

    /// A watch with so many catches an hour, whose looks are at these seconds.
    fn caught<const N: usize>(most: usize, looks: [(u64, bool, &[&str]); N]) -> (Vec<Vec<String>>, u64) {
        let (begin, mut known) = (Instant::now(), Known::default());
        let mut catches = Catches::new(Path::new("/none"), most, 0);
        let mut look = |(seconds, has_files, keys): (u64, bool, &[&str])| {
            let now = begin + Duration::from_secs(seconds);
            let due = known.due(holding(keys), has_files, &mut catches, now);
            due.into_iter().map(|trigger| trigger.key).collect()
        };
        let all = looks.into_iter().map(&mut look).collect();
        (all, catches.left_out())
    }

    #[test]
    fn what_lasts_is_caught_once_and_again_after_it_ceased() {
        let looks = [
            (0, true, &["deadline"][..]),
            (1, true, &["deadline"]),
            (2, true, &["deadline", "deadlock"]),
            (3, true, &["deadlock"]),
            (4, true, &["deadline", "deadlock"]),
        ];
        let (all, left_out) = caught(9, looks);
        assert_eq!(all, [vec!["deadline"], vec![], vec!["deadlock"], vec![], vec!["deadline"]]);
        assert_eq!(left_out, 0);
    }

    #[test]
    fn what_found_no_room_is_counted_once_and_caught_after_the_hour_if_it_lasts() {
        let looks = [
            (0, true, &["deadline"][..]),
            (1, true, &["deadline", "deadlock"]),
            (2, true, &["deadlock"]),
            (3, true, &["deadlock", "leak"]),
            (4, true, &["deadlock"]),
            (3601, true, &["deadlock"]),
            (7300, true, &["deadlock"]),
        ];
        let (all, left_out) = caught(1, looks);
        assert_eq!(all, [vec!["deadline"], vec![], vec![], vec![], vec![], vec!["deadlock"], vec![]]);
        assert_eq!(left_out, 2, "the deadlock, and the leak with it");
    }

    #[test]
    fn a_look_without_the_files_ends_nothing_that_only_they_show() {
        let looks = [
            (0, true, &["deadlock", "deadline"][..]),
            (1, false, &[]),
            (2, true, &["deadlock", "deadline"]),
            (3, true, &[]),
            (4, true, &["deadlock"]),
        ];
        let (all, _) = caught(9, looks);
        assert_eq!(all, [vec!["deadlock", "deadline"], vec![], vec!["deadline"], vec![], vec!["deadlock"]]);
    }

    #[test]
    fn a_frequent_fault_leaves_room_for_another_kind() {
        let looks = [
            (0, true, &["unanswered1"][..]),
            (1, true, &["unanswered2"]),
            (2, true, &["unanswered3"]),
            (3, true, &["unanswered4"]),
            (4, true, &["unanswered5", "deadlock"]),
            (5, true, &[]),
            (6, true, &["deadlock"]),
            (7, true, &["leak"]),
        ];
        let (all, left_out) = caught(4, looks);
        let made: Vec<&String> = all.iter().flatten().collect();
        assert_eq!(made, ["unanswered1", "unanswered2", "unanswered5", "deadlock", "deadlock"]);
        assert_eq!(left_out, 3, "two of the calls, and the leak");
    }
}
