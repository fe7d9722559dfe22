//! Room: the processes of the experiment, from outside: started, led through their steps, ended; and what it
//! means when one does not go on.
//! Not here: what they do (`role`), the figures (`tally`).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::AnyContext;
use record::{Sched, Setting};
use sys::clock::monotonic_ns;

use super::ask::Ask;
use super::role::{Assignment, CALLERS_SCHED, Part, READY, SERVING, WORDS};
use super::service::unpack;
use super::tally::Calls;
use crate::board::{Board, FAILED, Size};
use crate::stage::{Peer, Stage};

/// Servers, one for each way in which a call can be served; the caller comes behind them.
const SERVED: [Setting; 3] = [Setting::Off, Setting::On, Setting::Raised];
const CALLER: u32 = SERVED.len() as u32;
/// How often processes are looked at while nothing is heard of them.
const TICK: Duration = Duration::from_millis(250);
/// How long a process may take to end after others noticed.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// Why the experiment did not come to its end.
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

/// The processes; ended on drop.
pub(super) struct Cast {
    peers: Vec<Arc<Peer>>,
    board: Board,
    /// The step that was done last.
    step: u32,
    patience: Duration,
    caller: Sched,
}

impl Cast {
    /// Starts all of them, and returns when the caller is real-time and has called each server.
    pub(super) fn start(
        ask: &Ask,
        cpu: u32,
        context: &AnyContext,
        stage: &Stage<'_>,
    ) -> Result<Self, Trouble> {
        let broken = |what: &str, why: &dyn fmt::Display| Trouble::Broken(format!("{what}: {why}"));
        let size = Size { members: CALLER + 1, callers: 1, samples: ask.iterations as usize, words: WORDS };
        let board = Board::create(size)
            .map_err(|error| broken("making shared memory", &sys::errno::describe(&error)))?;
        let patience = Duration::from_secs(ask.patience_s.max(1));
        let mut cast = Self { peers: Vec::new(), board, step: 0, patience, caller: Sched::other(0) };
        let parts = parts(ask, context);
        for (number, (address, part)) in (0..).zip(parts) {
            let assignment = Assignment {
                flavour: ask.flavour,
                address,
                release: ask.android.to_string(),
                board: cast.board.place(),
                members: size.members,
                iterations: ask.iterations,
                number,
                cpu,
                part,
            };
            let words = assignment.words().map_err(|error| broken("describing a process", &error))?;
            let peer = stage.start_worker(&words).map_err(|error| broken(&title(number), &error))?;
            cast.peers.push(peer);
        }
        let until = Instant::now() + Duration::from_secs(ask.time_limit_s);
        let everybody: Vec<u32> = (0..size.members).collect();
        cast.wait(SERVING, &everybody, until)?;
        cast.board.release(READY, monotonic_ns());
        cast.wait(READY, &[CALLER], until)?;
        cast.step = READY;
        cast.caller = unpack(cast.board.notes(CALLER)[CALLERS_SCHED]);
        Ok(cast)
    }

    /// How the caller was found to be scheduled.
    pub(super) fn caller(&self) -> Sched {
        self.caller
    }

    /// The calls of the next step, which the caller knows to be of this setting. Returns what was made, even
    /// if something went wrong; then no further round is possible.
    pub(super) fn round(&mut self, setting: Setting, until: Instant) -> (Calls, Option<Trouble>) {
        self.step += 1;
        self.board.release(self.step, monotonic_ns());
        let trouble = self.wait(self.step, &[CALLER], until).err();
        let trouble = trouble.map(|trouble| match trouble {
            Trouble::Broken(why) => Trouble::Broken(format!("{why} (in the setting {})", setting.name())),
            stopped @ Trouble::Stopped(_) => stopped,
        });
        let part = self.board.part(CALLER);
        let words = self.board.samples(&[CALLER]);
        (Calls { caller: self.caller, cpu_ns: part.cpu, words }, trouble)
    }

    /// Waits until each of these has done a step. If one cannot, or nothing moves, all are ended.
    fn wait(&mut self, step: u32, whom: &[u32], until: Instant) -> Result<(), Trouble> {
        let (mut calls, mut moved, mut looked) = (0, Instant::now(), Instant::now());
        loop {
            let changes = self.board.changes();
            let done: Vec<u32> = whom.iter().map(|&member| self.board.done(member)).collect();
            if let Some(failed) = (0..=CALLER).find(|&member| self.board.done(member) == FAILED) {
                return Err(self.end(Some(failed)));
            }
            if done.iter().all(|done| *done >= step) {
                return Ok(());
            }
            if let Some(signal) = sys::stop_signal::received() {
                self.kill();
                return Err(Trouble::Stopped(signal));
            }
            if looked.elapsed() >= TICK {
                looked = Instant::now();
                if self.peers.iter().any(|peer| peer.end().is_some()) {
                    return Err(self.end(None));
                }
                let now = self.board.calls(CALLER);
                if now != calls {
                    (calls, moved) = (now, Instant::now());
                }
                let hangs = moved.elapsed() >= self.patience;
                if hangs || Instant::now() >= until {
                    self.kill();
                    return Err(Trouble::Broken(self.tell_stuck(step, hangs)));
                }
            }
            self.board.wait_for_change(changes, TICK);
        }
    }

    fn tell_stuck(&self, step: u32, hangs: bool) -> String {
        if !hangs {
            return "the time limit is over (--time-limit)".to_owned();
        }
        let seconds = self.patience.as_secs();
        match self.board.callee(CALLER) {
            _ if step <= READY => format!("not ready in {seconds} s"),
            Some(callee) => format!("no call came back in {seconds} s: {} was called", title(callee)),
            None => format!("no call was made in {seconds} s"),
        }
    }

    /// Ends all, and says what went wrong with whom.
    fn end(&mut self, failed: Option<u32>) -> Trouble {
        // A call breaks when its server dies, a moment before that counts as dead.
        if let Some(peer) = self.board.callee(CALLER).and_then(|callee| self.peers.get(callee as usize)) {
            let _ = peer.end_within(LAST_BREATH);
        }
        let died: Vec<String> = (0..)
            .zip(&self.peers)
            .filter_map(|(number, peer)| Some(format!("{} died ({})", title(number), peer.end()?)))
            .collect();
        let why = match failed.and_then(|number| Some((number, self.peers.get(number as usize)?))) {
            Some((number, peer)) if died.is_empty() => format!("{}: {}", title(number), peer.last_words()),
            _ => died.join(", "),
        };
        self.kill();
        Trouble::Broken(why)
    }

    fn kill(&self) {
        self.board.stop();
        self.peers.iter().for_each(|peer| peer.kill());
    }
}

/// Where each process opens the context, and its part, in the order of their numbers.
fn parts(ask: &Ask, context: &AnyContext) -> Vec<(String, Part)> {
    let name = |setting: Setting| format!("binderperf.inversion.{}.{}", std::process::id(), setting.name());
    let server = |setting| {
        let inherit_rt = Ask::node_inherits(setting, context);
        let (work_ns, raised) = (ask.work_us * 1000, setting == Setting::Raised);
        let part = Part::Server { name: name(setting), inherit_rt, work_ns, raised };
        (ask.address(setting, context), part)
    };
    let caller = Part::Caller { names: SERVED.map(name), seed: ask.seed };
    SERVED.into_iter().map(server).chain([(context.address(), caller)]).collect()
}

fn title(number: u32) -> String {
    match SERVED.get(number as usize) {
        Some(Setting::Off) => "the server without inheritance".to_owned(),
        Some(Setting::On) => "the server with inheritance".to_owned(),
        Some(_) => "the raised server".to_owned(),
        None => "the caller".to_owned(),
    }
}
