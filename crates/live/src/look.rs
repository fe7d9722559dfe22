//! One look at all processes: their loads, what changed since the last look, and what the trace showed meanwhile.
//! Not here: reading the driver's files (`explain`), conditions on a look (`when`).

use std::time::Duration;

use explain::Load;
use trace::model::{Outcome, Transaction};

/// Maximum number of calls between two looks whose times are kept, 8 MB.
const MOST_TIMES: usize = 1 << 20;

/// Calls that ended between two looks.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Durations of the first answered calls in ns, in no order.
    pub ns: Vec<u64>,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls that failed.
    pub failed: u64,
}

impl Ended {
    /// Adds a call. One whose events are not all there has no duration.
    pub fn add(&mut self, call: &Transaction) {
        match call.outcome {
            Outcome::Replied => {
                self.answered += 1;
                if !call.doubtful && self.ns.len() < MOST_TIMES {
                    self.ns.push(call.ns());
                }
            }
            Outcome::Failed | Outcome::Dead => self.failed += 1,
            _ => {}
        }
    }
}

/// Result of one look.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// All processes.
    pub loads: Vec<Load>,
    /// Calls that failed since the last look, of the processes of [`Self::loads`] in their order; `None` without counters.
    pub failed: Vec<Option<u64>>,
    /// Processes of the last look that are gone while others held their nodes.
    pub dead: Vec<Load>,
    /// Calls that ended meanwhile; `None` without a trace.
    pub ended: Option<Ended>,
    /// Failed calls that the driver reported meanwhile; `None` without its reports.
    pub reports: Option<u64>,
    /// Time since the last look.
    pub span: Duration,
}

impl Look {
    /// A look with these loads; `None`: the driver's files could not be read. `base` is the last look that had some, and `span`
    /// the time since any look.
    #[must_use]
    pub fn after(
        base: Option<&Look>,
        loads: Option<Vec<Load>>,
        ended: Option<Ended>,
        span: Duration,
    ) -> Self {
        let Some(loads) = loads else { return Self { ended, span, ..Self::default() } };
        let same = |load: &Load, other: &Load| (load.pid, &load.context) == (other.pid, &other.context);
        let failed = |load: &Load| {
            let before =
                base?.loads.iter().find(|other| same(load, other)).map_or(Some(0), |other| other.failed);
            // A number that fell is another process's.
            load.failed.zip(before).map(|(now, before)| now.checked_sub(before).unwrap_or(now))
        };
        let is_gone = |other: &&Load| other.held_nodes > 0 && !loads.iter().any(|load| same(load, other));
        let dead = base.iter().flat_map(|base| &base.loads).filter(is_gone).cloned().collect();
        Self { failed: loads.iter().map(failed).collect(), dead, loads, ended, span, ..Self::default() }
    }
}

/// A process with its name, if it has one.
#[must_use]
pub fn named(load: &Load) -> String {
    if load.name.is_empty() {
        format!("process {}", load.pid)
    } else {
        format!("{} ({})", load.name, load.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_has_what_changed() {
        let load =
            |pid, failed, held_nodes| Load { pid, failed: Some(failed), held_nodes, ..Load::default() };
        let first =
            Look::after(None, Some(vec![load(1, 5, 0), load(2, 0, 1), load(3, 9, 0)]), None, Duration::ZERO);
        assert_eq!(first.failed, [None, None, None], "nothing is known of before");
        assert!(first.dead.is_empty());
        let next = Look::after(
            Some(&first),
            Some(vec![load(1, 7, 0), load(3, 2, 0), load(4, 1, 0)]),
            None,
            Duration::ZERO,
        );
        assert_eq!(next.failed, [Some(2), Some(2), Some(1)]);
        assert_eq!(
            next.dead.iter().map(|load| load.pid).collect::<Vec<_>>(),
            [2],
            "a client's end is no fault"
        );
    }

    #[test]
    fn a_look_without_the_files_shows_no_deaths() {
        let load = |pid| Load { pid, held_nodes: 1, failed: Some(1), ..Load::default() };
        let first = Look::after(None, Some(vec![load(1), load(2)]), None, Duration::ZERO);
        let ended = Some(Ended { answered: 3, ..Ended::default() });
        let blind = Look::after(Some(&first), None, ended, Duration::from_secs(1));
        assert!(blind.dead.is_empty() && blind.failed.is_empty());
        assert_eq!((blind.ended.map(|ended| ended.answered), blind.span), (Some(3), Duration::from_secs(1)));
    }
}
