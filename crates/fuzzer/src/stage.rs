//! Runs programs on one context of one driver: starts the players, gives each its steps in order, and waits until the driver
//! is at rest before the next.
//! Not here: the steps themselves (`player`), other drivers (`compare`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fastrand::Rng;

use backend::AnyContext;
use driver::kernel_state::{self, StateFile};
use driver::{AnyConnection, Context, OpenOptions};
use procgroup::{Streams, WorkerProcess};
use sys::patience::{stretched, until};

use crate::player::PlayerRole;
use crate::program::{Action, PROCS, Program, Step};
use crate::transcript::{Line, Spot, Transcript};

/// Longest time of one answer of a player, which itself gives up earlier.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest time of a release.
const RELEASE: Duration = Duration::from_secs(5);
/// Time that a release takes to report deaths after the process is off the driver's list.
const AFTERMATH: Duration = Duration::from_millis(3);
/// Longest time until a process is killed that runs beside others, in microseconds.
const KILL_US: u64 = 5000;
/// Looks at a sleeping thread: of a kernel's driver, and of the embedded one.
const LOOKS: (u32, u32) = (2, 30);

/// A context with players.
pub struct Stage {
    context: AnyContext,
    players: [Option<WorkerProcess>; PROCS],
    /// Processes in the driver's state without the players'.
    others: Option<usize>,
    /// Counts of the driver, by kind, without the players' processes.
    counts: BTreeMap<String, u64>,
    /// Places of the driver that programs have reached, step by step.
    reached: BTreeSet<Spot>,
    /// Those of the present program.
    now: BTreeSet<Spot>,
    /// Players that did not answer, and are not asked again.
    lost: [bool; PROCS],
    /// Whether the kernel reports places.
    has_coverage: bool,
    /// Whether nobody else uses the driver, so that its counts are those of the programs.
    is_alone: bool,
    /// Keeps the embedded driver's broker alive.
    _keeper: Option<AnyConnection>,
}

impl Stage {
    /// A stage on a context that nobody else uses.
    ///
    /// # Errors
    /// The context cannot be opened.
    pub fn new(context: AnyContext) -> Result<Self, String> {
        let options = OpenOptions { map_size: 0, nonblocking: true };
        let keeper = context.open(options).map_err(|why| why.to_string())?;
        let is_embedded = matches!(context, AnyContext::Embedded(_));
        let own = usize::from(is_embedded);
        let mut stage = Self {
            context,
            players: Default::default(),
            others: None,
            counts: BTreeMap::new(),
            reached: BTreeSet::new(),
            now: BTreeSet::new(),
            lost: [false; PROCS],
            has_coverage: !is_embedded && sys::kcov::is_there(),
            is_alone: false,
            _keeper: is_embedded.then_some(keeper),
        };
        // The release of what was opened to try it comes a moment later.
        let _ = until(RELEASE / 10, || stage.processes().is_none_or(|count| count <= own));
        stage.others = stage.processes();
        stage.is_alone = stage.others == Some(own);
        stage.counts = stage.active();
        Ok(stage)
    }

    fn state(&self, which: StateFile) -> Option<String> {
        match &self.context {
            AnyContext::Kernel(context) => kernel_state::read_here(Some(context.path()), which).ok()?,
            AnyContext::Embedded(context) => context.state(which).ok()?,
        }
    }

    /// Processes that the driver knows; `None` if it does not say.
    fn processes(&self) -> Option<usize> {
        Some(self.state(StateFile::State)?.lines().filter(|line| line.starts_with("proc ")).count())
    }

    /// Present counts of the driver, by kind; none where it does not count, or others use it.
    fn active(&self) -> BTreeMap<String, u64> {
        let text = if self.is_alone { self.state(StateFile::Stats) } else { None }.unwrap_or_default();
        let count = |line: &str| {
            let (kind, rest) = line.split_once(": active ")?;
            Some((kind.to_owned(), rest.split(' ').next()?.parse().ok()?))
        };
        text.lines().filter_map(count).collect()
    }

    /// Kinds of which more is there than without processes, once the driver has had time to release them.
    fn left_behind(&self) -> Vec<String> {
        let more = |(kind, count): (String, u64)| {
            let left = count.saturating_sub(self.counts.get(&kind).copied().unwrap_or_default());
            (left > 0).then(|| format!("{kind} {left}"))
        };
        let mut found = Vec::new();
        let _ = until(RELEASE, || {
            found = self.active().into_iter().filter_map(more).collect();
            found.is_empty()
        });
        found
    }

    /// Counts of the first node without a process, as the driver's state has them: which of them keeps it.
    fn dead_nodes(&self) -> Option<String> {
        let state = self.state(StateFile::State)?;
        let mut nodes = state.lines().skip_while(|line| !line.starts_with("dead nodes:")).skip(1);
        let line = nodes.find(|line| line.trim_start().starts_with("node "))?;
        line.find(" hs ").map(|at| line[at + 1..].to_owned())
    }

    /// Waits until the driver has released all but `open` processes of the program.
    fn rest(&self, open: usize) -> bool {
        let Some(others) = self.others else {
            std::thread::sleep(20 * AFTERMATH);
            return true;
        };
        let is_released = until(RELEASE, || self.processes().is_none_or(|count| count <= others + open));
        std::thread::sleep(AFTERMATH);
        is_released
    }

    /// Starts the players of a program that do not run.
    fn gather(&mut self, count: usize) -> Result<(), String> {
        let looks = if self.context.device().is_some() { LOOKS.0 } else { LOOKS.1 };
        let role = PlayerRole { address: self.context.address(), looks, heritage: None };
        let places = self.players.iter_mut().zip(&mut self.lost).take(count);
        for (place, lost) in places.filter(|(place, _)| place.is_none()) {
            let streams = Streams::of(std::process::Stdio::piped(), std::process::Stdio::piped());
            let player = WorkerProcess::start(&role, streams, None)
                .map_err(|error| format!("starting a process: {error}"))?;
            player.ready(ANSWER).map_err(|why| format!("a process did not start: {why}"))?;
            *place = Some(player);
            *lost = false;
        }
        Ok(())
    }

    /// Runs a program.
    ///
    /// # Errors
    /// The driver can run no more programs: processes could not be started, or do not end although they were killed.
    pub fn run(&mut self, program: &Program) -> Result<Transcript, String> {
        let count = program.steps.iter().map(|step| step.proc + 1).max().unwrap_or(0);
        self.gather(count)?;
        let mut run = Run { open: [false; PROCS], waiting: BTreeMap::new(), lines: Vec::new() };
        let pids: Vec<String> = self
            .players
            .iter()
            .map(|place| place.as_ref().map_or(0, WorkerProcess::pid).to_string())
            .collect();
        for proc in 0..count {
            self.ask(proc, &format!("begin {}", pids.join(" ")));
        }
        for (number, step) in program.steps.iter().enumerate() {
            if let Action::Schedule(seed) = step.action {
                self.together(number, seed, &program.steps[number + 1..], &mut run)?;
                break;
            }
            let outcome = self.take(step.proc, &step.action, &step.to_string(), &mut run)?;
            let hangs = outcome == "hangs";
            if outcome == "waits" {
                *run.waiting.entry(step.proc).or_default() += 1;
            }
            run.lines.push(Line { step: number, thread: None, text: outcome });
            if hangs {
                break;
            }
            self.look(number, &format!("p{}.t{}", step.proc, step.thread), &mut run);
        }
        let end = program.steps.len().saturating_sub(1);
        self.clear(count, program.schedule().map_or(end, |(number, _)| number), &mut run)?;
        // Steps side by side reach places in that order only, and are not kept.
        let mut reached = std::mem::take(&mut self.now);
        match program.schedule() {
            Some(_) => reached.clear(),
            None => reached.retain(|spot| self.reached.insert(*spot)),
        }
        Ok(Transcript { lines: run.lines, reached, kernel: Vec::new() })
    }

    /// Takes steps side by side; notes only what is wrong.
    fn together(&mut self, number: usize, seed: u64, steps: &[Step], run: &mut Run) -> Result<(), String> {
        let mut rng = Rng::with_seed(seed);
        let mut kills: Vec<(Duration, usize)> = Vec::new();
        let mut note = |proc: usize, text: String| {
            if text != "ok" {
                run.lines.push(Line { step: number, thread: Some(format!("p{proc}")), text });
            }
        };
        for step in steps {
            let is_killed = kills.iter().any(|(_, proc)| *proc == step.proc);
            match step.action {
                _ if is_killed => {}
                // An exec would end the threads that run beside it.
                Action::Schedule(_) | Action::Exec => {}
                Action::Kill => kills.push((Duration::from_micros(rng.u64(..KILL_US)), step.proc)),
                _ => note(step.proc, self.ask(step.proc, &format!("plan {step}"))),
            }
        }
        let there: Vec<usize> = (0..PROCS).filter(|proc| self.players[*proc].is_some()).collect();
        for proc in &there {
            note(*proc, self.ask(*proc, &format!("go {seed}")));
        }
        kills.sort_unstable();
        let start = Instant::now();
        for (after, proc) in &kills {
            std::thread::sleep(after.saturating_sub(start.elapsed()));
            self.kill(*proc)?;
        }
        for proc in there.into_iter().filter(|proc| !kills.iter().any(|(_, killed)| killed == proc)) {
            note(proc, self.ask(proc, "settle"));
        }
        Ok(())
    }

    /// Kills a process, if it is there.
    fn kill(&mut self, proc: usize) -> Result<(), String> {
        let Some(player) = self.players[proc].take() else { return Ok(()) };
        player.kill();
        if player.end_within(stretched(RELEASE)).is_some() {
            return Ok(());
        }
        // Its value would wait for it.
        std::mem::forget(player);
        Err(format!("p{proc} hangs in the driver and cannot be killed"))
    }

    fn take(&mut self, proc: usize, action: &Action, text: &str, run: &mut Run) -> Result<String, String> {
        if *action == Action::Kill {
            run.waiting.remove(&proc);
            self.note_reached(proc);
            let was_open = std::mem::take(&mut run.open[proc]);
            if self.players[proc].is_none() {
                return Ok("gone".to_owned());
            }
            self.kill(proc)?;
            return Ok(run.released("ok".to_owned(), was_open && !self.rest(run.count())));
        }
        if *action == Action::Exec {
            self.note_reached(proc);
        }
        let outcome = self.ask(proc, &format!("do {text}"));
        if *action == Action::Exec && outcome.starts_with("ok") {
            // Its threads have ended, those that waited among them.
            run.waiting.remove(&proc);
        }
        match (action, outcome.as_str()) {
            (Action::Open(_), "ok") => run.open[proc] = true,
            // The embedded driver tells its peers a moment later.
            (Action::ThreadExit, "ok") => std::thread::sleep(AFTERMATH),
            // A kernel flushes the process a moment after its descriptor was closed in the child.
            (Action::Fork(_), _) | (Action::Exec, "ok") => std::thread::sleep(AFTERMATH),
            (Action::Close, "ok") | (Action::Exec, "ok, closed") => {
                run.open[proc] = false;
                return Ok(run.released(outcome, !self.rest(run.count())));
            }
            _ => {}
        }
        Ok(outcome)
    }

    /// Notes what became of threads that waited.
    fn look(&mut self, number: usize, actor: &str, run: &mut Run) {
        let procs: Vec<usize> = run.waiting.keys().copied().collect();
        for proc in procs {
            let answer = self.ask(proc, "look");
            for part in answer.split('|').filter(|part| part.starts_with('t')) {
                let (thread, text) = part.split_once(' ').unwrap_or((part, ""));
                let thread = format!("p{proc}.{thread}");
                // A step that seemed to wait, and did not.
                match run.lines.last_mut().filter(|line| line.text == "waits" && thread == actor) {
                    Some(line) => line.text = text.to_owned(),
                    None => {
                        run.lines.push(Line { step: number, thread: Some(thread), text: text.to_owned() });
                    }
                }
                let left = run.waiting.entry(proc).or_default();
                *left = left.saturating_sub(1);
            }
        }
        run.waiting.retain(|_, count| *count > 0);
    }

    /// Notes places that a process has reached.
    fn note_reached(&mut self, proc: usize) {
        if self.has_coverage && !self.lost[proc] && self.players[proc].is_some() {
            let answer = self.ask(proc, "reached");
            // A player that ended has none.
            self.now.extend(serde_json::from_str::<Vec<Spot>>(&answer).unwrap_or_default());
        }
    }

    /// One answer of a player; a player that ended is not there any more.
    fn ask(&mut self, proc: usize, line: &str) -> String {
        let Some(player) = &self.players[proc] else { return "gone".to_owned() };
        // A failure means that it has ended, which the next line shows.
        let _ = player.write_line(line);
        match player.line(ANSWER) {
            Ok(answer) if answer.is_empty() && player.end_within(Duration::from_millis(50)).is_some() => {
                let end = player.end().map_or(String::new(), |end| end.to_string());
                self.players[proc] = None;
                format!("its process ended: {end}")
            }
            Ok(answer) => answer,
            Err(_) => {
                self.lost[proc] = true;
                "hangs".to_owned()
            }
        }
    }

    /// Ends what the program left. A process that does not come back is killed.
    fn clear(&mut self, count: usize, last: usize, run: &mut Run) -> Result<(), String> {
        for proc in 0..count {
            self.note_reached(proc);
            let answer = self.ask(proc, "end");
            if answer == "hangs" {
                self.kill(proc)?;
            }
        }
        let mut left = Vec::new();
        if !self.rest(0) {
            left.push("the driver keeps a process".to_owned());
            self.others = self.processes();
            self.counts = self.active();
        }
        let behind = self.left_behind();
        if !behind.is_empty() {
            let nodes = self.dead_nodes().map_or_else(String::new, |counts| format!(" ({counts})"));
            left.push(format!("left behind: {}{nodes}", behind.join(", ")));
            self.counts = self.active();
        }
        let step = last;
        run.lines.extend(left.into_iter().map(|text| Line { step, thread: None, text }));
        Ok(())
    }
}

/// State of one program.
struct Run {
    open: [bool; PROCS],
    /// Threads of each process that wait.
    waiting: BTreeMap<usize, usize>,
    lines: Vec<Line>,
}

impl Run {
    fn count(&self) -> usize {
        self.open.iter().filter(|open| **open).count()
    }

    fn released(&self, outcome: String, kept: bool) -> String {
        if kept { format!("{outcome}, and the driver keeps it") } else { outcome }
    }
}
