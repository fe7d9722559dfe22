//! A process of a program: takes steps from its standard input, each on one of its threads, and writes what came of it.
//! Not here: whose turn it is (`stage`).
//!
//! Lines in: `begin PIDS`, `do STEP`, `look` (what became of waiting threads), `plan STEP` and `go SEED` (takes the planned
//! steps side by side), `settle` (waits until they are taken), `reached` (new places of the driver), `end`. Each is answered with one line.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backend::AnyContext;
use driver::{AnyConnection, Connection, Context, Exchange, OpenOptions};
use procgroup::{Role, WorkerProcess};
use serde::{Deserialize, Serialize};
use sys::interrupt::{Interrupter, ThreadId};
use sys::kcov::Coverage;

use crate::heir::{self, Heritage};
use crate::lane::{self, Lane, lanes};
use crate::outcome;
use crate::payload::Encoded;
use crate::program::{Action, Command, Read, Step, THREADS};
use crate::state::State;
use crate::transcript::Spot;

/// Time after which a step that does not wait hangs.
const HANG: Duration = Duration::from_secs(20);
/// The same of steps side by side, which are all taken within milliseconds.
const LANE_HANG: Duration = Duration::from_secs(6);
/// Outcome of a step whose thread waits in one before.
pub(crate) const WAITS: &str = "its thread waits";
/// Looks in a row after which a thread is taken to sleep until somebody wakes it.
const CALM: u32 = 20;
/// Time between looks at a thread that may sleep.
const LOOK: Duration = Duration::from_micros(250);

/// The role of a player.
#[derive(Serialize, Deserialize)]
pub(crate) struct PlayerRole {
    /// Address of the context.
    pub(crate) address: String,
    /// Looks in a row at which a thread must sleep. A kernel wakes a thread before the waking call returns; the embedded
    /// driver's broker may wake it a little later.
    pub(crate) looks: u32,
    /// State of the player that became this program.
    pub(crate) heritage: Option<Heritage>,
}

impl Role for PlayerRole {
    const NAME: &'static str = "fuzz-player";

    fn run(self) -> Result<(), String> {
        serve(self).map_err(|error| sys::errno::describe(&error))
    }
}

/// The role of a child of a player.
#[derive(Serialize, Deserialize)]
pub(crate) struct HeirRole {
    heritage: Heritage,
    /// Text of its action.
    action: String,
}

impl Role for HeirRole {
    const NAME: &'static str = "fuzz-heir";

    fn run(self) -> Result<(), String> {
        let action = self.action.parse()?;
        let os = |error: io::Error| sys::errno::describe(&error);
        let shared = Shared::new(String::new(), self.heritage.into_state().map_err(os)?).map_err(os)?;
        procgroup::role::tell_ready(&shared.act(0, &action)).map_err(os)
    }
}

/// State that the threads of the process share.
pub(crate) struct Shared {
    address: String,
    interrupter: Interrupter,
    files: [File; 2],
    state: Mutex<State>,
    /// The outcome of each thread's step, once it is there.
    slots: Mutex<[Option<String>; THREADS]>,
    done: Condvar,
    /// Places of the driver that the threads reached since they were asked for.
    reached: Mutex<BTreeSet<Spot>>,
    /// CPUs of the process.
    cpus: Vec<u32>,
    /// Steps of lanes that are not begun are left out.
    stop: AtomicBool,
    /// Whether a thread is in a step of its lane that may sleep.
    may_sleep: [AtomicBool; THREADS],
}

/// Work for a thread.
enum Job {
    /// One step.
    Step(Action),
    /// Steps on its own.
    Lane(Lane),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Player {
    shared: Arc<Shared>,
    threads: Vec<Sender<Job>>,
    /// Threads whose step or lane is not known to have ended.
    waiting: [bool; THREADS],
    looks: u32,
    /// Steps to be taken side by side.
    plan: Vec<Step>,
    /// Threads that have begun to take them.
    side_by_side: [bool; THREADS],
}

fn serve(role: PlayerRole) -> io::Result<()> {
    let state = role.heritage.map(Heritage::into_state).transpose()?;
    // The first line: `ok` after exec, else that it is ready.
    let greeting = state.as_ref().map(|state| if state.connection.is_some() { "ok" } else { "ok, closed" });
    let shared = Arc::new(Shared::new(role.address, state.unwrap_or_default())?);
    let (waiting, side_by_side, plan) = ([false; THREADS], [false; THREADS], Vec::new());
    let mut player = Player { shared, threads: Vec::new(), waiting, looks: role.looks, plan, side_by_side };
    player.start_threads();
    match greeting {
        None => procgroup::role::tell_ready("")?,
        Some(greeting) => procgroup::role::say(greeting),
    }
    for line in io::stdin().lines() {
        let line = line?;
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match word {
            "begin" => player.begin(rest),
            "do" => player.take(rest),
            "look" => player.look(),
            "plan" => player.plan(rest),
            "go" => player.go(rest.parse().unwrap_or_default()),
            "settle" => player.calm(),
            "reached" => serde_json::to_string(&std::mem::take(&mut *locked(&player.shared.reached)))?,
            _ => player.end(),
        };
        procgroup::role::say(&answer);
    }
    Ok(())
}

impl Player {
    fn start_threads(&mut self) {
        for number in 0..THREADS {
            let (sender, jobs) = mpsc::channel::<Job>();
            let shared = Arc::clone(&self.shared);
            std::thread::spawn(move || {
                locked(&shared.state).threads[number] = Some(ThreadId::current());
                // Without it programs are chosen by their seeds alone, as everywhere else.
                let mut coverage = Coverage::begin().ok();
                for job in jobs {
                    let outcome = match job {
                        Job::Step(action) => shared.act(number, &action),
                        Job::Lane(lane) => shared.follow(number, &lane),
                    };
                    let reached = coverage.iter_mut().flat_map(Coverage::take);
                    locked(&shared.reached).extend(reached.map(|address| address as Spot));
                    locked(&shared.slots)[number] = Some(outcome);
                    shared.done.notify_all();
                }
            });
            self.threads.push(sender);
        }
        while locked(&self.shared.state).threads.contains(&None) {
            std::thread::yield_now();
        }
    }

    fn begin(&mut self, pids: &str) -> String {
        let mut state = locked(&self.shared.state);
        state.kept.pids = pids.split(' ').filter_map(|pid| pid.parse().ok()).collect();
        "ok".to_owned()
    }

    /// Takes a step; `waits` if its thread sleeps in the driver.
    fn take(&mut self, text: &str) -> String {
        let Step { thread, action, .. } = match text.parse() {
            Ok(step) => step,
            Err(why) => return why,
        };
        if self.waiting[thread] {
            return WAITS.to_owned();
        }
        match action {
            Action::Close if self.waiting.contains(&true) => return "a thread waits".to_owned(),
            Action::Close => {
                // By nobody's thread: the last use closes it.
                return self.shared.close();
            }
            Action::Signal(target) => return self.signal(target),
            Action::Exec => return self.exec(),
            _ => {}
        }
        let may_wait = matches!(&action, Action::Exchange(_, Some(Read { waits: true, .. })));
        locked(&self.shared.slots)[thread] = None;
        // Fails only after the thread has ended, which it does with this process.
        let _ = self.threads[thread].send(Job::Step(action));
        match self.settle(thread, may_wait) {
            Some(outcome) => outcome,
            None if may_wait => {
                self.waiting[thread] = true;
                "waits".to_owned()
            }
            None => "hangs".to_owned(),
        }
    }

    /// Goes on as another program, which answers; returns only if it cannot be run.
    fn exec(&self) -> String {
        let state = locked(&self.shared.state);
        if state.connection.is_none() {
            return "not open".to_owned();
        }
        let (address, looks) = (self.shared.address.clone(), self.looks);
        let error = Heritage::lend(&state, |heritage| {
            WorkerProcess::replace_this(&PlayerRole { address, looks, heritage: Some(heritage) })
        });
        sys::errno::describe(&error)
    }

    fn signal(&self, target: usize) -> String {
        if self.waiting[target] { self.shared.signal(target) } else { "nobody waits".to_owned() }
    }

    fn plan(&mut self, text: &str) -> String {
        match text.parse::<Step>() {
            Ok(step) if self.waiting[step.thread] => return WAITS.to_owned(),
            Ok(step) => self.plan.push(step),
            Err(why) => return why,
        }
        "ok".to_owned()
    }

    /// Begins the planned steps side by side.
    fn go(&mut self, seed: u64) -> String {
        let lanes = lanes(seed, std::mem::take(&mut self.plan), &self.shared.cpus);
        for (thread, lane) in lanes.into_iter().enumerate() {
            self.side_by_side[thread] = !lane.turns.is_empty();
            if lane.turns.is_empty() {
                continue;
            }
            self.waiting[thread] = true;
            locked(&self.shared.slots)[thread] = None;
            let _ = self.threads[thread].send(Job::Lane(lane));
        }
        "ok".to_owned()
    }

    /// Waits until each thread has taken its steps, or sleeps in one that may.
    fn calm(&self) -> String {
        let (start, mut asleep) = (Instant::now(), [0; THREADS]);
        let ids = locked(&self.shared.state).threads;
        loop {
            let busy = (0..THREADS).find(|thread| {
                let is_over = locked(&self.shared.slots)[*thread].is_some();
                self.side_by_side[*thread] && !is_over && asleep[*thread] <= CALM
            });
            let Some(busy) = busy else { return "ok".to_owned() };
            if sys::patience::is_over(start, LANE_HANG) {
                return format!("t{busy} hangs");
            }
            std::thread::sleep(LOOK);
            for (thread, id) in ids.iter().enumerate() {
                let sleeps =
                    self.shared.may_sleep[thread].load(Ordering::Relaxed) && id.is_some_and(is_asleep);
                asleep[thread] = if sleeps { asleep[thread] + 1 } else { 0 };
            }
        }
    }

    /// The outcome of a thread's step; `None` if it sleeps or hangs.
    fn settle(&self, thread: usize, may_wait: bool) -> Option<String> {
        let (start, mut asleep) = (Instant::now(), 0);
        let id = locked(&self.shared.state).threads[thread];
        let mut slots = locked(&self.shared.slots);
        loop {
            if let Some(outcome) = slots[thread].take() {
                return Some(outcome);
            }
            slots = self.shared.done.wait_timeout(slots, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if may_wait && slots[thread].is_none() && id.is_some_and(is_asleep) {
                asleep += 1;
                if asleep > self.looks {
                    return None;
                }
            } else {
                asleep = 0;
            }
            if sys::patience::is_over(start, HANG) {
                return None;
            }
        }
    }

    /// Outcomes of the threads that wait no more: `t1 OUTCOME|t2 OUTCOME`.
    fn look(&mut self) -> String {
        let mut ended = Vec::new();
        for thread in 0..THREADS {
            if self.waiting[thread]
                && let Some(outcome) = self.settle(thread, true)
            {
                self.waiting[thread] = false;
                ended.push(format!("t{thread} {outcome}"));
            }
        }
        ended.join("|")
    }

    /// Ends what waits and closes everything, for the next program.
    fn end(&mut self) -> String {
        let start = Instant::now();
        self.shared.stop.store(true, Ordering::Relaxed);
        while self.waiting.contains(&true) {
            if sys::patience::is_over(start, HANG) {
                return "hangs".to_owned();
            }
            let connection = locked(&self.shared.state).connection.clone();
            // An error means that there is nothing to wake.
            let _ = connection.map(|connection| connection.wake_readers());
            let ids = locked(&self.shared.state).threads;
            for (thread, id) in ids.into_iter().enumerate() {
                if self.waiting[thread] {
                    let _ = id.map(|id| self.shared.interrupter.interrupt(id));
                }
            }
            std::thread::sleep(LOOK);
            let mut slots = locked(&self.shared.slots);
            for (thread, slot) in slots.iter_mut().enumerate() {
                self.waiting[thread] &= slot.take().is_none();
            }
        }
        self.shared.stop.store(false, Ordering::Relaxed);
        self.shared.close();
        locked(&self.shared.state).kept.freed = 0;
        "ok".to_owned()
    }
}

/// Whether a thread of this process sleeps.
fn is_asleep(thread: ThreadId) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", thread.number()));
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S')))
}

fn errno(result: io::Result<String>) -> String {
    result.unwrap_or_else(|error| {
        let number = sys::errno::number(&error).unwrap_or_default();
        sys::errno::name(number).map_or_else(|| format!("errno {number} ({error})"), str::to_owned)
    })
}

fn ok((): ()) -> String {
    "ok".to_owned()
}

impl Shared {
    /// Makes it for a process in this state, which opens this context.
    pub(crate) fn new(address: String, state: State) -> io::Result<Self> {
        Ok(Self {
            address,
            interrupter: Interrupter::install_without_restart()?,
            files: [File::open("/dev/null")?, File::open("/dev/zero")?],
            state: Mutex::new(state),
            slots: Mutex::default(),
            done: Condvar::new(),
            reached: Mutex::default(),
            cpus: sys::sched::affinity()?,
            stop: AtomicBool::new(false),
            may_sleep: Default::default(),
        })
    }

    fn close(&self) -> String {
        let was = {
            let mut state = locked(&self.state);
            state.kept.held.clear();
            state.kept.nonblocking = false;
            state.met = [false; THREADS];
            state.connection.take()
        };
        // It closes below, without the lock, unless another thread uses it.
        if was.is_some() { "ok".to_owned() } else { "not open".to_owned() }
    }

    fn open(&self, map_size: u32) -> String {
        let mut state = locked(&self.state);
        if state.connection.is_some() {
            return "open already".to_owned();
        }
        let options = OpenOptions { map_size: map_size as usize, nonblocking: false };
        match AnyContext::parse(&self.address).open(options) {
            Ok(connection) => {
                state.connection = Some(Arc::new(connection));
                "ok".to_owned()
            }
            Err(why) => why.to_string().lines().collect::<Vec<_>>().join(" "),
        }
    }

    fn signal(&self, target: usize) -> String {
        let thread = locked(&self.state).threads[target];
        match thread.map(|thread| self.interrupter.interrupt(thread)) {
            Some(Ok(())) => "sent".to_owned(),
            _ => "not sent".to_owned(),
        }
    }

    /// Takes the steps of a lane.
    fn follow(&self, thread: usize, lane: &Lane) -> String {
        lane.adopt();
        for (time, action) in &lane.turns {
            lane::wait(*time);
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            // Another thread may have made the file a blocking one.
            let may_sleep = matches!(action, Action::Exchange(_, Some(_)));
            self.may_sleep[thread].store(may_sleep, Ordering::Relaxed);
            let _ = match action {
                Action::Close => self.close(),
                Action::Signal(target) => self.signal(*target),
                _ => self.act(thread, action),
            };
            self.may_sleep[thread].store(false, Ordering::Relaxed);
        }
        lane::leave(&self.cpus);
        "ok".to_owned()
    }

    /// Takes an action by a thread, and returns what came of it.
    pub(crate) fn act(&self, thread: usize, action: &Action) -> String {
        errno(self.tried(thread, action))
    }

    fn tried(&self, thread: usize, action: &Action) -> io::Result<String> {
        if let Action::Open(size) = action {
            return Ok(self.open(*size));
        }
        let (connection, pids, met) = {
            let mut state = locked(&self.state);
            let Some(connection) = state.connection.clone() else { return Ok("not open".to_owned()) };
            // After its exit a thread is new to the driver.
            let met = std::mem::replace(&mut state.met[thread], *action != Action::ThreadExit);
            (connection, state.kept.pids.clone(), met)
        };
        if !met {
            // Ends the state in which a first read never blocks (contract WR-05), which not all drivers have.
            connection.version()?;
        }
        let pid = |proc: &usize| pids.get(*proc).copied().unwrap_or_default();
        match action {
            Action::Open(_) | Action::Close | Action::Kill | Action::Signal(_) => Ok(String::new()),
            Action::Exec | Action::Schedule(_) => Ok(String::new()),
            Action::Fork(action) => {
                let mut state = locked(&self.state);
                self.wait_in_reads(&mut state, &connection, false)?;
                let action = action.to_string();
                Ok(heir::run_child(&state, |heritage| HeirRole { heritage, action }))
            }
            Action::Manager => connection.become_context_manager(None).map(ok),
            Action::MaxThreads(count) => connection.set_max_threads(*count).map(ok),
            Action::ThreadExit => connection.thread_exit().map(ok),
            Action::Version => connection.version().map(|version| version.to_string()),
            Action::Freeze(proc, on) => {
                let info = abi::layout::FreezeInfo { pid: pid(proc), enable: u32::from(*on), timeout_ms: 0 };
                connection.freeze(info).map(ok)
            }
            Action::FrozenInfo(proc) => {
                let info = connection.frozen_info(pid(proc))?;
                Ok(format!("sync={} async={}", info.sync_recv, info.async_recv))
            }
            Action::NodeInfo(handle) => {
                let asked = abi::layout::NodeInfoForRef { handle: *handle, ..Default::default() };
                let info = connection.node_info_for_ref(asked)?;
                Ok(format!("strong={} weak={}", info.strong_count, info.weak_count))
            }
            Action::NodeDebug(above) => {
                let info = connection.node_debug_info(*above)?;
                let [strong, weak] = [info.has_strong_ref, info.has_weak_ref].map(|has| u8::from(has != 0));
                Ok(format!("node={},{} strong={strong} weak={weak}", info.ptr, info.cookie))
            }
            Action::ExtendedError => {
                let error = connection.extended_error()?;
                let command = abi::codes::ReturnWord(error.command);
                let name = sys::errno::name(-error.param).unwrap_or("0");
                Ok(format!("{command} {}", if error.param == 0 { "0" } else { name }))
            }
            Action::Spam(on) => connection.enable_oneway_spam_detection(*on).map(ok),
            Action::Poll => Ok(format!("readable={}", u8::from(connection.poll_readable(0)?))),
            Action::Exchange(commands, read) => self.exchange(&connection, commands, *read, &pids),
        }
    }

    /// Makes reads of the process's file wait, or not.
    fn wait_in_reads(&self, state: &mut State, connection: &AnyConnection, on: bool) -> io::Result<()> {
        if state.kept.nonblocking == on {
            connection.set_nonblocking(!on)?;
            state.kept.nonblocking = !on;
        }
        Ok(())
    }

    fn exchange(
        &self,
        connection: &AnyConnection,
        commands: &[Command],
        read: Option<Read>,
        pids: &[u32],
    ) -> io::Result<String> {
        let encoded = {
            let mut state = locked(&self.state);
            let waits = read.is_some_and(|read| read.waits);
            self.wait_in_reads(&mut state, connection, waits)?;
            let files = [self.files[0].as_raw_fd(), self.files[1].as_raw_fd()];
            Encoded::of(commands, &state.kept, files)
        };
        let mut room = vec![0; read.map_or(0, |read| read.room as usize)];
        let write = encoded.commands.as_bytes();
        let mut exchange = Exchange::new(write, &mut room);
        let result = connection.write_read(&mut exchange);
        let consumed = exchange.write_consumed;
        let taken = encoded.ends.iter().take_while(|(end, _)| *end <= consumed).count();
        let seen = outcome::decode(exchange.returned(), connection, pids);
        let mut state = locked(&self.state);
        for address in encoded.ends[..taken].iter().filter_map(|(_, freed)| *freed) {
            state.kept.held.retain(|held| *held != address);
            state.kept.freed = address;
        }
        state.kept.held.extend(seen.buffers);
        let whole = encoded.ends.last().map_or(0, |(end, _)| *end);
        let taken = if consumed == whole { String::new() } else { format!(" taken={taken}") };
        let text = format!("{}{taken} {}", errno(result.map(ok)), seen.text);
        Ok(text.trim_end().to_owned())
    }
}
