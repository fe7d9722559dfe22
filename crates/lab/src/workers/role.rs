//! Room: what this program does when another copy of it started it as a worker.
//! Not here: starting it and hearing of it (`team`), the flavour's calls (`scene`).
//! Facts: between the two clock readings of a sample lies the call and nothing else; choosing the next
//! callee, keeping the sample and looking for reasons to stop happen outside of them.

use std::io::{self, Write};

use driver::{AnyContext, on_context};
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic_ns, thread_cpu_ns};

use super::ask::Flavour;
use super::scene::{Callee, InProcess, Offstage, OnHwbinder, Scene};
use crate::board::{Board, Desk, FAILED, Size};
use crate::dice::Dice;
use crate::measure::echo::Sabotage;

/// The hidden command that makes this program a worker.
pub const COMMAND: &str = "__worker";

/// The steps of a worker: it serves; it has found whom it calls; then one for each round.
pub(super) const SERVING: u32 = 1;
pub(super) const READY: u32 = 2;

/// What one worker is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) flavour: Flavour,
    /// Of the context.
    pub(super) address: String,
    /// Whose service manager it is.
    pub(super) release: String,
    /// Where the shared memory is.
    pub(super) board: String,
    /// Processes that share it.
    pub(super) members: u32,
    /// How many of them call.
    pub(super) callers: u32,
    /// Samples that each of those has room for.
    pub(super) samples: usize,
    /// For how many of them memory shall be there before the first round.
    pub(super) ready_samples: usize,
    /// Which of them this is.
    pub(super) number: u32,
    /// What services are called, up to the number of their process.
    pub(super) names: String,
    /// Whose services it calls.
    pub(super) calls: Vec<u32>,
    /// The one service that it pings instead.
    pub(super) pings: Option<String>,
    /// Whether it serves, and threads for that besides the first.
    pub(super) pool: Option<u32>,
    /// Bytes of each call.
    pub(super) payload: u32,
    /// Decides whom it calls next.
    pub(super) seed: u64,
    /// Most calls in a round.
    pub(super) most_calls: u32,
    /// Most time of a round in ns.
    pub(super) most_time: u64,
    /// What shall go wrong.
    pub(super) fault: Option<String>,
}

impl Assignment {
    /// The words that start a worker with it.
    pub(super) fn words(&self) -> Result<Vec<String>, serde_json::Error> {
        Ok(vec![COMMAND.to_owned(), serde_json::to_string(self)?])
    }

    fn parse(words: &[String]) -> Option<Self> {
        let [word] = words else { return None };
        serde_json::from_str(word).ok()
    }

    fn sabotage(&self) -> Sabotage {
        Sabotage::new(self.fault.as_ref().and_then(|name| name.parse().ok()))
    }

    fn name_of(&self, number: u32) -> String {
        self.pings.clone().unwrap_or_else(|| format!("{}{number}", self.names))
    }
}

/// Is the worker that the words behind [`COMMAND`] describe, until it is ended. Returns the exit code: 2
/// for words that make no sense, 4 when there is nobody to tell what broke.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    let Some(assignment) = Assignment::parse(words) else {
        eprintln!("binderperf: {COMMAND} is started by binderperf itself");
        return 2;
    };
    let Assignment { members, callers, samples, .. } = assignment;
    let size = Size { members, callers, samples, words: 1 };
    let board = match Board::open(&assignment.board, size) {
        Ok(board) => board,
        Err(error) => {
            say(&format!("opening the shared memory: {}", sys::errno::describe(&error)));
            return 4;
        }
    };
    let mut desk = Desk::at(board, assignment.number);
    if let Err(why) = act(&assignment, &mut desk) {
        say(&why);
        desk.finish(FAILED);
    }
    // Others may still call, so this goes on until whoever started it ends it.
    loop {
        std::thread::park();
    }
}

/// Whoever started this reads it once it has ended.
fn say(why: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{why}").and_then(|()| stdout.flush());
}

fn act(assignment: &Assignment, desk: &mut Desk) -> Result<(), String> {
    let payload = assignment.payload as usize;
    match assignment.flavour {
        Flavour::Binder => {
            let release = assignment.release.parse()?;
            let offstage =
                Offstage { payload, pool: assignment.pool, pings: assignment.pings.is_some(), release };
            let any = AnyContext::parse(&assignment.address);
            on_context!(&any, |context| {
                let scene = offstage.enter(context).map_err(|error| error.to_string())?;
                work(scene, assignment, desk)
            })
        }
        Flavour::Hwbinder => {
            let any = AnyContext::parse(&assignment.address);
            on_context!(&any, |context| {
                let scene = OnHwbinder::enter(context, assignment.pool, payload);
                work(scene.map_err(|error| error.to_string())?, assignment, desk)
            })
        }
        Flavour::Passthrough => work(InProcess::new(payload), assignment, desk),
    }
}

/// All steps, until a call breaks. Without anybody to call it returns once it serves, and goes on serving
/// as long as what it returns lives.
fn work<S: Scene>(mut scene: S, assignment: &Assignment, desk: &mut Desk) -> Result<(), String> {
    let sabotage = assignment.sabotage();
    let own_fault = if assignment.pool.is_some() {
        let planned = sabotage.is_planned().then_some(sabotage);
        let name = assignment.name_of(assignment.number);
        scene.offer(&name, planned).map_err(|error| error.to_string())?;
        Sabotage::new(None)
    } else {
        sabotage
    };
    desk.finish(SERVING);
    desk.wait_for(READY);
    let mut callees = Vec::with_capacity(assignment.calls.len());
    for &number in &assignment.calls {
        let mut callee = scene.find(&assignment.name_of(number)).map_err(|error| error.to_string())?;
        // Whatever the first call sets up shall not be measured.
        callee.call().map_err(|error| error.to_string())?;
        callees.push((number, callee));
    }
    desk.touch(assignment.ready_samples);
    desk.finish(READY);
    if callees.is_empty() {
        loop {
            std::thread::park();
        }
    }
    let mut caller = Caller { callees, dice: Dice::new(assignment.seed), fault: own_fault };
    for step in READY + 1.. {
        desk.wait_for(step);
        caller.round(assignment, desk)?;
        desk.finish(step);
    }
    Ok(())
}

struct Caller<C> {
    callees: Vec<(u32, C)>,
    dice: Dice,
    /// Of one that serves nobody.
    fault: Sabotage,
}

impl<C: Callee> Caller<C> {
    /// Calls until it is enough.
    fn round(&mut self, assignment: &Assignment, desk: &mut Desk) -> Result<(), String> {
        desk.clear();
        let cpu_start = thread_cpu_ns();
        let deadline = monotonic_ns().saturating_add(assignment.most_time);
        let result = self.calls(assignment.most_calls, deadline, desk);
        desk.keep_cpu(thread_cpu_ns() - cpu_start);
        result
    }

    fn calls(&mut self, most: u32, deadline: u64, desk: &mut Desk) -> Result<(), String> {
        loop {
            let chosen = self.dice.below(self.callees.len());
            let (number, callee) = &mut self.callees[chosen];
            desk.call(*number);
            let start = monotonic_ns();
            let result = callee.call();
            let end = monotonic_ns();
            result.map_err(|error| error.to_string())?;
            let calls = desk.keep(start, end);
            if calls >= most || end >= deadline || desk.is_stopped() {
                return Ok(());
            }
            self.fault.apply(&mut []);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::CallError;

    #[test]
    fn nonsense_is_refused() {
        for bad in [&[][..], &["{}"], &["x"], &["{}", "{}"]] {
            let words: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(play(&words), 2, "{bad:?}");
        }
    }

    #[test]
    fn what_is_started_is_understood() {
        let assignment = assignment(10);
        let words = assignment.words().expect("JSON");
        assert_eq!(words[0], COMMAND);
        assert_eq!(Assignment::parse(&words[1..]), Some(assignment));
    }

    fn assignment(most_calls: u32) -> Assignment {
        Assignment {
            flavour: Flavour::Binder,
            address: "/dev/binder".to_owned(),
            release: "16".to_owned(),
            board: String::new(),
            members: 2,
            callers: 1,
            samples: 100,
            ready_samples: 10,
            number: 0,
            names: "x.".to_owned(),
            calls: vec![1],
            pings: None,
            pool: None,
            payload: 0,
            seed: 5,
            most_calls,
            most_time: u64::MAX,
            fault: None,
        }
    }

    /// Breaks after so many calls.
    struct Fake(u32);

    impl Callee for Fake {
        fn call(&mut self) -> Result<(), CallError> {
            self.0 = self.0.checked_sub(1).ok_or(CallError::Closed)?;
            Ok(())
        }
    }

    fn round(assignment: &Assignment, callees: Vec<(u32, Fake)>, stopped: bool) -> (Result<(), String>, u64) {
        let size = Size { members: 2, callers: 2, samples: 100, words: 1 };
        let mut board = Board::create(size).expect("memory");
        let mut desk = Desk::at(Board::open(&board.place(), size).expect("the same"), 0);
        if stopped {
            board.stop();
        }
        let mut caller = Caller { callees, dice: Dice::new(1), fault: Sabotage::new(None) };
        let result = caller.round(assignment, &mut desk);
        (result, board.part(0).calls)
    }

    #[test]
    fn a_round_ends_with_its_calls_its_time_a_stop_or_a_broken_call() {
        let fine = || vec![(0, Fake(1000)), (1, Fake(1000))];
        assert_eq!(round(&assignment(30), fine(), false), (Ok(()), 30));
        assert_eq!(round(&assignment(30), fine(), true), (Ok(()), 1));
        let no_time = Assignment { most_time: 0, ..assignment(30) };
        assert_eq!(round(&no_time, fine(), false), (Ok(()), 1));
        let (result, calls) = round(&assignment(30), vec![(1, Fake(4))], false);
        assert_eq!((result.is_err(), calls), (true, 4), "what was measured is kept");
    }
}
