//! Room: who serves and who calls whom, process by process.
//! Not here: starting them (`team`).
//! Facts: with `-p` the Android tool's first half of the workers serve, and client `n` calls server
//! `n % servers`; its hwbinder twin has its services apart from its workers.

use super::ask::{Group, Shape};

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// For messages, e.g. `worker 3`.
    pub(super) title: String,
    /// Whether it registers a service.
    pub(super) serves: bool,
    /// The numbers of the processes whose services it calls.
    pub(super) calls: Vec<u32>,
}

/// All processes of a case, those who call last; `served` is false where the callees need no process.
pub(super) fn members(group: &Group, served: bool) -> Vec<Member> {
    let workers = group.workers;
    let worker = |number: u32, serves: bool, calls: Vec<u32>| Member {
        title: format!("worker {number}"),
        serves,
        calls,
    };
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
            let service = |own| Member { title: format!("service {own}"), serves: true, calls: Vec::new() };
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
        members(&group, served).into_iter().map(|member| (member.serves, member.calls)).collect()
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
