//! Runs programs on one context of one driver: starts the players, gives each its steps in order, and waits until the driver
//! is at rest before the next.
//! Not here: the steps themselves (`player`), other drivers (`compare`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use backend::AnyContext;
use driver::kernel_state::{self, StateFile};
use driver::{AnyConnection, Context, OpenOptions};
use procgroup::{Streams, WorkerProcess};

use crate::player::PlayerRole;
use crate::program::{Action, PROCS, Program};
use crate::transcript::{Line, Transcript};

/// Longest time of one answer of a player, which itself gives up earlier.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest time of a release.
const RELEASE: Duration = Duration::from_secs(5);
/// Time that a release takes to report deaths after the process is off the driver's list.
const AFTERMATH: Duration = Duration::from_millis(3);
/// Looks at a sleeping thread: of a kernel's driver, and of the embedded one.
const LOOKS: (u32, u32) = (2, 30);

/// A driver that can run no more programs.
#[derive(Debug)]
pub struct Stuck(pub String);

/// A context with players.
pub struct Stage {
    context: AnyContext,
    players: [Option<WorkerProcess>; PROCS],
    /// Processes in the driver's state without the players'.
    others: Option<usize>,
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
        let _keeper = matches!(context, AnyContext::Embedded(_)).then_some(keeper);
        let mut stage = Self { context, players: Default::default(), others: None, _keeper };
        std::thread::sleep(AFTERMATH);
        stage.others = stage.processes();
        Ok(stage)
    }

    /// Processes that the driver knows; `None` if it does not say.
    fn processes(&self) -> Option<usize> {
        let text = match &self.context {
            AnyContext::Kernel(context) => {
                kernel_state::read_here(Some(context.path()), StateFile::State).ok()??
            }
            AnyContext::Embedded(context) => context.state(StateFile::State).ok()??,
        };
        Some(text.lines().filter(|line| line.starts_with("proc ")).count())
    }

    /// Waits until the driver has released all but `open` processes of the program.
    fn rest(&self, open: usize) -> bool {
        let Some(others) = self.others else {
            std::thread::sleep(20 * AFTERMATH);
            return true;
        };
        let start = Instant::now();
        while self.processes().is_some_and(|count| count > others + open) {
            if sys::patience::is_over(start, RELEASE) {
                return false;
            }
            std::thread::sleep(AFTERMATH / 6);
        }
        std::thread::sleep(AFTERMATH);
        true
    }

    /// Starts the players of a program that do not run.
    fn gather(&mut self, count: usize) -> Result<(), Stuck> {
        let looks = if self.context.device().is_some() { LOOKS.0 } else { LOOKS.1 };
        let role = PlayerRole { address: self.context.address(), looks };
        for place in self.players.iter_mut().take(count).filter(|place| place.is_none()) {
            let streams = Streams::of(std::process::Stdio::piped(), std::process::Stdio::piped());
            let player = WorkerProcess::start(&role, streams, None)
                .map_err(|error| Stuck(format!("starting a process: {error}")))?;
            player.ready(ANSWER).map_err(|why| Stuck(format!("a process did not start: {why}")))?;
            *place = Some(player);
        }
        Ok(())
    }

    /// Runs a program.
    ///
    /// # Errors
    /// [`Stuck`]: processes could not be started, or ended although they were killed.
    pub fn run(&mut self, program: &Program) -> Result<Transcript, Stuck> {
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
            let outcome = self.take(step.proc, &step.action, &step.to_string(), &mut run);
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
        self.clear(count, &mut run)?;
        Ok(Transcript { lines: run.lines, kernel: Vec::new() })
    }

    fn take(&mut self, proc: usize, action: &Action, text: &str, run: &mut Run) -> String {
        if *action == Action::Kill {
            run.waiting.remove(&proc);
            let was_open = std::mem::take(&mut run.open[proc]);
            let Some(player) = self.players[proc].take() else { return "gone".to_owned() };
            drop(player);
            return run.released("ok".to_owned(), was_open && !self.rest(run.count()));
        }
        let outcome = self.ask(proc, &format!("do {text}"));
        match (action, outcome.as_str()) {
            (Action::Open(_), "ok") => run.open[proc] = true,
            // The embedded driver tells its peers a moment later.
            (Action::ThreadExit, "ok") => std::thread::sleep(AFTERMATH),
            (Action::Close, "ok") => {
                run.open[proc] = false;
                return run.released(outcome, !self.rest(run.count()));
            }
            _ => {}
        }
        outcome
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
            Err(_) => "hangs".to_owned(),
        }
    }

    /// Ends what the program left. A process that does not come back is killed.
    fn clear(&mut self, count: usize, run: &mut Run) -> Result<(), Stuck> {
        for proc in 0..count {
            let answer = self.ask(proc, "end");
            if answer == "hangs"
                && let Some(player) = self.players[proc].take()
            {
                player.kill();
                if player.end_within(RELEASE).is_none() {
                    return Err(Stuck(format!("p{proc} hangs in the driver and cannot be killed")));
                }
            }
        }
        if !self.rest(0) {
            let number = run.lines.last().map_or(0, |line| line.step);
            run.lines.push(Line {
                step: number,
                thread: None,
                text: "the driver keeps a process".to_owned(),
            });
            self.others = self.processes();
        }
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
