//! Worker that is one process of a load.
//! Not here: starting it (`group`), its steps (`actor`).

use std::path::PathBuf;
use std::sync::Arc;

use backend::{AnyContext, on_context};
use driver::{Connection, Context};
use ftrace::marker::Marker;
use procgroup::Role;
use procgroup::role::{say, tell_ready};
use serde::{Deserialize, Serialize};
use sys::sched::{self, Policy};
use workload::description::{Scheduling, Turns};
use workload::recording::SUBJECT;

use super::actor::{self, Own};
use super::board::{Board, Counter, Phase};
use super::place::{Identity, Place};
use super::program::Program;
use super::service;
use crate::call_error::{CallError, refused};
use crate::plan::FaultKind;

/// One process of a load.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessRole {
    /// Its name in the load.
    pub(super) name: String,
    /// Index of the process, and number of the copy.
    pub(super) process: usize,
    pub(super) copy: u32,
    pub(super) address: String,
    pub(super) dialect: String,
    /// Begin of the names of all services of the load.
    pub(super) names: String,
    /// Paths to the description and to the shared memory.
    pub(super) text: PathBuf,
    pub(super) board: PathBuf,
    /// Whether it reports the times of its calls at the end.
    pub(super) sampled: bool,
    /// Deliberate fault, for tests.
    pub(super) fault: Option<FaultKind>,
}

impl Role for ProcessRole {
    const NAME: &'static str = "workload";

    fn title(&self) -> String {
        match self.copy {
            0 => self.name.clone(),
            copy => format!("{} {copy}", self.name),
        }
    }

    fn run(self) -> Result<(), String> {
        let any = AnyContext::parse(&self.address);
        on_context!(&any, |context| self.carry_out(context)).map_err(|error| error.to_string())
    }
}

impl ProcessRole {
    /// Lives the process's life, and reports the times of its calls.
    fn carry_out<X: Context>(self, context: &X) -> Result<(), CallError> {
        let text = std::fs::read_to_string(&self.text).map_err(CallError::os("reading the load"))?;
        let workload = workload::text::parse(&text).map_err(refused)?;
        let program = Arc::new(Program::new(&workload).map_err(refused)?);
        // Threads that start from now on have it, too. Without it sleeps are longer.
        let _ = sys::clock::set_timer_slack_ns(1);
        drop((text, workload));
        let board = Board::open(&self.board).map_err(CallError::os("mapping shared memory"))?;
        let board = Arc::new(board);
        let dialect = self.dialect.parse().map_err(|why: String| refused(why))?;
        let pool = program.processes.get(self.process).map_or(0, |process| process.pool);
        let identity = Identity {
            program: program.clone(),
            board: board.clone(),
            names: self.names,
            process: self.process,
            copy: self.copy,
            fault: self.fault,
        };
        let place = Place::open(context, dialect, identity, pool, self.sampled)?;
        service::publish(&place)?;
        // A process that is started again takes no release for its own that came before it.
        let released = board.value(self.process, Counter::Released);
        tell_ready("").map_err(CallError::os("reporting readiness"))?;
        board.await_phase(Phase::Finding)?;
        let alone = program.processes.get(self.process).is_none_or(|process| process.copies == 1);
        let marker = Marker::into(None);
        match alone {
            true => marker.mark(SUBJECT, format_args!("process={}", self.name)),
            false => marker.mark(SUBJECT, format_args!("process={}.{}", self.name, self.copy)),
        };
        place.find()?;
        board.found();
        board.await_phase(Phase::Running)?;
        run_threads(&place, released)?;
        board.done();
        board.await_phase(Phase::Over)?;
        say(&serde_json::to_string(&place.reports()).map_err(refused)?);
        // Others may still call it. Its parent kills all of them when it has all reports.
        loop {
            std::thread::park();
        }
    }
}

/// Starts the process's threads, and waits until those that end have ended.
fn run_threads<C: Connection>(place: &Arc<Place<C>>, released: u32) -> Result<(), CallError> {
    let Identity { program, process, .. } = &place.identity;
    let mut ending = Vec::new();
    for (number, thread) in
        program.threads.iter().enumerate().filter(|(_, thread)| thread.process == *process)
    {
        let here = Arc::clone(place);
        let run = move || {
            if let Err(error) = run_thread(&here, number, released) {
                actor::give_up(&here, &error);
            }
        };
        let handle = sys::title::thread("caller", run).map_err(CallError::os("starting a thread"))?;
        if let Turns::Times(_) = thread.turns {
            ending.push(handle);
        }
    }
    for thread in ending {
        thread.join().map_err(|_| refused("a thread broke"))?;
    }
    Ok(())
}

fn run_thread<C: Connection>(place: &Arc<Place<C>>, number: usize, released: u32) -> Result<(), CallError> {
    let Identity { program, board, process, .. } = &place.identity;
    let thread = &program.threads[number];
    schedule(thread.scheduling)?;
    let mut own = Own::new(&**place, program.largest_request(&thread.acts), false);
    let turn = |own: &mut Own| actor::perform(place, own, &thread.acts);
    match thread.turns {
        Turns::Times(times) => (0..times).try_for_each(|_| turn(&mut own)),
        Turns::Forever => loop {
            turn(&mut own)?;
        },
        Turns::OnRelease => {
            let mut seen = released;
            loop {
                seen = board.await_release(*process, seen)?;
                turn(&mut own)?;
                board.count(*process, Counter::Finished);
            }
        }
    }
}

fn schedule(scheduling: Scheduling) -> Result<(), CallError> {
    let set = match scheduling {
        Scheduling::Inherited => return Ok(()),
        Scheduling::Nice(nice) => {
            sched::set_policy(0, Policy::Other).and_then(|()| sched::set_nice(0, nice.into()))
        }
        Scheduling::Fifo(priority) => sched::set_policy(0, Policy::Fifo(priority)),
        Scheduling::RoundRobin(priority) => sched::set_policy(0, Policy::Rr(priority)),
    };
    set.map_err(CallError::os("setting a thread's scheduling"))
}
