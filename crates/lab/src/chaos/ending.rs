//! Room: the end of the test: traffic stops, everybody lets go, and nothing may be left.
//! Not here: what each process looks at for itself (`member::role`).

use std::time::{Duration, Instant};

use super::account::{self, Quiet};
use super::conductor::Conductor;
use super::driver_state;
use super::member::DOORS;
use super::player::Stage;
use super::{Summary, Trouble, words};

/// How much longer than one wait a whole phase may take, in each process, one wait after the other.
const PHASE: u32 = 4;

impl Conductor<'_> {
    /// Ends the test in order.
    ///
    /// # Errors
    /// What was left over, or failed on the way.
    pub(super) fn finish(mut self) -> Result<Summary, Trouble> {
        let limit = self.options.patience * PHASE;
        self.all_at(Stage::Ready, limit)?;
        self.tell_all(words::STOP);
        self.all_at(Stage::Stopped, limit)?;
        let before: Vec<_> = self.players().map(|player| (player.instance, player.memory)).collect();
        self.tell_all(words::MEMORY);
        let dead: Vec<String> = self.killed.iter().map(ToString::to_string).collect();
        self.tell_all(&format!("{} {}", words::SETTLE, dead.join(" ")));
        self.all_at(Stage::Settled, limit)?;
        let growth = self.players().filter_map(|player| {
            let half = before.iter().find(|(instance, _)| *instance == player.instance)?.1?;
            Some(player.memory?.saturating_sub(half))
        });
        let growth_kib = growth.max();
        let note = self.check_account();
        if !self.fine() {
            return Err(Trouble::Failed(self.explain()));
        }
        self.send_home(limit)?;
        let mut summary = Summary {
            tally: self.tally,
            started: self.started(),
            kills: self.killed.len(),
            pauses: self.pauses,
            growth_kib,
            notes: note.into_iter().collect(),
        };
        self.check_empty(limit)?;
        if let Some(broker) = self.view.leave() {
            let end = Instant::now() + limit;
            while driver_state::runs(broker) {
                if Instant::now() >= end {
                    return Err(Trouble::Failed(vec![format!("the broker, process {broker}, does not end")]));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            summary.notes.push("the broker was left empty, and ended".to_owned());
        }
        Ok(summary)
    }

    fn tell_all(&mut self, line: &str) {
        if self.fine() {
            self.players().for_each(|player| player.tell(line));
        }
    }

    /// Whether the driver has nothing of the processes but what they registered; a note if it does
    /// not tell.
    fn check_account(&mut self) -> Option<String> {
        if !self.fine() {
            return None;
        }
        let mut quiet: Vec<Quiet> = self
            .players()
            .map(|player| Quiet {
                pid: player.pid(),
                name: player.instance.to_string(),
                nodes: DOORS,
                refs: 0,
            })
            .collect();
        let refs = quiet.len() * DOORS;
        let name = "the service manager".to_owned();
        quiet.push(Quiet { pid: self.manager.pid(), name, nodes: 1, refs });
        let end = Instant::now() + self.options.patience;
        loop {
            let left = match self.view.state() {
                Ok(text) => account::left_over(&text, &quiet),
                Err(why) => return Some(format!("the driver's state was not looked at: {why}")),
            };
            if left.is_empty() {
                return None;
            }
            if Instant::now() >= end {
                left.into_iter().for_each(|what| self.complain(what));
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Has all processes end, the manager last.
    fn send_home(&mut self, limit: Duration) -> Result<(), Trouble> {
        self.dismiss();
        self.players().for_each(super::player::Player::leave);
        self.all_at(Stage::Ended, limit)?;
        let tallies: Vec<_> = self.players().map(|player| player.tally).collect();
        tallies.into_iter().for_each(|tally| self.tally += tally);
        let mut bad = Vec::new();
        for player in self.players() {
            let end = Instant::now() + limit;
            let status = loop {
                match player.ended() {
                    None if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
                    status => break status,
                }
            };
            if status.is_none_or(|status| !status.success()) {
                bad.push(format!("{} did not end as it should: {status:?}", player.instance));
            }
        }
        self.manager.leave();
        let end = Instant::now() + limit;
        while self.manager.ended().is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.manager.ended().is_none() {
            bad.push("the service manager does not end".to_owned());
        }
        bad.into_iter().for_each(|what| self.complain(what));
        if self.fine() { Ok(()) } else { Err(Trouble::Failed(std::mem::take(&mut self.complaints))) }
    }

    /// Whether the driver, if it is the test's alone, has nothing left.
    fn check_empty(&self, limit: Duration) -> Result<(), Trouble> {
        if !self.view.is_alone() {
            return Ok(());
        }
        let end = Instant::now() + limit;
        loop {
            let text = self.view.state().map_err(|why| Trouble::Failed(vec![format!("no state: {why}")]))?;
            let left = account::besides(&text, std::process::id());
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(Trouble::Failed(left));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
