//! Room: throughput with many at work: workers that call each other at random, clients with a service of
//! their own, clients that share services; from a plan to the record.
//! Not here: one client and its service (`crate::run`), the embedded driver's targets (`crate::speed`).
//!
//! - [`ask`]: what was asked for, validated; [`layout`]: who serves and who calls whom.
//! - [`team`]: the processes of a case, from outside; [`role`]: one of them from inside.
//! - [`scene`]: the flavours. The memory they share is a `crate::board`.
//! - [`tally`]: samples into figures. [`cause`]: why one ended.
//!
//! Facts: AOSP `binderThroughputTest.cpp` (Android 14) and `Benchmark_throughput.cpp` of libhwbinder.
//! Where those count wrongly this does not: `docs/reading-the-numbers.md` lists it.

pub mod ask;
mod cause;
mod layout;
pub mod role;
mod scene;
mod tally;
mod team;

use std::time::Instant;

pub use ask::{Ask, Flavour, Group, MOST_WORKERS, Shape};
use record::{Case, CaseKind, Crowd, Outcome, Repetition, Run};

use crate::host;
use crate::plan::{Dialect, Plan};
use crate::run::{self, Observer, RunError};
use crate::stage::{Contexts, Stage};
use team::{Team, Trouble};

/// Carries out a plan that [`Ask::check`] let through. This binary is started again for every worker, so
/// it must pass its words on to [`role::play`]. SIGINT and SIGTERM stop a run that has begun.
///
/// # Errors
/// [`RunError`]: no driver, or the workers could not get ready. What goes wrong once they call is part of
/// the record.
pub fn execute(ask: &Ask, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let start = Instant::now();
    // Before the first process is started, which whoever stops this may see.
    sys::stop_signal::catch().map_err(RunError::Os)?;
    let plan = Plan {
        wanted: ask.wanted.clone(),
        android: ask.android,
        patience_s: ask.patience_s,
        ..Plan::default()
    };
    let (context, driver) = match ask.flavour.context() {
        Some(name) => {
            run::find_driver(&ask.wanted, name).map(|(context, driver)| (Some(context), Some(driver)))?
        }
        None => (None, None),
    };
    let class = host::class();
    let mut run = run::new_run(ask.for_record(), driver, class);
    run.cases = (0..).zip(&ask.groups).map(|(index, group)| case(ask, group, index)).collect();
    run.overloaded = run.cases.iter().any(|case| case.crowd.as_ref().is_some_and(|crowd| crowd.overloaded));
    // Workers inherit it.
    let _ = sys::open_files::allow(ask.descriptors());
    let program = std::env::current_exe().map_err(RunError::Os)?;
    observer.begins(&run);
    let dialect = match ask.flavour {
        Flavour::Binder | Flavour::Passthrough => Dialect::Binder(ask.android),
        Flavour::Hwbinder => Dialect::Hwbinder,
    };
    let contexts = Contexts::only(dialect, context.clone());
    let mut stage = Stage::new(&plan, &program, contexts, class);
    // A manager of ours would know of nobody else's service.
    let others = ask.groups.iter().all(|group| matches!(group.shape, Shape::Named(_)));
    if ask.flavour.has_manager() && !others {
        stage.manage(dialect).map_err(|error| RunError::Unready(error.to_string()))?;
    }
    let address = context.map(|context| context.address()).unwrap_or_default();
    let mut course =
        Course { ask, address, stage: &stage, run: &mut run, observer, longest: ask.expected_max_ns };
    course.go()?;
    run.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(run)
}

fn case(ask: &Ask, group: &Group, index: u32) -> Case {
    Case {
        name: group.case_name(ask.flavour),
        family: ask.flavour.family(),
        family_index: 0,
        per_family_instance_index: index,
        kind: CaseKind::Test,
        payload_bytes: group.payload.into(),
        threads: group.clients(),
        crowd: Some(Crowd {
            shape: group.shape.kind(),
            services: group.services(),
            overloaded: group.clients() > sys::sched::usable_cpus(),
        }),
        latency: None,
        label: group.shape.label(),
        repetitions: Vec::new(),
    }
}

/// A run under way.
struct Course<'r> {
    ask: &'r Ask,
    /// The context's; empty where there is none.
    address: String,
    stage: &'r Stage<'r>,
    run: &'r mut Run,
    observer: &'r mut dyn Observer,
    /// What no call is expected to exceed, in ns.
    longest: Option<u64>,
}

impl Course<'_> {
    /// One case keeps its processes for all of its rounds; several take turns, so that a slow drift of
    /// the machine meets them all.
    fn go(&mut self) -> Result<(), RunError> {
        let groups = self.ask.groups.len();
        let (passes, rounds) = if groups == 1 { (1, self.ask.rounds) } else { (self.ask.rounds, 1) };
        for pass in 0..passes as usize {
            for index in 0..groups {
                if !self.observer.is_wanted() {
                    self.run.incomplete_reason = Some("stopped as nobody reads the results".to_owned());
                    return Ok(());
                }
                self.observer.starts(self.run, index, pass * groups + index, passes as usize * groups);
                if let Some(trouble) = self.visit(index, rounds)? {
                    self.run.incomplete_reason = Some(trouble.to_string());
                    return Ok(());
                }
                if pass + 1 == passes as usize {
                    self.observer.case_done(self.run, index);
                }
            }
        }
        self.run.complete = true;
        Ok(())
    }

    /// So many rounds of one case, by one set of processes.
    fn visit(&mut self, index: usize, rounds: u32) -> Result<Option<Trouble>, RunError> {
        let mut team = match Team::start(self.ask, &self.ask.groups[index], &self.address, self.stage) {
            Ok(team) => team,
            Err(Trouble::Stopped(signal)) => return Ok(Some(Trouble::Stopped(signal))),
            Err(trouble) if self.has_results() => return Ok(Some(self.keep(index, None, trouble))),
            Err(trouble) => return Err(RunError::Unready(trouble.to_string())),
        };
        if self.ask.training {
            let (measured, trouble) = team.round(None);
            if let Some(trouble) = trouble {
                return Ok(Some(self.keep(index, measured, trouble)));
            }
            // As the original: twice the worst seen.
            let worst = measured.map_or(0, |measured| measured.samples.max);
            self.longest = Some(worst.saturating_mul(2));
            self.observer.trained(worst);
        }
        for _ in 0..rounds {
            let (measured, trouble) = team.round(self.longest);
            match (measured, trouble) {
                (Some(measured), None) => self.push(index, Outcome::Measured(measured)),
                (measured, trouble) => {
                    let trouble = trouble.unwrap_or_else(|| Trouble::Broken("no call was made".to_owned()));
                    return Ok(Some(self.keep(index, measured, trouble)));
                }
            }
        }
        Ok(None)
    }

    /// Whether there is anything to lose.
    fn has_results(&self) -> bool {
        self.run.cases.iter().any(|case| !case.repetitions.is_empty())
    }

    fn keep(&mut self, index: usize, partial: Option<record::Measurement>, trouble: Trouble) -> Trouble {
        self.push(index, Outcome::Failed { reason: trouble.to_string(), partial });
        trouble
    }

    fn push(&mut self, index: usize, outcome: Outcome) {
        let list = &mut self.run.cases[index].repetitions;
        list.push(Repetition { index: list.len() as u32, outcome });
    }
}
