//! Room: the processes of all pairs, from outside: started, led through their steps, ended; one pair that
//! breaks leaves the others alone.
//! Not here: what they do (`role`), what their samples say (`tally`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::clock::monotonic_ns;

use super::ask::{Ask, Flavour};
use super::fault::Injected;
use super::notes::{self, Noted, Seen, Who};
use super::role::{Assignment, DONE, LONGEST_RUN_US, READY, SERVING, Side};
use super::sample::{Sample, WORDS};
use crate::board::{Board, FAILED, Size};
use crate::stage::{Peer, Stage};

/// How often processes are looked at while nothing is heard of them.
const TICK: Duration = Duration::from_millis(100);
/// How long a pair may take to end its call once it was asked to stop.
const GRACE: Duration = Duration::from_secs(2);
/// How long a server may take to be seen dead after its client noticed.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// Where the two ends find each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    /// The context as clients open it; empty without IPC.
    pub(super) client: String,
    /// The same as servers do: with other settings where a fault asks for that.
    pub(super) server: String,
    /// The folder of the tracing switch, if a miss is to put it off.
    pub(super) tracing: Option<std::path::PathBuf>,
    /// Whether clients have a real-time caller.
    pub(super) realtime: bool,
}

struct Pair {
    server: Option<Arc<Peer>>,
    client: Arc<Peer>,
    /// Why it did not come to its end.
    broken: Option<String>,
    /// Calls made when it was looked at last, and since when it is so many.
    calls: u32,
    since: Instant,
}

/// All pairs of a test; ended on drop.
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    board: Board,
    /// Members that are servers.
    servers: u32,
    patience: Duration,
}

/// What one pair came to.
pub(super) struct Result {
    pub(super) samples: Vec<Sample>,
    /// Why it did not make all its calls.
    pub(super) broken: Option<String>,
    pub(super) service: Option<Seen>,
    pub(super) client: Option<Seen>,
    pub(super) fifo: Option<Seen>,
    pub(super) other: Option<Seen>,
    pub(super) miss: Option<Noted>,
}

impl Pairs {
    /// Starts all of them, and returns when each has found whom it calls, or broke.
    ///
    /// # Errors
    /// No memory, or a process cannot be started.
    pub(super) fn start(
        ask: &Ask,
        addresses: &Addresses,
        stage: &Stage<'_>,
    ) -> std::result::Result<Self, String> {
        let servers = if ask.flavour == Flavour::Passthrough { 0 } else { ask.pairs };
        let classes = if addresses.realtime { 2 } else { 1 };
        let samples = usize::try_from(ask.iterations * classes).map_err(|error| error.to_string())?;
        let size = Size { members: servers + ask.pairs, callers: ask.pairs, samples, words: WORDS };
        let board = Board::create(size).map_err(|error| {
            format!("making shared memory for the samples: {}", sys::errno::describe(&error))
        })?;
        // Between two calls of one class at a slow rate nothing is missing.
        let period = Duration::from_secs_f64(ask.rate_hz.map_or(0.0, |rate| classes as f64 / rate));
        let patience = Duration::from_secs(ask.patience_s.max(1)) + period;
        let mut all = Self { pairs: Vec::new(), board, servers, patience };
        for pair in 0..ask.pairs {
            let start = |side| -> std::result::Result<Arc<Peer>, String> {
                let assignment = all.assignment(ask, addresses, size, pair, side);
                let words = assignment.words().map_err(|error| format!("describing pair {pair}: {error}"))?;
                stage.start_worker(&words).map_err(|error| format!("starting pair {pair}: {error}"))
            };
            let server = if servers > 0 { Some(start(Side::Server)?) } else { None };
            let client = start(Side::Client)?;
            all.pairs.push(Pair { server, client, broken: None, calls: 0, since: Instant::now() });
        }
        for (done, next) in [(SERVING, READY), (READY, READY)] {
            if all.wait(done, &mut |_| {}).is_err() {
                return Ok(all);
            }
            all.board.release(next, monotonic_ns());
        }
        Ok(all)
    }

    fn assignment(&self, ask: &Ask, addresses: &Addresses, size: Size, pair: u32, side: Side) -> Assignment {
        let (number, address) = match side {
            Side::Server => (pair, &addresses.server),
            Side::Client => (self.servers + pair, &addresses.client),
        };
        Assignment {
            side,
            flavour: ask.flavour,
            address: address.clone(),
            release: ask.android.to_string(),
            board: self.board.place(),
            members: size.members,
            callers: size.callers,
            samples: size.samples,
            number,
            pair,
            name: format!("binderperf.latency.{}.{pair}", std::process::id()),
            payload: ask.payload,
            iterations: ask.iterations,
            deadline: ask.deadline(),
            rate_hz: ask.rate_hz,
            inherit_rt: ask.inherit_rt,
            realtime: addresses.realtime.then_some(ask.priority),
            tracing: addresses.tracing.clone(),
            faults: ask.faults_of(pair),
            cpus: cpus_of(ask, side),
            seed: 1 + u64::from(pair),
        }
    }

    /// Whether any of them is not broken.
    pub(super) fn any_whole(&self) -> bool {
        self.pairs.iter().any(|pair| pair.broken.is_none())
    }

    /// Lets all pairs begin, and waits until each has made its calls or broke. `progress` is told now and then
    /// how many calls were made. A signal stops all; which one is the error.
    pub(super) fn run(&mut self, progress: &mut dyn FnMut(u64)) -> std::result::Result<(), &'static str> {
        let now = Instant::now();
        self.pairs.iter_mut().for_each(|pair| pair.since = now);
        self.board.release(DONE, monotonic_ns());
        self.wait(DONE, progress)
    }

    /// Waits until each pair that is not broken has done a step.
    fn wait(&mut self, step: u32, progress: &mut dyn FnMut(u64)) -> std::result::Result<(), &'static str> {
        let mut looked = Instant::now();
        let mut stopping: Option<(&'static str, Instant)> = None;
        loop {
            let changes = self.board.changes();
            let closely = looked.elapsed() >= TICK;
            if closely {
                looked = Instant::now();
                progress(
                    (0..self.pairs.len()).map(|pair| u64::from(self.board.calls(self.client(pair)))).sum(),
                );
            }
            let mut waiting = false;
            for pair in 0..self.pairs.len() {
                waiting |= !self.is_settled(pair, step, closely);
            }
            match (waiting, stopping) {
                (false, None) => return Ok(()),
                (false, Some((signal, _))) => return Err(signal),
                (true, Some((signal, since))) if since.elapsed() >= GRACE => return Err(signal),
                (true, None) if let Some(signal) = sys::stop_signal::received() => {
                    self.board.stop();
                    stopping = Some((signal, Instant::now()));
                }
                _ => {}
            }
            self.board.wait_for_change(changes, TICK);
        }
    }

    fn client(&self, pair: usize) -> u32 {
        self.servers + pair as u32
    }

    /// Whether a pair has done a step, or never will. Death and silence are looked for only `closely`.
    fn is_settled(&mut self, pair: usize, step: u32, closely: bool) -> bool {
        if self.pairs[pair].broken.is_some() {
            return true;
        }
        let client = self.board.done(self.client(pair));
        let server = if self.servers > 0 { self.board.done(pair as u32) } else { step };
        let broken = match (client, server) {
            (FAILED, _) => Some(self.why_client_failed(pair)),
            (_, FAILED) => self.pairs[pair].server.as_ref().map(|server| server.last_words()),
            (client, server) if client >= step && server >= step => return true,
            _ if closely => self.dead(pair).or_else(|| self.silent(pair)),
            _ => None,
        };
        if broken.is_some() {
            let pair = &mut self.pairs[pair];
            pair.client.kill();
            pair.server.iter().for_each(|server| server.kill());
            pair.broken = broken;
        }
        self.pairs[pair].broken.is_some()
    }

    fn why_client_failed(&self, pair: usize) -> String {
        let pair = &self.pairs[pair];
        let end = pair.server.as_ref().and_then(|server| server.end_within(LAST_BREATH));
        let said = pair.client.last_words();
        match end {
            Some(end) => format!("the server died ({end}): {said}"),
            None => said,
        }
    }

    fn dead(&self, pair: usize) -> Option<String> {
        /// The signal of the soft limit, x86 and ARM alike.
        const SIGXCPU: i32 = 24;
        use std::os::unix::process::ExitStatusExt;
        let pair = &self.pairs[pair];
        let ends = [("client", Some(&pair.client)), ("server", pair.server.as_ref())];
        ends.into_iter().find_map(|(who, peer)| {
            let end = peer?.end()?;
            Some(match end.signal() {
                Some(SIGXCPU) => format!(
                    "the {who} was ended: a real-time thread of it ran for {} ms without sleeping",
                    LONGEST_RUN_US / 1000
                ),
                _ => format!("the {who} died ({end})"),
            })
        })
    }

    fn silent(&mut self, pair: usize) -> Option<String> {
        let calls = self.board.calls(self.client(pair));
        let seconds = self.patience.as_secs();
        let looked = &mut self.pairs[pair];
        if calls != looked.calls {
            (looked.calls, looked.since) = (calls, Instant::now());
        }
        (looked.since.elapsed() >= self.patience).then(|| match self.board.done(self.client(pair)) {
            READY => {
                format!("no reply to call {} in {seconds} s: it was lost, or the service hangs", calls + 1)
            }
            _ => format!("not ready in {seconds} s"),
        })
    }

    /// What they came to; ends them all.
    pub(super) fn results(mut self) -> Vec<Result> {
        (0..self.pairs.len()).map(|pair| self.result(pair)).collect()
    }

    fn result(&mut self, pair: usize) -> Result {
        let client = self.client(pair);
        let words = self.board.samples(&[client]);
        let (samples, _) = words.as_chunks();
        let notes = self.board.notes(client);
        let service = (self.servers > 0).then(|| self.board.notes(pair as u32));
        Result {
            samples: samples.iter().map(Sample::of).collect(),
            broken: self.pairs[pair].broken.take(),
            service: service.and_then(|notes| Seen::read(&notes, Who::Main)),
            client: Seen::read(&notes, Who::Main),
            fifo: Seen::read(&notes, Who::Fifo),
            other: Seen::read(&notes, Who::Other),
            miss: notes::miss(&notes, pair as u32),
        }
    }
}

/// Where an end may run: anywhere, unless it shall be wrong.
fn cpus_of(ask: &Ask, side: Side) -> Option<Vec<u32>> {
    if let Some([client, server]) = ask.cpus {
        return Some(vec![if side == Side::Client { client } else { server }]);
    }
    if !ask.injected.contains(&Injected::WrongCpu) {
        return None;
    }
    let mut usable = sys::sched::affinity().ok()?;
    let last = usable.pop()?;
    Some(if side == Side::Client { vec![last] } else { usable })
}
