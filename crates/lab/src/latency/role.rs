//! Room: what this program does when another copy of it started it as one end of a pair.
//! Not here: starting it and hearing of it (`pairs`), the calls (`caller`), the service (`service`).

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use driver::{AnyContext, on_context};
use record::Class;
use serde::{Deserialize, Serialize};
use sys::clock::monotonic_ns;

use super::ask::Flavour;
use super::caller::{Caller, Order, Series, Terms, Timed};
use super::disturbance::{self, Timers};
use super::fault::Injected;
use super::notes::{Seen, Who, note_miss};
use super::pace::Pace;
use super::sample::WORDS;
use super::scene::{Callee, InProcess, OnBinder, OnHwbinder, Scene};
use super::service::Service;
use crate::board::{Board, Desk, FAILED, Size};
use crate::trace::stamp::Stamp;
use crate::trace::switch::Switch;

/// The hidden command that makes this program one end of a pair.
pub const COMMAND: &str = "__latency";

/// Steps: it serves; it has found whom it calls; all calls are made.
pub(super) const SERVING: u32 = 1;
pub(super) const READY: u32 = 2;
pub(super) const DONE: u32 = 3;

/// A real-time thread that runs for so long without sleeping is ended, with its process.
pub(super) const LONGEST_RUN_US: u64 = 1_000_000;

/// Which end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Side {
    Server,
    Client,
}

/// What one end is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) side: Side,
    pub(super) flavour: Flavour,
    /// Of the context; empty without IPC.
    pub(super) address: String,
    /// Whose service manager it is.
    pub(super) release: String,
    /// Where the shared memory is.
    pub(super) board: String,
    pub(super) members: u32,
    pub(super) callers: u32,
    pub(super) samples: usize,
    /// Which of them this is.
    pub(super) number: u32,
    /// Which pair it is one end of.
    pub(super) pair: u32,
    /// What the pair's service is called.
    pub(super) name: String,
    pub(super) payload: u32,
    pub(super) iterations: u64,
    /// In clock units.
    pub(super) deadline: u64,
    pub(super) rate_hz: Option<f64>,
    pub(super) inherit_rt: bool,
    /// The real-time caller's priority, if there is one.
    pub(super) realtime: Option<u8>,
    /// The folder of the tracing switch that a miss puts off.
    pub(super) tracing: Option<PathBuf>,
    pub(super) faults: Vec<Injected>,
    /// Where it may run, if not anywhere.
    pub(super) cpus: Option<Vec<u32>>,
    /// Decides by chance.
    pub(super) seed: u64,
}

impl Assignment {
    /// The words that start one end with it.
    pub(super) fn words(&self) -> Result<Vec<String>, serde_json::Error> {
        Ok(vec![COMMAND.to_owned(), serde_json::to_string(self)?])
    }

    fn parse(words: &[String]) -> Option<Self> {
        let [word] = words else { return None };
        serde_json::from_str(word).ok()
    }

    /// For how long somebody else's calls keep the server's looper.
    fn busy_us(&self) -> Option<u64> {
        self.faults.iter().find_map(|fault| match *fault {
            Injected::BusyLoopers { us } => Some(us),
            _ => None,
        })
    }

    /// Threads of the server: one, as in Android's tests, or with a rate, when both callers may call at once, two.
    fn loopers(&self) -> u32 {
        if self.rate_hz.is_some() && self.busy_us().is_none() { 2 } else { 1 }
    }

    /// The name of the service that those call.
    fn others_name(&self) -> String {
        format!("{}.busy", self.name)
    }

    fn timers(&self) -> Result<Timers, String> {
        let wanted = self.faults.iter().find_map(|fault| match *fault {
            Injected::Timers { count, late } => Some((count, late)),
            _ => None,
        });
        let (count, late) = wanted.unwrap_or_default();
        Timers::new(count, late).map_err(|error| format!("making timers: {}", sys::errno::describe(&error)))
    }

    fn has(&self, fault: Injected) -> bool {
        self.faults.contains(&fault)
    }
}

/// Is the end that the words behind [`COMMAND`] describe, until it is ended. Returns the exit code: 2 for
/// words that make no sense, 4 when there is nobody to tell what broke.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    let Some(assignment) = Assignment::parse(words) else {
        eprintln!("binderperf: {COMMAND} is started by binderperf itself");
        return 2;
    };
    let Assignment { members, callers, samples, .. } = assignment;
    let board = match Board::open(&assignment.board, Size { members, callers, samples, words: WORDS }) {
        Ok(board) => board,
        Err(error) => {
            say(&format!("opening the shared memory: {}", sys::errno::describe(&error)));
            return 4;
        }
    };
    let mut desk = Desk::at(board, assignment.number);
    if let Err(why) = prepare(&assignment).and_then(|()| act(&assignment, &mut desk)) {
        say(&why);
        desk.finish(FAILED);
    }
    // The other end may still need this one; whoever started it ends it.
    loop {
        std::thread::park();
    }
}

/// Whoever started this reads it once it has ended.
fn say(why: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{why}").and_then(|()| stdout.flush());
}

fn prepare(assignment: &Assignment) -> Result<(), String> {
    let failed = |what: &str, error: io::Error| format!("{what}: {}", sys::errno::describe(&error));
    // Soft, then hard: the signal of the first tells what happened.
    sys::rt_limit::limit_realtime_us(LONGEST_RUN_US, 2 * LONGEST_RUN_US)
        .map_err(|error| failed("limiting the time of real-time threads", error))?;
    sys::timer_slack::set_ns(1).map_err(|error| failed("asking for exact timers", error))?;
    match &assignment.cpus {
        Some(cpus) => {
            sys::sched::set_affinity(cpus).map_err(|error| failed("choosing the CPUs to run on", error))
        }
        None => Ok(()),
    }
}

fn act(assignment: &Assignment, desk: &mut Desk) -> Result<(), String> {
    let any = AnyContext::parse(&assignment.address);
    match assignment.flavour {
        Flavour::Binder => {
            let release = assignment.release.parse()?;
            on_context!(&any, |context| play_on(OnBinder::enter(context, release), assignment, desk))
        }
        Flavour::Hwbinder => {
            on_context!(&any, |context| play_on(OnHwbinder::enter(context), assignment, desk))
        }
        Flavour::Passthrough => {
            let service = Service::with(&assignment.faults, assignment.seed);
            play_on(Ok(InProcess::with(service)), assignment, desk)
        }
    }
}

fn play_on<S: Scene>(
    scene: Result<S, crate::measure::CallError>,
    assignment: &Assignment,
    desk: &mut Desk,
) -> Result<(), String> {
    let mut scene = scene.map_err(|error| error.to_string())?;
    Seen::own().note(desk, Who::Main);
    match assignment.side {
        Side::Server => {
            scene.start_pool(assignment.loopers()).map_err(|error| error.to_string())?;
            let service = Service::with(&assignment.faults, assignment.seed);
            let offered = scene.offer(&assignment.name, service, assignment.inherit_rt);
            offered.map_err(|error| error.to_string())?;
            if let Some(us) = assignment.busy_us() {
                let other = Service::with(&[Injected::StallServer { us }], assignment.seed);
                let offered = scene.offer(&assignment.others_name(), other, false);
                offered.map_err(|error| error.to_string())?;
            }
            for step in [SERVING, READY, DONE] {
                desk.finish(step);
            }
            loop {
                std::thread::park();
            }
        }
        Side::Client => {
            desk.finish(SERVING);
            desk.wait_for(READY);
            let payload = assignment.payload as usize;
            let callee = scene.find(&assignment.name, payload).map_err(|error| error.to_string())?;
            if let Some(us) = assignment.busy_us() {
                let other = scene.find(&assignment.others_name(), payload);
                disturbance::occupy(other.map_err(|error| error.to_string())?, us)?;
            }
            call_all(callee, assignment, desk)
        }
    }
}

fn call_all<C: Callee>(callee: C, assignment: &Assignment, desk: &mut Desk) -> Result<(), String> {
    let switch = assignment.tracing.as_deref().map(Switch::open).transpose();
    let switch = switch.map_err(|trouble| trouble.to_string())?;
    let stamp = Stamp::into(assignment.tracing.as_deref());
    let timers = Arc::new(assignment.timers()?);
    let terms = Terms { deadline: assignment.deadline, switch, stamp, pair: assignment.pair, timers };
    let spins = assignment.has(Injected::SpinCaller);
    let (caller, seen) = Caller::start(callee, terms, assignment.realtime, spins)?;
    for (who, seen) in seen {
        seen.note(desk, who);
    }
    desk.touch(assignment.samples);
    desk.finish(READY);
    desk.wait_for(DONE);
    match assignment.rate_hz {
        Some(rate) => call_at_rate(&caller, assignment.iterations, rate, desk)?,
        None => call_in_turns(&caller, assignment.iterations, desk)?,
    }
    desk.finish(DONE);
    Ok(())
}

/// One call after the other.
fn call_in_turns<C: Callee>(caller: &Caller<C>, iterations: u64, desk: &mut Desk) -> Result<(), String> {
    for number in 0..iterations {
        for class in caller.classes() {
            keep(desk, number, &caller.call(*class, Order { number, intended: None })?);
            if desk.is_stopped() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Each class by its own clock, as if they were two clients: neither waits for the other's calls.
fn call_at_rate<C: Callee>(
    caller: &Caller<C>,
    iterations: u64,
    rate_hz: f64,
    desk: &mut Desk,
) -> Result<(), String> {
    let (begin, classes) = (monotonic_ns(), caller.classes().len());
    let mut urgent = caller.series(iterations, Pace::new(begin, rate_hz, 0, classes))?;
    let mut pace = Pace::new(begin, rate_hz, classes - 1, classes);
    for number in 0..iterations {
        let own = caller.call(Class::Other, Order { number, intended: Some(pace.next()) });
        // First what the other thread did meanwhile: this call may be the one that breaks the pair.
        keep_urgent(&mut urgent, false, desk)?;
        keep(desk, number, &own?);
        if desk.is_stopped() {
            return Ok(());
        }
    }
    keep_urgent(&mut urgent, true, desk)
}

/// Keeps what the real-time thread has made by itself, or will make.
fn keep_urgent(series: &mut Option<Series>, all: bool, desk: &mut Desk) -> Result<(), String> {
    while let Some(series) = series
        && !desk.is_stopped()
        && let Some((number, timed)) = series.next(all)?
    {
        keep(desk, number, &timed);
    }
    Ok(())
}

/// Keeps a call, and stops everybody if it was the one to stop at.
fn keep(desk: &mut Desk, number: u64, timed: &Timed) {
    if timed.stopped_tracing {
        desk.stop_all();
        note_miss(desk, timed.sample.class, number, timed);
    }
    desk.keep_words(timed.start, timed.end, &timed.sample.words());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        for bad in [&[][..], &["{}"], &["x"], &["{}", "{}"]] {
            let words: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(play(&words), 2, "{bad:?}");
        }
    }

    #[test]
    fn what_is_started_is_understood() {
        let assignment = Assignment {
            side: Side::Client,
            flavour: Flavour::Hwbinder,
            address: "/dev/hwbinder".to_owned(),
            release: "16".to_owned(),
            board: "/proc/1/fd/3".to_owned(),
            members: 2,
            callers: 1,
            samples: 20,
            number: 1,
            pair: 0,
            name: "x.0".to_owned(),
            payload: 4,
            iterations: 10,
            deadline: 2_500_000,
            rate_hz: Some(99.5),
            inherit_rt: true,
            realtime: Some(99),
            tracing: Some("/sys/kernel/tracing".into()),
            faults: vec![Injected::Delay { us: 3, share: 0.5 }],
            cpus: Some(vec![0]),
            seed: 5,
        };
        let words = assignment.words().expect("JSON");
        assert_eq!(words[0], COMMAND);
        assert_eq!(Assignment::parse(&words[1..]), Some(assignment));
    }
}
