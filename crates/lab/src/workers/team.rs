//! Room: the processes of one case, from outside: started, led through their steps, ended; and what it
//! means when one does not go on.
//! Not here: what they do (`role`), the figures (`tally`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use record::Measurement;
use sys::clock::monotonic_ns;

use super::ask::{Ask, Group, Shape};
use super::cause::cause;
use super::layout::{Member, members};
use super::role::{Assignment, READY, SERVING};
use super::tally;
use crate::board::{Board, FAILED, Part, Size};
use crate::plan::MinTime;
use crate::stage::{Peer, Stage};

/// How often processes are looked at while nothing is heard of them.
const TICK: Duration = Duration::from_millis(250);
/// How long the others may take to end their calls once one broke.
const GRACE: Duration = Duration::from_secs(2);
/// How long a process may take to end after others noticed: its descriptors close before that.
const LAST_BREATH: Duration = Duration::from_secs(1);
/// A pool as libbinder's: threads that the driver may ask for besides the first.
const POOL: u32 = 15;

/// Why a case did not come to its end.
#[derive(Debug)]
pub(super) enum Trouble {
    /// This signal asked to stop.
    Stopped(&'static str),
    /// A process died, hung or gave up; which and why.
    Broken(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(signal) => write!(f, "stopped by {signal}"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

/// How far some processes are with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// All have done it.
    Done,
    /// None has failed.
    Under,
    /// One has.
    Failed,
}

impl Progress {
    /// Each of them is looked at once: one that fails in the meantime has not done the step.
    fn of(step: u32, done: impl Iterator<Item = u32>) -> Self {
        let mut progress = Self::Done;
        for done in done {
            match done {
                FAILED => return Self::Failed,
                done if done < step => progress = Self::Under,
                _ => {}
            }
        }
        progress
    }
}

/// The processes of a case; ended on drop.
pub(super) struct Team {
    members: Vec<Member>,
    /// Of the service that is none of theirs, if they call one.
    named: Option<String>,
    peers: Vec<Arc<Peer>>,
    board: Board,
    /// The step that was done last by all.
    step: u32,
    patience: Duration,
}

impl Team {
    /// Starts all of them, and returns when each has found whom it calls.
    pub(super) fn start(ask: &Ask, group: &Group, address: &str, stage: &Stage<'_>) -> Result<Self, Trouble> {
        let broken = |what: &str, why: &dyn fmt::Display| Trouble::Broken(format!("{what}: {why}"));
        let members = members(group, ask.flavour.has_manager());
        let samples = ask.capacity(group).map_err(Trouble::Broken)?;
        let size = Size { members: members.len() as u32, callers: group.clients(), samples, words: 1 };
        let board = Board::create(size)
            .map_err(|error| broken("making shared memory", &sys::errno::describe(&error)))?;
        let patience = Duration::from_secs(ask.patience_s.max(1));
        let mut team =
            Self { members, named: group.shape.label(), peers: Vec::new(), board, step: 0, patience };
        for number in 0..team.members.len() {
            let assignment = team.assignment(ask, group, address, size, number);
            let words = assignment.words().map_err(|error| broken("describing a worker", &error))?;
            let peer = stage
                .start_heard_worker(&words)
                .map_err(|error| broken(&team.members[number].title, &error))?;
            team.peers.push(peer);
        }
        let everybody: Vec<u32> = (0..size.members).collect();
        team.wait(SERVING, &everybody)?;
        team.board.release(READY, monotonic_ns());
        team.wait(READY, &everybody)?;
        team.step = READY;
        Ok(team)
    }

    fn assignment(&self, ask: &Ask, group: &Group, address: &str, size: Size, number: usize) -> Assignment {
        let member = &self.members[number];
        let fault = ask.faults.iter().find(|fault| fault.case == member.title.replace(' ', ""));
        let (most_calls, most_time) = match ask.length {
            MinTime::Iterations(calls) => (u32::try_from(calls).unwrap_or(u32::MAX), u64::MAX),
            // A float beyond the integer becomes its maximum.
            MinTime::Seconds(seconds) => (u32::MAX, (seconds * 1e9) as u64),
        };
        let pool = match group.shape {
            Shape::Services { more_threads, .. } => more_threads,
            _ => POOL,
        };
        Assignment {
            flavour: ask.flavour,
            address: address.to_owned(),
            release: ask.android.to_string(),
            board: self.board.place(),
            members: size.members,
            callers: size.callers,
            samples: size.samples,
            ready_samples: ask.ready_samples(group),
            number: number as u32,
            names: format!("binderperf.worker.{}.", std::process::id()),
            calls: member.calls.clone(),
            pings: group.shape.label(),
            pool: member.serves.then_some(pool),
            payload: group.payload,
            // Consecutive seeds of this generator give unrelated streams.
            seed: ask.seed.wrapping_add(number as u64),
            most_calls,
            most_time,
            fault: fault.map(|fault| fault.kind.name().to_owned()),
        }
    }

    /// One round: all clients begin together and call until each is done. Returns what was measured, even
    /// if something went wrong; then no further round is possible.
    pub(super) fn round(&mut self, expected_max: Option<u64>) -> (Option<Measurement>, Option<Trouble>) {
        let clients: Vec<u32> =
            (0..).zip(&self.members).filter(|(_, member)| !member.calls.is_empty()).map(|(n, _)| n).collect();
        self.step += 1;
        let begin = monotonic_ns();
        self.board.release(self.step, begin);
        let trouble = self.wait(self.step, &clients).err();
        let parts: Vec<Part> = clients.iter().map(|&client| self.board.part(client)).collect();
        let samples = self.board.samples(&clients);
        (tally::measurement(begin, &parts, samples, expected_max), trouble)
    }

    /// Waits until each of these has done a step. If one cannot, all are told to stop, and ended when they
    /// do not.
    fn wait(&mut self, step: u32, whom: &[u32]) -> Result<(), Trouble> {
        let mut moved: Vec<(u32, Instant)> = whom.iter().map(|_| (0, Instant::now())).collect();
        let mut looked = Instant::now();
        loop {
            let changes = self.board.changes();
            match Progress::of(step, whom.iter().map(|&member| self.board.done(member))) {
                Progress::Done => return Ok(()),
                Progress::Failed => return Err(self.end(step, whom, Vec::new())),
                Progress::Under => {}
            }
            if let Some(signal) = sys::stop_signal::received() {
                self.end(step, whom, Vec::new());
                return Err(Trouble::Stopped(signal));
            }
            if looked.elapsed() >= TICK {
                looked = Instant::now();
                if self.peers.iter().any(|peer| peer.end().is_some()) {
                    return Err(self.end(step, whom, Vec::new()));
                }
                let stuck = self.stuck(step, whom, &mut moved);
                if !stuck.is_empty() {
                    return Err(self.end(step, whom, stuck));
                }
            }
            self.board.wait_for_change(changes, TICK);
        }
    }

    /// Those that have made no call for too long.
    fn stuck(&self, step: u32, whom: &[u32], moved: &mut [(u32, Instant)]) -> Vec<u32> {
        let mut stuck = Vec::new();
        for (&member, (calls, when)) in whom.iter().zip(moved) {
            let now = self.board.calls(member);
            if now != *calls || self.board.done(member) >= step {
                (*calls, *when) = (now, Instant::now());
            } else if when.elapsed() >= self.patience {
                stuck.push(member);
            }
        }
        stuck
    }

    /// Has everybody stop, ends all, and says what went wrong with whom.
    fn end(&mut self, step: u32, whom: &[u32], stuck: Vec<u32>) -> Trouble {
        self.board.stop();
        let start = Instant::now();
        let at_work = |team: &Self| {
            whom.iter().any(|&member| {
                let alive = team.peers.get(member as usize).is_some_and(|peer| peer.end().is_none());
                alive && team.board.done(member) < step && !stuck.contains(&member)
            })
        };
        while at_work(self) && start.elapsed() < GRACE {
            self.board.wait_for_change(self.board.changes(), Duration::from_millis(20));
        }
        let failed: Vec<u32> =
            (0..self.members.len() as u32).filter(|n| self.board.done(*n) == FAILED).collect();
        self.await_callees(&failed);
        let died: Vec<String> = self
            .members
            .iter()
            .zip(&self.peers)
            .filter_map(|(member, peer)| {
                let end = peer.end()?;
                Some(format!("{} died ({})", member.title, cause(&end.to_string(), &peer.complaints())))
            })
            .collect();
        self.peers.iter().for_each(|peer| peer.kill());
        Trouble::Broken(match (died.first(), failed.first()) {
            // The calls of others break because of it.
            (Some(_), _) => died.join(", "),
            (None, Some(&first)) => {
                let others = match failed.len() - 1 {
                    0 => String::new(),
                    others => format!(" (and {others} more)"),
                };
                self.title(first) + ": " + &self.last_words(first) + &others
            }
            (None, None) => self.tell_stuck(step, &stuck),
        })
    }

    /// Calls break when their callee dies, a moment before it counts as dead: waits for that.
    fn await_callees(&self, failed: &[u32]) {
        let start = Instant::now();
        let callees: BTreeSet<u32> = failed.iter().filter_map(|&member| self.board.callee(member)).collect();
        for callee in callees {
            let serves = self.members.get(callee as usize).is_some_and(|member| member.serves);
            if let Some(peer) = self.peers.get(callee as usize).filter(|_| serves) {
                let _ = peer.end_within(LAST_BREATH.saturating_sub(start.elapsed()));
            }
        }
    }

    fn tell_stuck(&self, step: u32, stuck: &[u32]) -> String {
        let seconds = self.patience.as_secs();
        let titles = |members: &[u32]| members.iter().map(|n| self.title(*n)).collect::<Vec<_>>().join(", ");
        if step <= READY {
            return format!("not ready in {seconds} s: {}", titles(stuck));
        }
        let (waiting, idle): (Vec<u32>, Vec<u32>) =
            stuck.iter().partition(|member| self.board.callee(**member).is_some());
        let awaited: BTreeSet<String> = waiting.iter().filter_map(|member| self.callee_of(*member)).collect();
        let awaited = awaited.into_iter().collect::<Vec<_>>().join(", ");
        let waiting = match waiting.len() {
            0 => None,
            1 => Some(format!("{} waits for {awaited}", titles(&waiting))),
            _ => Some(format!("{} wait for {awaited}", titles(&waiting))),
        };
        let idle = (!idle.is_empty()).then(|| format!("{} stopped calling", titles(&idle)));
        let all: Vec<String> = waiting.into_iter().chain(idle).collect();
        format!("no call came back in {seconds} s: {}", all.join("; "))
    }

    fn title(&self, number: u32) -> String {
        self.members.get(number as usize).map_or("a service".to_owned(), |member| member.title.clone())
    }

    /// Whom it waits for, or did when its call broke.
    fn callee_of(&self, number: u32) -> Option<String> {
        let callee = self.board.callee(number)?;
        Some(self.named.clone().unwrap_or_else(|| self.title(callee)))
    }

    fn last_words(&self, number: u32) -> String {
        let said = self.peers.get(number as usize).map(|peer| peer.last_words()).unwrap_or_default();
        let said = if said.is_empty() { "gave up".to_owned() } else { said };
        match self.callee_of(number) {
            Some(callee) => format!("calling {callee}: {said}"),
            None => said,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Stdio;

    use super::*;
    use crate::board::Desk;

    #[test]
    fn one_that_failed_has_not_done_a_step() {
        let progress = |done: &[u32]| Progress::of(3, done.iter().copied());
        assert_eq!(progress(&[3, 4]), Progress::Done);
        assert_eq!(progress(&[3, 2, 3]), Progress::Under);
        for failed in [[FAILED, 3, 3], [3, 2, FAILED], [2, FAILED, 2]] {
            assert_eq!(progress(&failed), Progress::Failed, "{failed:?}");
        }
        // Each is asked once, as its answer may be another the next time.
        let mut asked = 0;
        Progress::of(3, [3, 3, 3].into_iter().inspect(|_| asked += 1));
        assert_eq!(asked, 3);
    }

    /// A service, and the only one that calls it.
    fn team(scripts: [&str; 2]) -> Team {
        let member = |title: &str, serves, calls: &[u32]| Member {
            title: title.to_owned(),
            serves,
            calls: calls.to_vec(),
        };
        let spawn = |script: &str| {
            let words = ["-c".to_owned(), script.to_owned()];
            let peer = Peer::spawn(Path::new("/bin/sh"), &words, Stdio::null(), Stdio::piped(), None);
            Arc::new(peer.expect("a shell"))
        };
        let board = Board::create(Size { members: 2, callers: 1, samples: 1, words: 1 }).expect("memory");
        Team {
            members: vec![member("service 0", true, &[]), member("worker 0", false, &[0])],
            named: None,
            peers: scripts.map(spawn).into(),
            board,
            step: READY,
            patience: Duration::from_secs(30),
        }
    }

    /// Why a round ends in which the worker's call of the service broke.
    fn broken(scripts: [&str; 2]) -> String {
        let mut team = team(scripts);
        let size = Size { members: 2, callers: 1, samples: 1, words: 1 };
        let desk = Desk::at(Board::open(&team.board.place(), size).expect("the same memory"), 1);
        desk.call(0);
        desk.finish(FAILED);
        let trouble = team.wait(READY + 1, &[1]).expect_err("it failed");
        drop(team);
        trouble.to_string()
    }

    #[test]
    fn a_service_that_is_about_to_be_dead_is_the_reason_for_the_call_that_broke() {
        let why = broken(["sleep 0.3; kill -ABRT $$", "exec sleep 60"]);
        assert!(why.starts_with("service 0 died (signal: 6"), "{why}");
    }

    #[test]
    fn a_call_that_broke_though_its_callee_lives_is_the_caller_s_trouble() {
        let why = broken(["exec sleep 60", "echo it is full; exec sleep 60"]);
        assert_eq!(why, "worker 0: calling service 0: it is full");
    }
}
