//! The experiments of a suite: which there are, and their options.
//! Not here: the experiments themselves.

use std::time::Duration;

use record::Run;

use super::{SuiteOptions, SuitePart, latency_options, named};
use crate::background::{self, BackgroundOptions};
use crate::inversion::{self, InversionOptions};
use crate::latency::LatencyOptions;
use crate::load::LoadClass;
use crate::overload::{self, OverloadOptions};
use crate::plan::{Flavour, Release, fresh_seed};
use crate::run::{Observer, RunError};
use crate::sweep::{self, Grid};

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// Priority inversion with inheritance and without.
    Inversion,
    /// More real-time pairs than CPUs.
    Overload,
    /// A server or a caller in the background.
    Background,
    /// Latency over a grid, and the rates that are sustained.
    Sweep,
}

impl Experiment {
    /// All experiments, in the order of a suite.
    pub const ALL: [Experiment; 4] = [Self::Inversion, Self::Overload, Self::Background, Self::Sweep];

    /// Returns the word used in progress lines and file names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inversion => "inversion",
            Self::Overload => "overload",
            Self::Background => "background",
            Self::Sweep => "latency-sweep",
        }
    }

    /// Returns the typical time of a quick suite or of another one.
    pub(super) fn usual_time(self, quick: bool) -> Duration {
        let seconds = match self {
            Self::Inversion => 2,
            Self::Overload => 4,
            Self::Background => 2,
            Self::Sweep => 2,
        };
        Duration::from_secs(if quick { seconds } else { seconds * 6 })
    }

    /// Executes the experiment as part of a suite.
    pub(super) fn execute(
        self,
        options: &SuiteOptions,
        observer: &mut dyn Observer,
    ) -> Result<Run, RunError> {
        let quick = options.depth.is_quick();
        match self {
            Self::Inversion => inversion::execute(&inversion_options(options, quick), observer),
            Self::Overload => overload::execute(&overload_options(options, quick), observer),
            Self::Background => background::execute(&background_options(options, quick), observer),
            Self::Sweep => sweep::execute(&grid(options, quick), observer),
        }
    }
}

impl From<Experiment> for SuitePart {
    fn from(experiment: Experiment) -> Self {
        Self::Experiment(experiment)
    }
}

/// Returns calls in each round, and rounds.
fn amounts(quick: bool) -> (u32, u32) {
    if quick { (30, 1) } else { (60, 3) }
}

/// Returns the flavour of the context that was asked for; in any context this one.
fn flavour(options: &SuiteOptions, usual: Flavour) -> Flavour {
    match named(&options.wanted.device) {
        Some(name) if name.contains("hwbinder") => Flavour::Hwbinder,
        Some(_) => Flavour::Binder,
        None => usual,
    }
}

fn inversion_options(options: &SuiteOptions, quick: bool) -> InversionOptions {
    let (iterations, rounds) = amounts(quick);
    InversionOptions {
        flavour: flavour(options, Flavour::Hwbinder),
        hogs: 3,
        hog_class: LoadClass::Other,
        cpu: None,
        work_us: 1000,
        iterations,
        rounds,
        wanted: options.wanted.clone(),
        inherit: options.inherits_as_told.then_some(options.wanted.settings.inherit),
        android: Release::default(),
        seed: fresh_seed(),
        patience_s: 30,
        time_limit_s: 600,
        command_line: options.command_line.clone(),
    }
}

fn overload_options(options: &SuiteOptions, quick: bool) -> OverloadOptions {
    let (iterations, rounds) = amounts(quick);
    let usual = OverloadOptions::usual();
    // An emulated machine needs a large part of a millisecond for a call without any work.
    let slower =
        if matches!(host::class(), record::HostClass::Tcg | record::HostClass::Icount) { 5 } else { 1 };
    OverloadOptions {
        flavour: flavour(options, usual.flavour),
        work_us: usual.work_us * slower,
        deadline_us: usual.deadline_us * slower,
        period_us: usual.period_us * slower,
        iterations,
        rounds,
        wanted: options.wanted.clone(),
        command_line: options.command_line.clone(),
        ..usual
    }
}

fn background_options(options: &SuiteOptions, quick: bool) -> BackgroundOptions {
    let (iterations, rounds) = amounts(quick);
    let usual = BackgroundOptions::usual();
    BackgroundOptions {
        flavour: flavour(options, usual.flavour),
        iterations,
        rounds,
        wanted: options.wanted.clone(),
        command_line: options.command_line.clone(),
        ..usual
    }
}

fn grid(options: &SuiteOptions, quick: bool) -> Grid {
    let base = latency_options(options, flavour(options, Flavour::Hwbinder));
    Grid {
        base: LatencyOptions {
            test: "latency sweep".to_owned(),
            iterations: if quick { 300 } else { 1000 },
            flight: None,
            injected: Vec::new(),
            ..base
        },
        pairs: sweep::usual_pairs(sys::sched::usable_cpus()),
        payloads: if quick { vec![0] } else { vec![0, 4096] },
        loads: vec![Vec::new()],
        deadlines_us: vec![50, 100, 200, 500, 1000, 2500, 5000, 10_000],
        rates: if quick { Vec::new() } else { vec![500.0, 1e3, 2e3, 5e3, 1e4, 2e4] },
        meet: 0.99,
        confidence: 0.95,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Device, Wanted};

    fn options(device: Device) -> SuiteOptions {
        SuiteOptions {
            depth: Default::default(),
            experiments: true,
            wanted: Wanted { device, ..Wanted::default() },
            inherits_as_told: false,
            recordings: None,
            injected: Vec::new(),
            patience_s: 30,
            command_line: Vec::new(),
        }
    }

    #[test]
    fn every_experiment_can_be_done_at_every_depth() {
        let options = options(Device::Auto);
        for quick in [true, false] {
            inversion_options(&options, quick).check().expect("inversion");
            overload_options(&options, quick).check().expect("overload");
            background_options(&options, quick).check().expect("background");
            grid(&options, quick).check().expect("sweep");
        }
    }

    #[test]
    fn a_named_context_is_asked_in_its_own_protocol() {
        let named = |name: &str| options(Device::Named(name.to_owned()));
        assert_eq!(overload_options(&named("binder"), true).flavour, Flavour::Binder);
        assert_eq!(background_options(&named("hwbinder"), true).flavour, Flavour::Hwbinder);
        assert_eq!(grid(&named("binder"), true).base.flavour, Flavour::Binder);
    }
}
