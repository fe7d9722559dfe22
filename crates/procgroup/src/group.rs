//! A group of workers that start together, go through common steps and end together.
//! Not here: the work at a step (each role), the figures.
//!
//! The workers of one *unit* fail together: when one of them dies, fails or makes no progress, the others are
//! ended, too. Units do not affect each other.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use sys::clock::monotonic_ns;
use sys::patience::{is_over, stretched};

use crate::block::{BlockLayout, FAILED, SharedBlock, SlotAddress};
use crate::cause::cause;
use crate::process::{Streams, WorkerProcess};
use crate::role::Role;

/// First step: a worker that is called serves.
pub const SERVING: u32 = 1;
/// Second step: a worker has found its callees. Later steps are rounds of calls.
pub const READY: u32 = 2;

/// Interval at which workers are checked while no step is finished.
const TICK: Duration = Duration::from_millis(250);
/// Time limit for workers to end their calls after a stop request.
const GRACE: Duration = Duration::from_secs(2);
/// Time limit to see a worker's death after its caller noticed it: descriptors close before the process
/// counts as dead.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// Error of workers that did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerError {
    /// This signal stopped the program.
    Stopped(&'static str),
    /// Preparation or start failed: the object and the reason.
    Start(String, String),
    /// Workers that died, with how each ended.
    Died(Vec<(String, String)>),
    /// A worker that failed, the reason, and the number of other workers that failed.
    Failed(String, String, usize),
    /// Workers that were not ready this many seconds after the last that was.
    NotReady(u64, String),
    /// Workers that made no call in this many seconds, with their callees.
    Silent(u64, String),
    /// The time limit for all rounds has passed.
    TimeLimit,
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(signal) => write!(f, "stopped by {signal}"),
            Self::Start(what, why) => write!(f, "{what}: {why}"),
            Self::Died(died) => {
                let died: Vec<String> =
                    died.iter().map(|(title, how)| format!("{title} died ({how})")).collect();
                f.write_str(&died.join(", "))
            }
            Self::Failed(title, why, 0) => write!(f, "{title}: {why}"),
            Self::Failed(title, why, others) => write!(f, "{title}: {why} (and {others} more)"),
            Self::NotReady(seconds, titles) => write!(f, "not ready in {seconds} s: {titles}"),
            Self::Silent(seconds, who) => write!(f, "no call came back in {seconds} s: {who}"),
            Self::TimeLimit => f.write_str("the time limit is over (--time-limit)"),
        }
    }
}

impl std::error::Error for WorkerError {}

/// One worker of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name in messages, such as `worker 3`.
    pub title: String,
    /// Whether other workers call it.
    pub serves: bool,
    /// Whether it makes calls, and thus takes part in the rounds.
    pub calls: bool,
    /// Number of its unit, from 0.
    pub unit: u32,
}

/// Looks on while a group works; `()` does not.
pub trait Onlooker {
    /// Takes a look at the shared memory; called from time to time.
    fn works(&mut self, block: &mut SharedBlock);

    /// Learns that a unit broke, while its processes are as they were: they are killed next.
    fn breaks(&mut self, _unit: u32) {}
}

impl Onlooker for () {
    fn works(&mut self, _: &mut SharedBlock) {}
}

/// State of a unit at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// All of its workers have finished the step.
    Done,
    /// No worker has failed; some have not finished.
    Pending,
    /// A worker has died or failed, or these workers make no progress.
    Broken(Vec<u32>),
}

/// The workers of a test; killed on drop.
pub struct ProcessGroup {
    members: Vec<Member>,
    processes: Vec<WorkerProcess>,
    block: SharedBlock,
    /// Name of the callee, if it is outside of this group.
    callee_name: Option<String>,
    patience: Duration,
    deadline: Option<Instant>,
    /// Error of each broken unit.
    broken: Vec<Option<WorkerError>>,
    /// The signal that ended all workers.
    stopped: Option<&'static str>,
}

impl ProcessGroup {
    /// Starts all workers, each in the role that `role` returns for its slot.
    ///
    /// # Errors
    /// [`WorkerError::Start`]: no memory, or a process cannot be started.
    pub fn start<R: Role>(
        members: Vec<Member>,
        layout: BlockLayout,
        patience: Duration,
        mut role: impl FnMut(SlotAddress) -> R,
    ) -> Result<Self, WorkerError> {
        let failed = |what: &str, error: &std::io::Error| {
            WorkerError::Start(what.to_owned(), sys::errno::describe(error))
        };
        let block = SharedBlock::create(layout).map_err(|error| failed("making shared memory", &error))?;
        let mut processes = Vec::with_capacity(members.len());
        for (number, member) in (0..).zip(&members) {
            let role = role(block.address(number));
            let process = WorkerProcess::start(&role, Streams::all_heard(), None);
            processes.push(process.map_err(|error| failed(&format!("starting {}", member.title), &error))?);
        }
        Ok(Self::of(members, processes, block, patience))
    }

    fn of(
        members: Vec<Member>,
        processes: Vec<WorkerProcess>,
        block: SharedBlock,
        patience: Duration,
    ) -> Self {
        let units = members.iter().map(|member| member.unit + 1).max().unwrap_or(0);
        let broken = (0..units).map(|_| None).collect();
        Self { members, processes, block, callee_name: None, patience, deadline: None, broken, stopped: None }
    }

    /// Sets the name of a callee outside of this group.
    #[must_use]
    pub fn calling(self, callee_name: Option<String>) -> Self {
        Self { callee_name, ..self }
    }

    /// Sets the deadline for all rounds together.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Returns the memory that the workers share.
    pub fn block(&mut self) -> &mut SharedBlock {
        &mut self.block
    }

    /// Returns the numbers of the workers that make calls.
    #[must_use]
    pub fn callers(&self) -> Vec<u32> {
        (0..).zip(&self.members).filter(|(_, member)| member.calls).map(|(number, _)| number).collect()
    }

    /// Returns why a unit broke, if it did.
    #[must_use]
    pub fn broken(&self, unit: u32) -> Option<&WorkerError> {
        self.broken.get(unit as usize)?.as_ref()
    }

    /// Waits until all workers serve and have found their callees, or their units broke.
    ///
    /// # Errors
    /// A signal requested a stop; or the only unit broke.
    pub fn prepare(&mut self) -> Result<(), WorkerError> {
        self.wait(SERVING, &mut ())?;
        self.round(READY, &mut ())
    }

    /// Releases a step, and waits until all callers have finished it, or their units broke.
    ///
    /// # Errors
    /// A signal requested a stop; or the only unit broke.
    pub fn round(&mut self, step: u32, onlooker: &mut dyn Onlooker) -> Result<(), WorkerError> {
        self.block.release(step, monotonic_ns());
        self.wait(step, onlooker)
    }

    fn wait(&mut self, step: u32, onlooker: &mut dyn Onlooker) -> Result<(), WorkerError> {
        if let Some(signal) = self.stopped {
            return Err(WorkerError::Stopped(signal));
        }
        let now = Instant::now();
        let mut moved: Vec<(u32, Instant)> = self.members.iter().map(|_| (0, now)).collect();
        let mut looked = now;
        let mut finished = 0;
        let mut stopping: Option<(&'static str, Instant)> = None;
        loop {
            let changes = self.block.changes();
            let closely = looked.elapsed() >= TICK;
            if closely {
                looked = Instant::now();
            }
            if closely || self.block.is_paused() {
                onlooker.works(&mut self.block);
            }
            // A worker that gets ready shows that the machine is at it, however many there are.
            let count = self.finished(step);
            if step <= READY && count > finished {
                finished = count;
                moved.iter_mut().for_each(|(_, since)| *since = Instant::now());
            }
            let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let mut pending = false;
            for unit in 0..self.broken.len() as u32 {
                match self.progress(unit, step, closely, &mut moved) {
                    Progress::Pending if is_late => self.fail(unit, WorkerError::TimeLimit),
                    Progress::Pending => pending = true,
                    Progress::Done => {}
                    Progress::Broken(stuck) => {
                        onlooker.breaks(unit);
                        let silent = stuck.iter().map(|number| moved[*number as usize].1.elapsed()).max();
                        let why = self.explain(unit, step, &stuck, silent.unwrap_or_default());
                        self.fail(unit, why);
                    }
                }
            }
            match (pending, stopping) {
                (false, None) => break,
                (true, Some((_, since))) if !is_over(since, GRACE) => {}
                (_, Some((signal, _))) => {
                    self.processes.iter().for_each(WorkerProcess::kill);
                    self.stopped = Some(signal);
                    return Err(WorkerError::Stopped(signal));
                }
                (true, None) => {
                    if let Some(signal) = sys::stop_signal::received() {
                        self.block.stop();
                        stopping = Some((signal, Instant::now()));
                    }
                }
            }
            self.block.wait_for_change(changes, TICK);
        }
        match &self.broken[..] {
            [Some(only)] => Err(only.clone()),
            _ => Ok(()),
        }
    }

    fn numbers_of(&self, unit: u32) -> impl Iterator<Item = u32> {
        (0..).zip(&self.members).filter(move |(_, member)| member.unit == unit).map(|(number, _)| number)
    }

    /// Number of workers that have finished a step.
    fn finished(&self, step: u32) -> usize {
        (0..self.members.len() as u32).filter(|number| self.block.done(*number) >= step).count()
    }

    /// Returns true if a worker must finish this step before the next one: servers have no rounds.
    fn takes_part(&self, number: u32, step: u32) -> bool {
        step <= READY || self.members[number as usize].calls
    }

    /// Returns the progress of a unit. Checks for deaths and stalled workers only if `closely`.
    fn progress(&self, unit: u32, step: u32, closely: bool, moved: &mut [(u32, Instant)]) -> Progress {
        if self.broken(unit).is_some() {
            return Progress::Done;
        }
        let mut progress = Progress::Done;
        let mut stuck = Vec::new();
        // One limit for all: how busy the machine is changes from look to look.
        let (moment, mut limit) = (Instant::now(), None);
        let mut is_over = |since: Instant| {
            let silent = moment.saturating_duration_since(since);
            silent >= self.patience && silent >= *limit.get_or_insert_with(|| stretched(self.patience))
        };
        for number in self.numbers_of(unit) {
            // Read once: a worker that fails in the meantime has not finished the step.
            let done = self.block.done(number);
            if done == FAILED || closely && self.processes[number as usize].end().is_some() {
                return Progress::Broken(Vec::new());
            }
            if !self.takes_part(number, step) || done >= step {
                continue;
            }
            progress = Progress::Pending;
            let (calls, since) = &mut moved[number as usize];
            let now = self.block.calls(number);
            if now != *calls {
                (*calls, *since) = (now, Instant::now());
            } else if closely && is_over(*since) {
                stuck.push(number);
            }
        }
        if stuck.is_empty() { progress } else { Progress::Broken(stuck) }
    }

    fn fail(&mut self, unit: u32, why: WorkerError) {
        if self.broken.len() == 1 {
            self.block.stop();
        }
        self.numbers_of(unit).for_each(|number| self.processes[number as usize].kill());
        self.broken[unit as usize] = Some(why);
    }

    /// Determines which worker of a unit broke, and why; `silent` is for how long the stuck ones made no progress.
    fn explain(&self, unit: u32, step: u32, stuck: &[u32], silent: Duration) -> WorkerError {
        if self.broken.len() == 1 {
            self.stop_others(step, stuck);
        }
        let failed: Vec<u32> =
            self.numbers_of(unit).filter(|number| self.block.done(*number) == FAILED).collect();
        self.await_callees(&failed);
        let died = |number: u32| {
            let process = &self.processes[number as usize];
            let end = process.end()?;
            Some((self.title(number), cause(&end.to_string(), &process.complaints())))
        };
        // A death comes first: it breaks the calls of other workers.
        let died: Vec<(String, String)> = self.numbers_of(unit).filter_map(died).collect();
        match failed.first() {
            _ if !died.is_empty() => WorkerError::Died(died),
            Some(&first) => WorkerError::Failed(self.title(first), self.last_words(first), failed.len() - 1),
            None => self.explain_stuck(step, stuck, silent),
        }
    }

    /// Requests a stop of all workers, and gives those that can a moment to end their calls.
    fn stop_others(&self, step: u32, stuck: &[u32]) {
        self.block.stop();
        let start = Instant::now();
        let works = |number: u32| {
            let alive = self.processes[number as usize].end().is_none();
            alive
                && self.takes_part(number, step)
                && self.block.done(number) < step
                && !stuck.contains(&number)
        };
        while !is_over(start, GRACE) && (0..self.members.len() as u32).any(works) {
            self.block.wait_for_change(self.block.changes(), Duration::from_millis(20));
        }
    }

    /// Returns the only server of a caller's unit: the caller calls it whatever it has recorded.
    fn only_server(&self, number: u32) -> Option<u32> {
        let unit = self.members[number as usize].unit;
        let mut servers = self.numbers_of(unit).filter(|other| self.members[*other as usize].serves);
        servers.next().filter(|server| *server != number && servers.next().is_none())
    }

    /// Waits for the deaths of callees: a call breaks a moment before its callee counts as dead.
    fn await_callees(&self, failed: &[u32]) {
        let start = Instant::now();
        let callee = |&number: &u32| self.block.callee(number).or_else(|| self.only_server(number));
        let callees: BTreeSet<u32> = failed.iter().filter_map(callee).collect();
        for callee in callees {
            let serves = self.members.get(callee as usize).is_some_and(|member| member.serves);
            if let Some(process) = self.processes.get(callee as usize).filter(|_| serves) {
                let _ = process.end_within(stretched(LAST_BREATH).saturating_sub(start.elapsed()));
            }
        }
    }

    fn explain_stuck(&self, step: u32, stuck: &[u32], silent: Duration) -> WorkerError {
        let seconds = silent.as_secs();
        let titles =
            |numbers: &[u32]| numbers.iter().map(|number| self.title(*number)).collect::<Vec<_>>().join(", ");
        if step <= READY {
            return WorkerError::NotReady(seconds, titles(stuck));
        }
        let (waiting, idle): (Vec<u32>, Vec<u32>) =
            stuck.iter().partition(|number| self.callee_title(**number).is_some());
        let awaited: BTreeSet<String> =
            waiting.iter().filter_map(|number| self.callee_title(*number)).collect();
        let awaited = awaited.into_iter().collect::<Vec<_>>().join(", ");
        let waiting = match waiting[..] {
            [] => None,
            [only] => {
                let call = self.block.calls(only) + 1;
                Some(format!("{} waits for {awaited} (call {call})", self.title(only)))
            }
            _ => Some(format!("{} wait for {awaited}", titles(&waiting))),
        };
        let idle = (!idle.is_empty()).then(|| format!("{} stopped calling", titles(&idle)));
        let all: Vec<String> = waiting.into_iter().chain(idle).collect();
        WorkerError::Silent(seconds, all.join("; "))
    }

    fn title(&self, number: u32) -> String {
        self.members.get(number as usize).map_or("a service".to_owned(), |member| member.title.clone())
    }

    /// Title of the callee that a worker waits for, or waited for when its call broke.
    fn callee_title(&self, number: u32) -> Option<String> {
        let callee = self.block.callee(number)?;
        Some(self.callee_name.clone().unwrap_or_else(|| self.title(callee)))
    }

    fn last_words(&self, number: u32) -> String {
        let said = self.processes[number as usize].last_words();
        let said = if said.is_empty() { "gave up".to_owned() } else { said };
        match self.callee_title(number) {
            Some(callee) => format!("calling {callee}: {said}"),
            None => said,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LAYOUT: BlockLayout = BlockLayout { workers: 2, callers: 1, samples: 1, words: 1 };

    /// A service and its only caller, in one unit or in two.
    fn group(scripts: [&str; 2], patience: u64, units: [u32; 2]) -> ProcessGroup {
        let spawn = |script: &str| {
            let words = ["-c".to_owned(), script.to_owned()];
            WorkerProcess::spawn(Path::new("/bin/sh"), "a shell", &words, Streams::all_heard(), None)
                .expect("a shell")
        };
        let member =
            |title: &str, serves, unit| Member { title: title.to_owned(), serves, calls: !serves, unit };
        let members = vec![member("service 0", true, units[0]), member("worker 0", false, units[1])];
        let block = SharedBlock::create(LAYOUT).expect("memory");
        ProcessGroup::of(members, scripts.map(spawn).into(), block, Duration::from_secs(patience))
    }

    const SLEEP: &str = "exec sleep 60";

    /// Returns the error of a round in which the worker's call to the service broke.
    fn broken(scripts: [&str; 2]) -> String {
        let mut group = group(scripts, 30, [0, 0]);
        let slot = group.block.address(1).open().expect("the same memory");
        slot.call(0);
        slot.finish(FAILED);
        group.round(READY + 1, &mut ()).expect_err("it failed").to_string()
    }

    #[test]
    fn a_service_that_is_about_to_be_dead_is_the_reason_for_the_call_that_broke() {
        let why = broken(["sleep 0.3; kill -ABRT $$", SLEEP]);
        assert!(why.starts_with("service 0 died (signal: 6"), "{why}");
    }

    #[test]
    fn a_call_that_broke_though_its_callee_lives_is_the_callers_failure() {
        let why = broken([SLEEP, "echo it is full; exec sleep 60"]);
        assert_eq!(why, "worker 0: calling service 0: it is full");
    }

    #[test]
    fn workers_that_make_no_progress_are_named_with_their_callee() {
        let mut silent = group([SLEEP, SLEEP], 1, [0, 0]);
        let why = silent.prepare().expect_err("nobody is ready").to_string();
        let says = |why: &str, words: [&str; 2]| {
            let seconds = why.strip_prefix(words[0]).and_then(|rest| rest.strip_suffix(words[1]));
            // A busy machine gets more time.
            assert!(
                seconds.and_then(|seconds| seconds.parse().ok()).is_some_and(|seconds: u64| seconds >= 1),
                "{why}"
            );
        };
        says(&why, ["not ready in ", " s: service 0, worker 0"]);
        let mut silent = group([SLEEP, SLEEP], 1, [0, 0]);
        silent.block.address(1).open().expect("the same memory").call(0);
        let why = silent.round(READY + 1, &mut ()).expect_err("no call").to_string();
        says(&why, ["no call came back in ", " s: worker 0 waits for service 0 (call 1)"]);
        let mut late = group([SLEEP, SLEEP], 60, [0, 0]).until(Instant::now());
        assert_eq!(late.round(READY + 1, &mut ()), Err(WorkerError::TimeLimit));
    }

    #[test]
    fn each_worker_that_gets_ready_gives_the_others_more_time() {
        let mut slow = group([SLEEP, SLEEP], 1, [0, 0]);
        let slots = [0, 1].map(|number| slow.block.address(number).open().expect("the same memory"));
        let one_by_one = std::thread::spawn(move || {
            for (slot, after) in slots.iter().zip([700, 700]) {
                std::thread::sleep(Duration::from_millis(after));
                slot.finish(READY);
            }
        });
        let since = Instant::now();
        assert_eq!(slow.prepare(), Ok(()), "after {:?}", since.elapsed());
        one_by_one.join().expect("no panic");
    }

    #[test]
    fn a_unit_that_breaks_leaves_the_others_alone() {
        let mut group = group(["exit 3", SLEEP], 60, [0, 1]);
        group.block.address(1).open().expect("the same memory").finish(READY);
        assert_eq!(group.prepare(), Ok(()));
        let why = group.broken(0).expect("it ended").to_string();
        assert_eq!((why.as_str(), group.broken(1)), ("service 0 died (exit status: 3)", None));
        assert_eq!(group.processes[1].end(), None, "it goes on");
    }

    #[test]
    fn a_worker_that_failed_has_not_done_the_step() {
        let mut group = group([SLEEP, SLEEP], 60, [0, 0]);
        let slots = [0, 1].map(|number| group.block.address(number).open().expect("the same memory"));
        let mut moved = [(0, Instant::now()); 2];
        let mut after = |done: [u32; 2], group: &mut ProcessGroup| {
            slots.iter().zip(done).for_each(|(slot, done)| slot.finish(done));
            group.progress(0, READY, false, &mut moved)
        };
        assert_eq!(after([READY, READY], &mut group), Progress::Done);
        assert_eq!(after([READY, SERVING], &mut group), Progress::Pending);
        for failed in [[FAILED, READY], [READY, FAILED]] {
            assert_eq!(after(failed, &mut group), Progress::Broken(Vec::new()));
        }
    }
}
