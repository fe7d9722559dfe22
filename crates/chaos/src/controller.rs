//! The controller: starts, pauses and kills member processes, collects their reports, and checks what they cannot
//! know themselves.
//! Not here: one child process (`child`), the end of the test (`ending`).

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use backend::AnyContext;

use super::child::{ChildProcess, Heard};
use super::driver_state::DriverView;
use super::fault::Fault;
use super::freezes::Freezes;
use super::instance::Instance;
use super::member::{ChaosRole, MemberOptions};
use super::messages::{Order, Phase, Report, Target};
use super::tally::Tally;
use super::{ChaosError, Options};
use fastrand::Rng;
use host::klog::Watch;

/// Failures to keep; the first ones say most.
const COMPLAINTS: usize = 12;
/// Time between kills, in ms: minimum, and range above it.
const BETWEEN_KILLS: (u64, usize) = (20, 300);
/// Time between pauses, and length of a pause, in ms: minimum, and range above it. A process that was paused finds
/// calls, replies and death notifications in any mixture.
const BETWEEN_PAUSES: (u64, usize) = (1, 40);
const PAUSE: (u64, usize) = (20, 200);
/// Time between freezes, and length of one, in ms: minimum, and range above it.
const BETWEEN_FREEZES: (u64, usize) = (50, 400);
const FREEZE: (u64, usize) = (5, 150);
/// Time for a process's calls to end before it is frozen.
const REST: Duration = Duration::from_millis(20);
/// Longest time until a killed process is replaced, in ms.
const VACANCY: usize = 60;
/// How long to keep receiving after a failure.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The kernel's log from now on, if the driver is a kernel's and it can be read.
fn kernel_log(context: &AnyContext, options: &Options) -> Option<Watch> {
    let log = context.device().and_then(|_| Watch::begin().ok())?;
    Some(if options.fault == Some(Fault::LogABug) { log.with_planted() } else { log })
}

/// One member position: a process, or none since the last one was killed.
struct MemberSlot {
    child: Option<ChildProcess>,
    next_generation: usize,
    vacant_until: Instant,
}

/// A running test.
pub(super) struct Controller<'t> {
    pub(super) options: &'t Options,
    context: &'t AnyContext,
    pub(super) view: DriverView,
    pub(super) manager: ChildProcess,
    slots: Vec<MemberSlot>,
    pub(super) killed: BTreeSet<Instance>,
    /// The paused process, and the number of pauses.
    paused: Option<Instance>,
    pub(super) pauses: usize,
    /// The freezes.
    pub(super) freezes: Freezes,
    pub(super) complaints: Vec<String>,
    hung: bool,
    leaving: bool,
    pub(super) tally: Tally,
    /// The kernel's log; `None`: the driver is no kernel's, or the log cannot be read.
    log: Option<Watch>,
    rng: Rng,
    hear: Receiver<Heard>,
    heard: Sender<Heard>,
}

impl<'t> Controller<'t> {
    /// Starts the service manager and all members.
    ///
    /// # Errors
    /// The context cannot be opened or already has a manager; a process cannot be started.
    pub(super) fn begin(context: &'t AnyContext, options: &'t Options) -> Result<Self, ChaosError> {
        let view = DriverView::of(context).map_err(|error| ChaosError::Unable(error.to_string()))?;
        let (heard, hear) = channel();
        let of_manager = Instance { index: options.processes, generation: 0 };
        let role = ChaosRole { address: context.address(), member: None };
        let manager = ChildProcess::start(of_manager, &role, &heard).map_err(ChaosError::starting)?;
        let vacant = || MemberSlot { child: None, next_generation: 0, vacant_until: Instant::now() };
        let slots = std::iter::repeat_with(vacant).take(options.processes).collect();
        let mut controller = Self {
            options,
            context,
            view,
            manager,
            slots,
            killed: BTreeSet::new(),
            paused: None,
            pauses: 0,
            freezes: Freezes::default(),
            complaints: Vec::new(),
            hung: false,
            leaving: false,
            tally: Tally::default(),
            log: kernel_log(context, options),
            rng: Rng::with_seed(options.seed),
            hear,
            heard,
        };
        let since = Instant::now();
        let waits = |since| !sys::patience::is_over(since, options.patience);
        while controller.manager.phase < Phase::Ready && controller.no_failure() && waits(since) {
            controller.listen(Duration::from_millis(50));
        }
        if controller.manager.phase < Phase::Ready {
            let why = controller.complaints.pop().unwrap_or_else(|| "it does not answer".to_owned());
            return Err(ChaosError::Unable(format!("there is no service manager: {why}")));
        }
        controller.fill()?;
        Ok(controller)
    }

    /// Whether there has been no failure.
    pub(super) fn no_failure(&self) -> bool {
        self.complaints.is_empty()
    }

    pub(super) fn complain(&mut self, what: String) {
        if self.complaints.len() < COMPLAINTS {
            self.complaints.push(what);
        }
    }

    /// The running members.
    pub(super) fn children(&mut self) -> impl Iterator<Item = &mut ChildProcess> {
        self.slots.iter_mut().filter_map(|slot| slot.child.as_mut())
    }

    /// Number of processes started.
    pub(super) fn started(&self) -> usize {
        self.slots.iter().map(|slot| slot.next_generation).sum()
    }

    /// Replaces killed processes.
    fn fill(&mut self) -> Result<(), ChaosError> {
        let now = Instant::now();
        for number in 0..self.slots.len() {
            let slot = &mut self.slots[number];
            if slot.child.is_some() || now < slot.vacant_until {
                continue;
            }
            let instance = Instance { index: number, generation: slot.next_generation };
            slot.next_generation += 1;
            let member = MemberOptions {
                me: instance,
                members: self.options.processes,
                seed: self.rng.u64(..),
                patience: self.options.patience,
                fault: self.options.fault.filter(|_| number == 0),
            };
            let role = ChaosRole { address: self.context.address(), member: Some(member) };
            let child = ChildProcess::start(instance, &role, &self.heard).map_err(ChaosError::starting)?;
            self.slots[number].child = Some(child);
        }
        Ok(())
    }

    /// Runs traffic, kills and pauses until the time is up or something fails. Asks for memory sizes half-way.
    pub(super) fn run(&mut self) -> Result<(), ChaosError> {
        let start = Instant::now();
        let (half, end) = (start + self.options.length / 2, start + self.options.length);
        let mut asked = false;
        let mut next_kill = start + self.within(BETWEEN_KILLS);
        let mut next_pause = start + self.within(BETWEEN_PAUSES);
        let mut next_freeze = start + self.within(BETWEEN_FREEZES);
        while Instant::now() < end && self.no_failure() {
            self.heed_signals()?;
            self.listen(Duration::from_millis(10));
            self.heed_the_kernel();
            if self.options.kill && Instant::now() >= next_kill {
                self.kill_one();
                if self.rng.usize(..6) == 0 {
                    self.kill_one();
                }
                next_kill = Instant::now() + self.within(BETWEEN_KILLS);
            }
            if Instant::now() >= next_pause {
                let next = if self.pause_or_go_on() { PAUSE } else { BETWEEN_PAUSES };
                next_pause = Instant::now() + self.within(next);
            }
            if Instant::now() >= next_freeze {
                let next = if self.freeze_or_thaw() { FREEZE } else { BETWEEN_FREEZES };
                next_freeze = Instant::now() + self.within(next);
            }
            if !asked && Instant::now() >= half {
                asked = true;
                self.children().for_each(|child| child.tell(&Order::Memory));
            }
            self.fill()?;
        }
        if self.paused.is_some() {
            self.pause_or_go_on();
        }
        self.thaw();
        Ok(())
    }

    /// Counts each fault that the kernel reported of itself as a failure.
    pub(super) fn heed_the_kernel(&mut self) {
        let alarms = self.log.as_mut().and_then(|log| log.alarms().ok()).unwrap_or_default();
        for alarm in alarms {
            self.complain(format!("the kernel reported a fault of itself: {alarm}"));
        }
    }

    /// Ends the test if a signal asked for it; the processes end with this value.
    fn heed_signals(&mut self) -> Result<(), ChaosError> {
        let Some(signal) = sys::stop_signal::received().filter(|_| self.no_failure()) else { return Ok(()) };
        let tallies: Vec<_> = self.children().map(|child| child.tally).collect();
        tallies.into_iter().for_each(|tally| self.tally += tally);
        Err(ChaosError::Stopped(signal, self.tally))
    }

    /// A random time in ms: minimum, and range above it.
    fn within(&mut self, (least, more): (u64, usize)) -> Duration {
        Duration::from_millis(least + self.rng.usize(..more) as u64)
    }

    /// Resumes the paused process, or pauses one; true if one is now paused. Mostly the first process: it lives long
    /// enough to see every case.
    fn pause_or_go_on(&mut self) -> bool {
        if let Some(who) = self.paused.take() {
            if let Some(child) = self.child(who) {
                child.process.pause(false);
            }
            return false;
        }
        let number = if self.rng.usize(..4) > 0 { 0 } else { self.rng.usize(..self.slots.len()) };
        let Some(child) = &mut self.slots[number].child else { return false };
        child.process.pause(true);
        self.paused = Some(child.instance);
        self.pauses += 1;
        true
    }

    /// Thaws the frozen process, or freezes one; true if one is now frozen.
    fn freeze_or_thaw(&mut self) -> bool {
        if !self.freezes.is_free() || self.options.fault == Some(Fault::FalseFreeze) {
            self.thaw();
            return false;
        }
        let Some((who, pid)) = self.any_child() else { return false };
        self.tell(who, &Order::Rest(true));
        std::thread::sleep(REST);
        let made = self.view.freeze(pid, true);
        match self.freezes.tried(who, pid, &made) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(why) => self.complain(why),
        }
        self.tell(who, &Order::Rest(false));
        false
    }

    /// Thaws the frozen process, if it lives.
    fn thaw(&mut self) {
        let Some((who, pid)) = self.freezes.take().filter(|(who, _)| !self.killed.contains(who)) else {
            return;
        };
        if let Err(error) = self.view.freeze(pid, false) {
            self.complain(format!("thawing {who} failed: {}", sys::errno::describe(&error)));
        }
        self.tell(who, &Order::Rest(false));
    }

    /// A random member that has opened the context, and its pid.
    fn any_child(&mut self) -> Option<(Instance, u32)> {
        let number = self.rng.usize(..self.slots.len());
        let child = self.slots[number].child.as_ref().filter(|child| child.phase >= Phase::Ready)?;
        Some((child.instance, child.process.pid()))
    }

    /// Sends an order to a member, if it lives.
    fn tell(&mut self, who: Instance, order: &Order) {
        if let Some(child) = self.child(who) {
            child.tell(order);
        }
    }

    /// Kills a random member other than the first, which observes all others.
    fn kill_one(&mut self) {
        let number = 1 + self.rng.usize(..self.slots.len() - 1);
        let vacancy = Duration::from_millis(self.rng.usize(..VACANCY) as u64);
        let slot = &mut self.slots[number];
        if let Some(child) = slot.child.take() {
            // Recorded before the kill, so that no report of it can come earlier.
            self.killed.insert(child.instance);
            self.tally += child.tally;
            drop(child);
            slot.vacant_until = Instant::now() + vacancy;
        }
    }

    /// Waits until all members have reached this phase, or something fails.
    pub(super) fn all_at(&mut self, phase: Phase, limit: Duration) -> Result<(), ChaosError> {
        let since = Instant::now();
        loop {
            self.heed_signals()?;
            self.fill()?;
            let complete = self.slots.iter().all(|slot| slot.child.is_some());
            let late = self.children().find(|child| child.phase < phase).map(|child| child.instance);
            match late {
                _ if !self.no_failure() => return Ok(()),
                None if complete => return Ok(()),
                Some(instance) if sys::patience::is_over(since, limit) => {
                    self.hung = true;
                    let waited = since.elapsed().as_secs_f32();
                    self.complain(format!("{instance} was not {phase:?} within {waited:.1} s"));
                }
                _ => self.listen(Duration::from_millis(20)),
            }
        }
    }

    /// Handles received lines, waiting at most `limit` for the first.
    pub(super) fn listen(&mut self, limit: Duration) {
        let mut next = self.hear.recv_timeout(limit);
        loop {
            match next {
                Ok((who, Some(line))) => self.handle_line(who, &line),
                Ok((who, None)) => self.handle_end(who),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
            next = self.hear.try_recv().map_err(|_| RecvTimeoutError::Timeout);
        }
    }

    fn child(&mut self, who: Instance) -> Option<&mut ChildProcess> {
        if who == self.manager.instance {
            return Some(&mut self.manager);
        }
        self.children().find(|child| child.instance == who)
    }

    fn handle_line(&mut self, who: Instance, line: &str) {
        let complaint = match serde_json::from_str(line) {
            Ok(Report::Reached(phase)) => return self.reached(who, phase),
            Ok(Report::Count(tally)) => return self.child(who).map_or((), |child| child.tally = tally),
            Ok(Report::Memory(kib)) => return self.child(who).map_or((), |child| child.memory = Some(kib)),
            Ok(Report::Refused(target, _)) if self.has_killed(target) => return,
            Ok(Report::Refused(_, what)) => format!("{who} was refused by a process that lives: {what}"),
            Ok(Report::Died(target)) if self.killed.contains(&target) => return,
            Ok(Report::Died(target)) => format!("{who} was notified of the death of {target}, which lives"),
            Ok(Report::Wait(what)) => format!("waits {what}"),
            Ok(Report::Hang(what)) => {
                self.hung = true;
                format!("{who} hangs: {what}")
            }
            Ok(Report::Fail(what)) => what,
            Err(_) => line.to_owned(),
        };
        self.complain(complaint);
    }

    /// Whether a process that was this target was killed.
    fn has_killed(&self, target: Target) -> bool {
        match target {
            Target::Manager => false,
            Target::Index(index) => self.killed.iter().any(|killed| killed.index == index),
            Target::Member(instance) => self.killed.contains(&instance),
        }
    }

    fn reached(&mut self, who: Instance, phase: Phase) {
        if let Some(child) = self.child(who) {
            child.phase = child.phase.max(phase);
        }
    }

    fn handle_end(&mut self, who: Instance) {
        if self.leaving {
            return self.reached(who, Phase::Ended);
        }
        let Some(child) = self.child(who) else { return };
        child.phase = Phase::Ended;
        let end = child.process.end().map_or("its output is closed".to_owned(), |status| status.to_string());
        self.complain(format!("{who} ended unexpectedly: {end}"));
    }

    /// From now on processes may end.
    pub(super) fn allow_ends(&mut self) {
        self.leaving = true;
    }

    /// Collects details of a failure: further failures, for a hang what each process waits for, and the driver's
    /// state.
    pub(super) fn explain(mut self) -> Vec<String> {
        if self.hung {
            self.children().for_each(|child| child.tell(&Order::Waits));
        }
        let end = Instant::now() + AFTERMATH;
        while Instant::now() < end {
            self.listen(Duration::from_millis(50));
        }
        let state = self.view.state().unwrap_or_else(|why| format!("no state: {why}"));
        let mut told = self.complaints;
        told.push(format!("the driver's state then:\n{state}"));
        told
    }
}
