//! The cases of a test with an increasing number of clients.
//! Not here: measuring them (`super`).
//! Facts: the table of the Rust driver's RFC (2023): pairs 1 to 32, payload 0 and 4096.

use super::options::{Group, Shape};
use crate::plan::Flavour;

/// The services that the clients call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Each client has a service of its own.
    Pairs,
    /// All clients call one service with a pool of threads.
    OneService,
}

/// 1, 2, 4, ... and the most.
#[must_use]
pub fn powers(most: u32) -> Vec<u32> {
    let powers = (0..32).map(|power| 1_u32 << power).take_while(|step| *step < most);
    powers.chain([most]).collect()
}

/// Threads of the one service besides the first: libbinder's default.
const POOL: u32 = 15;

/// A case for each of these numbers of clients, each payload and each kind of services, without duplicates.
#[must_use]
pub fn groups(whos: &[Who], payloads: &[u32], steps: &[u32]) -> Vec<Group> {
    let mut groups = Vec::new();
    for who in whos {
        for &payload in payloads {
            for &step in steps {
                let group = match who {
                    Who::Pairs => Group { shape: Shape::Pairs, workers: step * 2, payload },
                    Who::OneService => {
                        let shape = Shape::Services { count: 1, more_threads: POOL };
                        Group { shape, workers: step, payload }
                    }
                };
                // Duplicates are dropped.
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
        }
    }
    groups
}

/// Leaves out what does not fit into a receiver's buffer because so many clients share it, and says so of
/// each. A payload that is too large for even one client stays, to be refused.
pub fn leave_out(groups: &mut Vec<Group>, flavour: Flavour) -> Vec<String> {
    let mut notes = Vec::new();
    groups.retain(|group| {
        let alone = Group { workers: if group.shape == Shape::Pairs { 2 } else { 1 }, ..group.clone() };
        match group.check_payload(flavour) {
            Err(why) if alone.check_payload(flavour).is_ok() => {
                let clients = group.clients();
                notes.push(format!(
                    "left out {clients} clients of one service with {} B: {why}",
                    group.payload
                ));
                false
            }
            _ => true,
        }
    });
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::MOST_WORKERS;

    #[test]
    fn steps_end_with_the_most() {
        assert_eq!(powers(1), [1]);
        assert_eq!(powers(8), [1, 2, 4, 8]);
        assert_eq!(powers(6), [1, 2, 4, 6]);
    }

    #[test]
    fn on_a_machine_with_many_cpus_what_does_not_fit_is_left_out_and_named() {
        let steps = powers(MOST_WORKERS / 2);
        let all = groups(&[Who::Pairs, Who::OneService], &[0, 4096], &steps);
        let mut kept = all.clone();
        let notes = leave_out(&mut kept, Flavour::Binder);
        let left_out: Vec<&Group> = all.iter().filter(|group| !kept.contains(group)).collect();
        assert!(
            matches!(
                left_out[..],
                [Group { workers: 128, payload: 4096, .. }, Group { workers: 256, payload: 4096, .. }]
            ),
            "{left_out:?}"
        );
        assert!(notes[1].contains("256 clients of one service with 4096 B"), "{notes:?}");
        assert!(kept.iter().all(|group| group.check_payload(Flavour::Binder).is_ok()));

        let mut too_large = groups(&[Who::Pairs, Who::OneService], &[2_000_000], &[1, 2]);
        assert!(leave_out(&mut too_large, Flavour::Binder).is_empty());
        assert_eq!(too_large.len(), 4, "refused, not left out");
    }

    #[test]
    fn a_series_for_each_shape_and_payload() {
        let groups = groups(&[Who::Pairs, Who::OneService], &[0, 4096, 0], &[1, 2]);
        let seen: Vec<(u32, u32, u32)> =
            groups.iter().map(|group| (group.clients(), group.services(), group.payload)).collect();
        assert_eq!(
            seen,
            [
                (1, 1, 0),
                (2, 2, 0),
                (1, 1, 4096),
                (2, 2, 4096),
                (1, 1, 0),
                (2, 1, 0),
                (1, 1, 4096),
                (2, 1, 4096)
            ]
        );
    }
}
