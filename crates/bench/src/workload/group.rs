//! The processes of a load: started, killed, started again.
//! Not here: what one does (`role`), measuring (`conductor`).

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use backend::AnyContext;
use procgroup::{OnEnd, Streams, Watched, WorkerProcess};
use sys::shared_memory::SharedMemory;

use super::board::{Board, Counter, Phase};
use super::program::Program;
use super::role::ProcessRole;
use crate::plan::{Dialect, FaultKind};

/// Time to see the end of a process after its load broke.
const GRACE: Duration = Duration::from_secs(2);

/// Time limit of a process for its report.
const REPORT: Duration = Duration::from_secs(60);

/// Where and how a load is carried out.
pub(crate) struct Setting {
    /// The context of all its processes.
    pub(crate) context: AnyContext,
    pub(crate) dialect: Dialect,
    /// Whether processes report the times of their calls.
    pub(crate) sampled: bool,
    /// Deliberate fault of every receiver, for tests.
    pub(crate) fault: Option<FaultKind>,
}

struct Member {
    worker: Arc<WorkerProcess>,
    /// Whether its end is part of the load.
    may_end: Arc<AtomicBool>,
}

/// The processes of a load, killed on drop.
pub(crate) struct Group {
    pub(crate) program: Arc<Program>,
    pub(super) board: Arc<Board>,
    /// Begin of the names of all services.
    pub(super) names: String,
    text: SharedMemory,
    setting: Setting,
    watched: Watched,
    /// By process and copy; empty for the measuring process.
    members: Vec<Vec<Member>>,
    /// Processes that have been started so far.
    started: u32,
}

/// A path by which another process opens this memory.
fn path(memory: &SharedMemory) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), memory.descriptor().as_raw_fd()).into()
}

impl Group {
    /// Starts all processes of a load, and waits until each serves.
    ///
    /// # Errors
    /// The reason, for the user: of the load, of the machine, or of a process.
    pub(crate) fn start(
        text: &str,
        program: Program,
        setting: Setting,
        watched: Watched,
    ) -> Result<Self, String> {
        let os = |what: &'static str| {
            move |error: std::io::Error| format!("{what}: {}", sys::errno::describe(&error))
        };
        // One more for a measuring process that nobody calls.
        let board = Board::create(program.processes.len() + 1).map_err(os("making shared memory"))?;
        let mut memory = SharedMemory::create(text.len().max(1)).map_err(os("making shared memory"))?;
        memory.copy_in(0, text.as_bytes());
        // The manager may still know the names of the last load.
        static LOADS: AtomicU32 = AtomicU32::new(0);
        let names = format!("binderperf.workload.{}.{}", std::process::id(), LOADS.fetch_add(1, Relaxed));
        let members = program.processes.iter().map(|_| Vec::new()).collect();
        let (program, board) = (Arc::new(program), Arc::new(board));
        let mut group = Self { program, board, names, text: memory, setting, watched, members, started: 0 };
        let planned: Vec<(usize, u32)> = group.program.started().collect();
        for &(process, copies) in &planned {
            for copy in 0..copies {
                let member = group.start_one(process, copy)?;
                group.members[process].push(member);
            }
        }
        for &(process, _) in &planned {
            for copy in 0..group.members[process].len() {
                group.await_ready(process, copy)?;
            }
        }
        Ok(group)
    }

    fn start_one(&mut self, process: usize, copy: u32) -> Result<Member, String> {
        let name = self.program.processes[process].name.clone();
        let role = ProcessRole {
            name: name.clone(),
            process,
            copy,
            address: self.setting.context.address(),
            dialect: self.setting.dialect.to_string(),
            names: self.names.clone(),
            text: path(&self.text),
            board: path(self.board.memory()),
            sampled: self.setting.sampled,
            fault: self.setting.fault,
        };
        let may_end = Arc::new(AtomicBool::new(false));
        let (board, expected) = (self.board.clone(), may_end.clone());
        let on_end: OnEnd = Box::new(move || {
            if !expected.load(Relaxed) {
                board.break_off(process);
            }
        });
        let worker = WorkerProcess::start(&role, Streams::heard(), Some(on_end));
        let worker = worker.map_err(|error| format!("starting {name}: {}", sys::errno::describe(&error)))?;
        let worker = Arc::new(worker);
        self.watched.watch(&worker);
        self.started += 1;
        Ok(Member { worker, may_end })
    }

    fn await_ready(&self, process: usize, copy: usize) -> Result<(), String> {
        let worker = &self.members[process][copy].worker;
        let ready = self.watched.during(|| worker.ready(Duration::MAX));
        ready
            .map(drop)
            .map_err(|why| format!("{} did not start: {why}", self.program.processes[process].name))
    }

    /// Has all processes find each other. `find` is what this process does meanwhile.
    ///
    /// # Errors
    /// The reason, for the user.
    pub(crate) fn find<E: std::fmt::Display>(
        &self,
        find: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), String> {
        self.board.enter(Phase::Finding);
        let found = self.watched.during(|| {
            find().map_err(|error| error.to_string())?;
            self.board.await_found(self.started).map_err(|error| error.to_string())
        });
        found.map_err(|error| self.reason_soon().unwrap_or(error))
    }

    /// Has all threads begin.
    pub(crate) fn run(&self) {
        self.board.enter(Phase::Running);
    }

    /// Numbers of the processes that are copies of this one.
    pub(crate) fn pids(&self, process: usize) -> impl Iterator<Item = u32> {
        self.members[process].iter().map(|member| member.worker.pid())
    }

    /// Stops or continues all copies of a process.
    pub(crate) fn pause(&self, process: usize, on: bool) {
        self.members[process].iter().for_each(|member| member.worker.pause(on));
    }

    /// Kills all copies of a process.
    pub(crate) fn kill(&self, process: usize) {
        for member in &self.members[process] {
            member.may_end.store(true, Relaxed);
            member.worker.kill();
        }
    }

    /// Starts the copies of a process again that were killed, and waits until they serve and have found all others.
    ///
    /// # Errors
    /// The reason, for the user.
    pub(crate) fn start_again(&mut self, process: usize) -> Result<(), String> {
        for copy in 0..self.members[process].len() {
            if !self.members[process][copy].may_end.load(Relaxed) {
                continue;
            }
            // The driver is done with the old one before a new one takes its name.
            let _ = self.members[process][copy].worker.end_within(GRACE);
            let member = self.start_one(process, copy as u32)?;
            self.members[process][copy] = member;
            self.await_ready(process, copy)?;
        }
        let found = self.watched.during(|| self.board.await_found(self.started));
        found.map_err(|error| self.reason().unwrap_or_else(|| error.to_string()))
    }

    /// Why the load broke: the last words of a process that ended, and how it ended.
    pub(crate) fn reason(&self) -> Option<String> {
        let process = self.board.blamed()?;
        let name = &self.program.processes.get(process)?.name;
        let ended = self.members[process].iter().filter(|member| !member.may_end.load(Relaxed));
        let ended =
            ended.filter_map(|member| Some((member.worker.end_within(Duration::ZERO)?, &member.worker)));
        let ended: Vec<_> = ended.map(|(end, worker)| (end, worker.last_words())).collect();
        // Of several copies the first one to give up says why.
        match ended.iter().find(|(_, words)| !words.is_empty()) {
            Some((_, words)) => Some(format!("the process {name} ended: {words}")),
            None => ended.first().map(|(end, _)| format!("the process {name} ended ({end})")),
        }
    }

    /// [`Self::reason`], after a moment for the end of a process to be seen.
    pub(crate) fn reason_soon(&self) -> Option<String> {
        let mut found = None;
        let _ = sys::patience::until(GRACE, || {
            for member in self.members.iter().flatten() {
                let _ = member.worker.end();
            }
            found = self.reason();
            found.is_some()
        });
        found
    }

    /// Has each process report and end; returns what they report.
    ///
    /// # Errors
    /// The reason, for the user: a process ended without a report.
    pub(crate) fn end(&self) -> Result<Vec<String>, String> {
        let members = || self.members.iter().flatten();
        members().for_each(|member| member.may_end.store(true, Relaxed));
        self.board.enter(Phase::Over);
        members().map(|member| member.worker.line(REPORT)).collect()
    }

    /// Whether all processes have made their turns; those whose threads have no end are ready at once.
    pub(crate) fn is_done(&self) -> bool {
        self.board.done_processes() >= self.started
    }

    /// Calls that were served so far.
    pub(crate) fn calls(&self) -> u64 {
        self.sum(Counter::Calls)
    }

    /// Steps of threads that were made so far, calls not among them.
    pub(crate) fn steps(&self) -> u64 {
        self.sum(Counter::Steps)
    }

    fn sum(&self, counter: Counter) -> u64 {
        (0..self.members.len()).map(|process| u64::from(self.board.value(process, counter))).sum()
    }
}
