//! Layout of a case: the servers and the callees of each client.
//! Not here: starting them (`super`).
//! Facts: with `-p` the Android tool's first half of the workers serve, and client `n` calls server
//! `n % servers`; its hwbinder counterpart separates services from workers.

use procgroup::Member;

use super::options::{Group, Shape};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Worker {
    pub(super) member: Member,
    /// Numbers of the workers whose services it calls.
    pub(super) calls: Vec<u32>,
}

/// Returns all workers of a case, callers last; `served` is false where the callees need no process.
pub(super) fn workers(group: &Group, served: bool) -> Vec<Worker> {
    let workers = group.workers;
    let titled = |title: String, serves: bool, calls: Vec<u32>| Worker {
        member: Member { title, serves, calls: !calls.is_empty(), unit: 0 },
        calls,
    };
    let worker = |number: u32, serves, calls| titled(format!("worker {number}"), serves, calls);
    match group.shape {
        Shape::Random => (0..workers)
            .map(|own| worker(own, true, (0..workers).filter(|other| *other != own).collect()))
            .collect(),
        Shape::Pairs => {
            let pairs = workers / 2;
            let servers = (0..pairs).map(|own| worker(own, true, Vec::new()));
            servers.chain((pairs..workers).map(|own| worker(own, false, vec![own - pairs]))).collect()
        }
        Shape::Services { count, .. } => {
            let service = |own| titled(format!("service {own}"), true, Vec::new());
            let services = (0..if served { count } else { 0 }).map(service);
            services.chain((0..workers).map(|own| worker(own, false, (0..count).collect()))).collect()
        }
        Shape::Named(_) => (0..workers).map(|own| worker(own, false, vec![0])).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(shape: Shape, workers: u32, served: bool) -> Vec<(bool, Vec<u32>)> {
        let group = Group { shape, workers, payload: 0 };
        super::workers(&group, served)
            .into_iter()
            .map(|worker| (worker.member.serves, worker.calls))
            .collect()
    }

    #[test]
    fn nobody_calls_itself_or_one_that_does_not_serve() {
        assert_eq!(
            calls(Shape::Random, 3, true),
            [(true, vec![1, 2]), (true, vec![0, 2]), (true, vec![0, 1])]
        );
        assert_eq!(
            calls(Shape::Pairs, 4, true),
            [(true, vec![]), (true, vec![]), (false, vec![0]), (false, vec![1])]
        );
        let services = || Shape::Services { count: 2, more_threads: 0 };
        assert_eq!(calls(services(), 1, true), [(true, vec![]), (true, vec![]), (false, vec![0, 1])]);
        assert_eq!(calls(services(), 1, false), [(false, vec![0, 1])]);
        for (shape, workers) in [(Shape::Random, 3), (Shape::Pairs, 4), (services(), 3)] {
            let callers = Group { shape: shape.clone(), workers, payload: 0 }.clients() as usize;
            let calls: Vec<bool> =
                calls(shape, workers, true).iter().map(|(_, calls)| !calls.is_empty()).collect();
            assert!(calls.iter().rev().take(callers).all(|calls| *calls), "those who call are last");
            assert_eq!(calls.iter().filter(|calls| **calls).count(), callers);
        }
        assert_eq!(calls(Shape::Named("x".to_owned()), 2, true), [(false, vec![0]), (false, vec![0])]);
    }
}
