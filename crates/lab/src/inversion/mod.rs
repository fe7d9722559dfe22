//! Room: the priority-inversion experiment: a real-time caller, its server and CPU hogs on one CPU, with and
//! without inheritance; from a plan to the record.
//! Not here: what inversion is (`record::inversion`), the hogs (`crate::load`).
//!
//! - [`ask`]: what was asked for, validated. - `cast`: the processes, from outside; [`role`]: one of them
//!   from inside. - `service`: what is called, in either flavour. - `tally`: calls into figures.
//!
//! Facts: figures 3 and 4 of Android's page on Binder performance testing. A machine cannot hang by it: the
//! caller sleeps between its calls, what the server does in one is limited, and the kernel ends a real-time
//! process that runs for longer (`RLIMIT_RTTIME`).
//!
//! A server that computes for next to nothing is often run at once all the same: a fair scheduler lets those
//! go first that have slept more than their share. With some work of its own in each call it waits its turn.

pub mod ask;
mod cast;
pub mod role;
mod service;
mod tally;

use std::time::{Duration, Instant};

pub use ask::{Ask, Flavour};
use cast::{Cast, Trouble};
use record::{Case, CaseKind, Inversion, Outcome, Repetition, Run, Setting};

use crate::host;
use crate::load::{Kind, LoadSpec, Loads};
use crate::plan::Plan;
use crate::run::{self, Observer, RunError};
use crate::stage::{Contexts, Stage};
use tally::Tally;

/// Carries out a plan that [`Ask::check`] let through. This binary is started again for every process, so
/// it must pass its words on to [`role::play`] and [`crate::load::role::play`]. SIGINT and SIGTERM stop a
/// run that has begun.
///
/// # Errors
/// [`RunError`]: no driver, or the processes did not get ready, such as a caller that may not be real-time.
/// What goes wrong later is part of the record.
pub fn execute(ask: &Ask, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let start = Instant::now();
    // Before the first process is started, which whoever stops this may see.
    sys::stop_signal::catch().map_err(RunError::Os)?;
    let cpu = ask.cpu().map_err(RunError::Unready)?;
    let dialect = ask.flavour.dialect(ask.android);
    let (context, driver) = run::find_driver(&ask.wanted(), dialect.context())?;
    let class = host::class();
    let mut run = run::new_run(ask.for_record(), Some(driver), class);
    run.cases = (0..).zip(Setting::ALL).map(|(index, setting)| case(ask, setting, index)).collect();
    let program = std::env::current_exe().map_err(RunError::Os)?;
    observer.begins(&run);
    let plan =
        Plan { wanted: ask.wanted(), android: ask.android, patience_s: ask.patience_s, ..Plan::default() };
    let contexts = Contexts::only(dialect, Some(context.clone()));
    let mut stage = Stage::new(&plan, &program, contexts, class);
    stage.manage(dialect).map_err(|error| RunError::Unready(error.to_string()))?;
    let cast = Cast::start(ask, cpu, &context, &stage);
    let mut cast = cast.map_err(|trouble| RunError::Unready(trouble.to_string()))?;
    let hogs = LoadSpec { kind: Kind::Cpu, count: ask.hogs, class: ask.hog_class };
    let until = start + Duration::from_secs(ask.time_limit_s);
    let mut course =
        Course { ask, cpu, hogs, until, cast: &mut cast, run: &mut run, tally: Tally::default(), observer };
    course.go(&program);
    let tally = std::mem::take(&mut course.tally);
    run.inversion = Some(Inversion {
        flavour: ask.flavour.to_string(),
        cpu,
        hogs: ask.hogs,
        hog_class: ask.hog_class.to_string(),
        caller: cast.caller(),
        iterations: ask.iterations.into(),
        rounds: ask.rounds,
        limit: None,
        rows: Vec::new(),
    });
    tally.conclude(&mut run, |setting| ask.means(setting, &context));
    run.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(run)
}

fn case(ask: &Ask, setting: Setting, index: u32) -> Case {
    Case {
        name: ask.case_name(setting),
        family: "inversion".to_owned(),
        family_index: 0,
        per_family_instance_index: index,
        kind: CaseKind::Test,
        payload_bytes: 0,
        threads: 1,
        crowd: None,
        latency: None,
        label: None,
        repetitions: Vec::new(),
    }
}

/// The settings in the order in which a round has them: the quiet one first, since hogs are started once,
/// then the others in turns, so that none is always the first of them.
fn order(round: u32) -> [Setting; 4] {
    let mut hogged = [Setting::Off, Setting::On, Setting::Raised];
    hogged.rotate_left(round as usize % 3);
    let [first, second, third] = hogged;
    [Setting::Quiet, first, second, third]
}

/// A run under way.
struct Course<'r> {
    ask: &'r Ask,
    cpu: u32,
    hogs: LoadSpec,
    /// When it is given up.
    until: Instant,
    cast: &'r mut Cast,
    run: &'r mut Run,
    tally: Tally,
    observer: &'r mut dyn Observer,
}

impl Course<'_> {
    fn go(&mut self, program: &std::path::Path) {
        for round in 0..self.ask.rounds {
            let mut hogs = None;
            for (place, setting) in order(round).into_iter().enumerate() {
                if !self.observer.is_wanted() {
                    return self.give_up("stopped as nobody reads the results".to_owned());
                }
                if setting != Setting::Quiet && hogs.is_none() {
                    match Loads::start(&[self.hogs], program, Some(&[self.cpu])) {
                        Ok(started) => hogs = Some(started),
                        Err(error) => return self.give_up(error.to_string()),
                    }
                }
                let index = Setting::ALL.iter().position(|known| *known == setting).unwrap_or(0);
                let (done, all) = (round as usize * Setting::ALL.len() + place, self.all());
                self.observer.starts(self.run, index, done, all);
                if let Some(trouble) = self.visit(index, setting, hogs.as_ref()) {
                    return self.give_up(trouble.to_string());
                }
            }
        }
        self.run.complete = true;
    }

    fn all(&self) -> usize {
        self.ask.rounds as usize * Setting::ALL.len()
    }

    fn give_up(&mut self, why: String) {
        self.run.incomplete_reason = Some(why);
    }

    /// The calls of one setting in one round.
    fn visit(&mut self, index: usize, setting: Setting, hogs: Option<&Loads>) -> Option<Trouble> {
        let (calls, trouble) = self.cast.round(setting, self.until);
        // Without all hogs it was another experiment.
        let trouble = trouble.or_else(|| hogs?.check().err().map(|error| Trouble::Broken(error.to_string())));
        let numbers = tally::measurement(&calls);
        self.tally.add(setting, &calls);
        let outcome = match (numbers, &trouble) {
            (Some(numbers), None) => Outcome::Measured(numbers),
            (partial, Some(trouble)) => Outcome::Failed { reason: trouble.to_string(), partial },
            (None, None) => Outcome::Failed { reason: "no call was made".to_owned(), partial: None },
        };
        let list = &mut self.run.cases[index].repetitions;
        list.push(Repetition { index: list.len() as u32, outcome });
        trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_turn_in_each_round_and_none_is_always_first() {
        for round in 0..6 {
            let mut settings = order(round);
            assert_eq!(settings[0], Setting::Quiet);
            settings.sort_unstable();
            assert_eq!(settings, Setting::ALL);
        }
        let firsts = [0, 1, 2].map(|round| order(round)[1]);
        assert_eq!(firsts, [Setting::Off, Setting::On, Setting::Raised]);
    }
}
