//! The end of the test: traffic stops, all processes release everything, and nothing may be left.
//! Not here: the checks inside each process (`member::worker`).

use std::time::{Duration, Instant};

use sys::patience::{is_over, stretched, until};

use super::account::{self, IdleProcess};
use super::controller::Controller;
use super::driver_state;
use super::member::SERVICES;
use super::messages::{Order, Phase};
use super::tally::Count;
use super::{ChaosError, Summary};

/// Limit of a phase as a multiple of `patience`: each process may wait several times.
const PHASE: u32 = 4;

impl Controller<'_> {
    /// Ends the test in order.
    ///
    /// # Errors
    /// Leftovers and failures.
    pub(super) fn finish(mut self) -> Result<Summary, ChaosError> {
        let limit = self.options.patience * PHASE;
        self.all_at(Phase::Ready, limit)?;
        self.tell_all(&Order::Stop);
        self.all_at(Phase::Stopped, limit)?;
        let before: Vec<_> = self.children().map(|child| (child.instance, child.memory)).collect();
        self.tell_all(&Order::Memory);
        self.tell_all(&Order::Settle(self.killed.clone()));
        self.all_at(Phase::Settled, limit)?;
        let growth = self.children().filter_map(|child| {
            let half = before.iter().find(|(instance, _)| *instance == child.instance)?.1?;
            Some(child.memory?.saturating_sub(half))
        });
        let growth_kib = growth.max();
        let note = self.check_account();
        self.heed_the_kernel();
        if !self.no_failure() {
            return Err(ChaosError::Failed(self.explain()));
        }
        self.end_processes(limit)?;
        if let Some(complaint) = self.freezes.complaint(self.tally.of(Count::Frozen)) {
            self.complain(complaint);
        }
        if !self.no_failure() {
            return Err(ChaosError::Failed(self.explain()));
        }
        let mut summary = Summary {
            tally: self.tally,
            started: self.started(),
            kills: self.killed.len(),
            pauses: self.pauses,
            freezes: self.freezes.made,
            growth_kib,
            notes: note.into_iter().chain(self.freezes.note()).collect(),
        };
        self.check_empty(limit)?;
        if let Some(broker) = self.view.leave() {
            if !until(limit, || !driver_state::runs(broker)) {
                let why = format!("the broker, process {broker}, does not end");
                return Err(ChaosError::Failed(vec![why]));
            }
            summary.notes.push("the broker was left empty, and ended".to_owned());
        }
        Ok(summary)
    }

    fn tell_all(&mut self, order: &Order) {
        if self.no_failure() {
            self.children().for_each(|child| child.tell(order));
        }
    }

    /// Checks that the driver holds only registered nodes of the members; a note if it has no state text.
    fn check_account(&mut self) -> Option<String> {
        if !self.no_failure() {
            return None;
        }
        let mut quiet: Vec<IdleProcess> = self
            .children()
            .map(|child| IdleProcess {
                pid: child.process.pid(),
                name: child.instance.to_string(),
                nodes: SERVICES,
                refs: 0,
            })
            .collect();
        let refs = quiet.len() * SERVICES;
        let name = "the service manager".to_owned();
        quiet.push(IdleProcess { pid: self.manager.process.pid(), name, nodes: 1, refs });
        match self.left(self.options.patience, |text| account::left_over(text, &quiet)) {
            Ok(left) => left.into_iter().for_each(|what| self.complain(what)),
            Err(why) => return Some(format!("the driver's state was not looked at: {why}")),
        }
        None
    }

    /// Waits until `look` finds nothing in the driver's state; the rest that it finds at the limit.
    fn left(&self, limit: Duration, look: impl Fn(&str) -> Vec<String>) -> Result<Vec<String>, String> {
        let since = Instant::now();
        loop {
            let left = look(&self.view.state()?);
            if left.is_empty() || is_over(since, limit) {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends all processes, the manager last.
    fn end_processes(&mut self, limit: Duration) -> Result<(), ChaosError> {
        self.allow_ends();
        self.children().for_each(|child| child.tell(&Order::Leave));
        self.all_at(Phase::Ended, limit)?;
        let tallies: Vec<_> = self.children().map(|child| child.tally).collect();
        tallies.into_iter().for_each(|tally| self.tally += tally);
        let mut bad = Vec::new();
        for child in self.children() {
            let status = child.process.end_within(stretched(limit));
            if status.is_none_or(|status| !status.success()) {
                bad.push(format!("{} did not end as it should: {status:?}", child.instance));
            }
        }
        self.manager.tell(&Order::Leave);
        if self.manager.process.end_within(stretched(limit)).is_none() {
            bad.push("the service manager does not end".to_owned());
        }
        bad.into_iter().for_each(|what| self.complain(what));
        self.heed_the_kernel();
        if self.no_failure() { Ok(()) } else { Err(ChaosError::Failed(std::mem::take(&mut self.complaints))) }
    }

    /// Checks that an embedded driver used by this test alone is empty.
    fn check_empty(&self, limit: Duration) -> Result<(), ChaosError> {
        if !self.view.is_alone() {
            return Ok(());
        }
        let left = self
            .left(limit, |text| account::besides(text, std::process::id()))
            .unwrap_or_else(|why| vec![format!("no state: {why}")]);
        if left.is_empty() { Ok(()) } else { Err(ChaosError::Failed(left)) }
    }
}
