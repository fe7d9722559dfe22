//! Room: the test from outside: starts and kills processes, hears them, and gives the verdict on what
//! they cannot know themselves.
//! Not here: one process (`player`), the end of the test (`ending`).

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use driver::AnyContext;

use super::driver_state::View;
use super::instance::Instance;
use super::player::{Heard, Player, Stage};
use super::tally::Tally;
use super::{Options, Trouble, words};
use crate::dice::Dice;

/// Complaints that are kept; the first ones tell most.
const COMPLAINTS: usize = 12;
/// Between two kills, in ms: at least, and how much more at most.
const BETWEEN_KILLS: (u64, usize) = (20, 300);
/// Between two pauses and how long one is, in ms: at least, and how much more at most. A process that is as late as
/// that finds calls, replies and deaths in every mixture.
const BETWEEN_PAUSES: (u64, usize) = (1, 40);
const PAUSE: (u64, usize) = (20, 200);
/// Until a killed process has a successor, in ms, at most.
const VACANCY: usize = 60;
/// How long to go on listening after a failure.
const AFTERMATH: Duration = Duration::from_secs(1);

/// One place: a process, or none since its last was killed.
struct Place {
    player: Option<Player>,
    next_generation: usize,
    vacant_until: Instant,
}

/// The test under way.
pub(super) struct Conductor<'t> {
    pub(super) options: &'t Options,
    context: &'t AnyContext,
    pub(super) view: View,
    pub(super) manager: Player,
    places: Vec<Place>,
    pub(super) killed: BTreeSet<Instance>,
    /// Who is paused, and how often somebody was.
    paused: Option<Instance>,
    pub(super) pauses: usize,
    pub(super) complaints: Vec<String>,
    hung: bool,
    leaving: bool,
    pub(super) tally: Tally,
    dice: Dice,
    hear: Receiver<(Instance, Heard)>,
    heard: Sender<(Instance, Heard)>,
}

impl<'t> Conductor<'t> {
    /// Starts a service manager and all processes.
    ///
    /// # Errors
    /// The context cannot be opened or has a manager; a process cannot be started.
    pub(super) fn begin(context: &'t AnyContext, options: &'t Options) -> Result<Self, Trouble> {
        let view = View::of(context).map_err(|error| Trouble::Unable(error.to_string()))?;
        let (heard, hear) = channel();
        let of_manager = Instance { place: options.processes, generation: 0 };
        let given = [words::MANAGER.to_owned(), context.address()];
        let manager = Player::start(of_manager, &given, &heard).map_err(Trouble::starting)?;
        let vacant = || Place { player: None, next_generation: 0, vacant_until: Instant::now() };
        let places = std::iter::repeat_with(vacant).take(options.processes).collect();
        let mut conductor = Self {
            options,
            context,
            view,
            manager,
            places,
            killed: BTreeSet::new(),
            paused: None,
            pauses: 0,
            complaints: Vec::new(),
            hung: false,
            leaving: false,
            tally: Tally::default(),
            dice: Dice::new(options.seed),
            hear,
            heard,
        };
        let limit = Instant::now() + options.patience;
        while conductor.manager.stage < Stage::Ready && conductor.fine() && Instant::now() < limit {
            conductor.listen(Duration::from_millis(50));
        }
        if conductor.manager.stage < Stage::Ready {
            let why = conductor.complaints.pop().unwrap_or_else(|| "it does not answer".to_owned());
            return Err(Trouble::Unable(format!("there is no service manager: {why}")));
        }
        conductor.fill()?;
        Ok(conductor)
    }

    /// Whether nothing has failed so far.
    pub(super) fn fine(&self) -> bool {
        self.complaints.is_empty()
    }

    pub(super) fn complain(&mut self, what: String) {
        if self.complaints.len() < COMPLAINTS {
            self.complaints.push(what);
        }
    }

    /// The processes that live.
    pub(super) fn players(&mut self) -> impl Iterator<Item = &mut Player> {
        self.places.iter_mut().filter_map(|place| place.player.as_mut())
    }

    /// How many processes there were.
    pub(super) fn started(&self) -> usize {
        self.places.iter().map(|place| place.next_generation).sum()
    }

    /// Gives a successor to those that were killed.
    fn fill(&mut self) -> Result<(), Trouble> {
        let now = Instant::now();
        for number in 0..self.places.len() {
            let place = &mut self.places[number];
            if place.player.is_some() || now < place.vacant_until {
                continue;
            }
            let instance = Instance { place: number, generation: place.next_generation };
            place.next_generation += 1;
            let fault = self.options.fault.filter(|_| number == 0);
            let given = [
                words::MEMBER.to_owned(),
                self.context.address(),
                instance.to_string(),
                self.options.processes.to_string(),
                self.dice.next().to_string(),
                self.options.patience.as_millis().to_string(),
                fault.map_or(words::NONE.to_owned(), |fault| fault.to_string()),
            ];
            let player = Player::start(instance, &given, &self.heard).map_err(Trouble::starting)?;
            self.places[number].player = Some(player);
        }
        Ok(())
    }

    /// Traffic, kills and pauses, until the time is up or something fails. Half-way it asks for memory.
    pub(super) fn play(&mut self) -> Result<(), Trouble> {
        let start = Instant::now();
        let (half, end) = (start + self.options.length / 2, start + self.options.length);
        let mut asked = false;
        let mut next_kill = start + self.within(BETWEEN_KILLS);
        let mut next_pause = start + self.within(BETWEEN_PAUSES);
        while Instant::now() < end && self.fine() {
            self.heed_signals()?;
            self.listen(Duration::from_millis(10));
            if self.options.kill && Instant::now() >= next_kill {
                self.kill_one();
                if self.dice.below(6) == 0 {
                    self.kill_one();
                }
                next_kill = Instant::now() + self.within(BETWEEN_KILLS);
            }
            if Instant::now() >= next_pause {
                let next = if self.pause_or_go_on() { PAUSE } else { BETWEEN_PAUSES };
                next_pause = Instant::now() + self.within(next);
            }
            if !asked && Instant::now() >= half {
                asked = true;
                self.players().for_each(|player| player.tell(words::MEMORY));
            }
            self.fill()?;
        }
        if self.paused.is_some() {
            self.pause_or_go_on();
        }
        Ok(())
    }

    /// Ends the test as it is when somebody wants to stop; the processes go with this value.
    fn heed_signals(&mut self) -> Result<(), Trouble> {
        let Some(signal) = sys::stop_signal::received().filter(|_| self.fine()) else { return Ok(()) };
        let tallies: Vec<_> = self.players().map(|player| player.tally).collect();
        tallies.into_iter().for_each(|tally| self.tally += tally);
        Err(Trouble::Stopped(signal, self.tally))
    }

    /// A random time, in ms: at least, and how much more at most.
    fn within(&mut self, (least, more): (u64, usize)) -> Duration {
        Duration::from_millis(least + self.dice.below(more) as u64)
    }

    /// Has the paused process go on, or pauses one; whether one is paused now. Mostly the first: it lives long enough to
    /// find everything.
    fn pause_or_go_on(&mut self) -> bool {
        if let Some(who) = self.paused.take() {
            if let Some(player) = self.player(who) {
                player.pause(false);
            }
            return false;
        }
        let number = if self.dice.below(4) > 0 { 0 } else { self.dice.below(self.places.len()) };
        let Some(player) = &mut self.places[number].player else { return false };
        player.pause(true);
        self.paused = Some(player.instance);
        self.pauses += 1;
        true
    }

    /// Kills any process but the first, which sees all the others come and go.
    fn kill_one(&mut self) {
        let number = 1 + self.dice.below(self.places.len() - 1);
        let vacancy = Duration::from_millis(self.dice.below(VACANCY) as u64);
        let place = &mut self.places[number];
        if let Some(mut player) = place.player.take() {
            // Noted first: nobody can hear of it before.
            self.killed.insert(player.instance);
            player.kill();
            self.tally += player.tally;
            place.vacant_until = Instant::now() + vacancy;
        }
    }

    /// Waits until all processes are this far, or something fails.
    pub(super) fn all_at(&mut self, stage: Stage, limit: Duration) -> Result<(), Trouble> {
        let end = Instant::now() + limit;
        loop {
            self.heed_signals()?;
            self.fill()?;
            let complete = self.places.iter().all(|place| place.player.is_some());
            let late = self.players().find(|player| player.stage < stage).map(|player| player.instance);
            match late {
                _ if !self.fine() => return Ok(()),
                None if complete => return Ok(()),
                Some(instance) if Instant::now() >= end => {
                    self.hung = true;
                    self.complain(format!("{instance} was not {stage:?} within {} s", limit.as_secs_f32()));
                }
                _ => self.listen(Duration::from_millis(20)),
            }
        }
    }

    /// Handles what was heard; waits for that at most so long.
    pub(super) fn listen(&mut self, limit: Duration) {
        let mut next = self.hear.recv_timeout(limit);
        loop {
            match next {
                Ok((who, Heard::Line(line))) => self.hear_line(who, &line),
                Ok((who, Heard::End)) => self.hear_end(who),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
            next = self.hear.try_recv().map_err(|_| RecvTimeoutError::Timeout);
        }
    }

    fn player(&mut self, who: Instance) -> Option<&mut Player> {
        if who == self.manager.instance {
            return Some(&mut self.manager);
        }
        self.players().find(|player| player.instance == who)
    }

    fn hear_line(&mut self, who: Instance, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let complaint = match word {
            words::READY => return self.reached(who, Stage::Ready),
            words::STOPPED => return self.reached(who, Stage::Stopped),
            words::SETTLED => return self.reached(who, Stage::Settled),
            "count" => {
                if let (Some(player), Ok(tally)) = (self.player(who), rest.parse()) {
                    player.tally = tally;
                }
                return;
            }
            words::MEMORY => {
                if let Some(player) = self.player(who) {
                    player.memory = rest.parse().ok();
                }
                return;
            }
            "refused" if self.has_killed(rest.split(' ').next().unwrap_or_default()) => return,
            "refused" => format!("{who} was refused by a process that lives: {rest}"),
            "died" if rest.parse().is_ok_and(|target| self.killed.contains(&target)) => return,
            "died" => format!("{who} was told of the death of {rest}, which lives"),
            "wait" => format!("waits {rest}"),
            "hang" => {
                self.hung = true;
                format!("{who} hangs: {rest}")
            }
            "fail" => rest.to_owned(),
            _ => format!("{who} says: {line}"),
        };
        self.complain(complaint);
    }

    /// Whether whoever this word means was killed.
    fn has_killed(&self, target: &str) -> bool {
        match target.strip_prefix(words::PLACE) {
            Some(place) => self.killed.iter().any(|killed| killed.place.to_string() == place),
            None => target.parse().is_ok_and(|target| self.killed.contains(&target)),
        }
    }

    fn reached(&mut self, who: Instance, stage: Stage) {
        if let Some(player) = self.player(who) {
            player.stage = player.stage.max(stage);
        }
    }

    fn hear_end(&mut self, who: Instance) {
        if self.leaving {
            return self.reached(who, Stage::Ended);
        }
        let Some(player) = self.player(who) else { return };
        player.stage = Stage::Ended;
        let end = player.ended().map_or("its output is closed".to_owned(), |status| status.to_string());
        self.complain(format!("{who} ended on its own: {end}"));
    }

    /// From here on processes may end.
    pub(super) fn dismiss(&mut self) {
        self.leaving = true;
    }

    /// Collects what there is to know about a failure: more complaints, for a hang what everybody
    /// waits for, and the driver's state.
    pub(super) fn explain(mut self) -> Vec<String> {
        if self.hung {
            self.players().for_each(|player| player.tell(words::WAITS));
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
