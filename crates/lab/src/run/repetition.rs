//! Room: one repetition of one case: warm up, find the number of iterations, measure.
//! Not here: the order of repetitions (`super`).

use record::{Measurement, Outcome, Sampler};

use super::Observer;
use super::search;
use crate::measure::{Halt, RoundTrip, Sequence, batch};
use crate::plan::{MinTime, Plan, Planned};
use crate::stage::{Stage, Subject, on_subject};

/// The reason of a repetition that a signal cut short.
pub(super) const STOPPED: &str = "stopped by a signal";

/// What all repetitions share.
pub(super) struct Bench<'p> {
    pub(super) plan: &'p Plan,
    /// Allocated once, before the first measurement.
    pub(super) sampler: Sampler,
    pub(super) sequence: Sequence,
    /// Iterations that the first repetition of each case found; later ones make as many.
    pub(super) found: Vec<Option<u64>>,
}

/// Where the search of one repetition stands.
struct Trials<'a> {
    name: &'a str,
    stage: &'a Stage<'a>,
    observer: &'a mut dyn Observer,
}

impl Bench<'_> {
    /// Measures a case once on its prepared stage.
    pub(super) fn repeat(
        &mut self,
        index: usize,
        planned: &Planned,
        subject: Subject,
        stage: &Stage<'_>,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let mut trials = Trials { name: &planned.case.name, stage, observer };
        on_subject!(subject, |mut client| self.measure(index, &mut client, &mut trials))
    }

    fn measure<R: RoundTrip>(&mut self, index: usize, client: &mut R, trials: &mut Trials<'_>) -> Outcome {
        let first = self.found[index].is_none();
        if first
            && !self.plan.dry_run
            && self.plan.min_warmup_s > 0.0
            && let Err(broken) = self.search(1, self.plan.min_warmup_s, client, trials)
        {
            return *broken;
        }
        let (start, min_seconds) = match (self.found[index], self.plan.min_time) {
            // As many as the first repetition made.
            (Some(found), _) => (found, 0.0),
            (None, MinTime::Seconds(seconds)) if !self.plan.dry_run => (1, seconds),
            (None, min_time) => (search::start(min_time, self.plan.dry_run), 0.0),
        };
        match self.search(start, min_seconds, client, trials) {
            Ok(measured) => {
                self.found[index] = Some(measured.iterations);
                Outcome::Measured(measured)
            }
            Err(broken) => *broken,
        }
    }

    /// Makes trials until one is long enough, and returns that one.
    fn search<R: RoundTrip>(
        &mut self,
        start: u64,
        min_seconds: f64,
        client: &mut R,
        trials: &mut Trials<'_>,
    ) -> Result<Measurement, Box<Outcome>> {
        let watch = trials.stage.watch();
        let mut iterations = start;
        loop {
            let (measured, halt) =
                watch.during(|| batch(client, iterations, &mut self.sequence, &mut self.sampler, watch));
            if let Some(halt) = halt {
                return Err(Box::new(broken(halt, measured, trials.stage)));
            }
            let seconds = measured.real_total as f64 / 1e9;
            trials.observer.tried(trials.name, iterations, seconds);
            match search::next(iterations, seconds, min_seconds) {
                Some(more) => iterations = more,
                None => return Ok(measured),
            }
        }
    }
}

fn broken(halt: Halt, measured: Measurement, stage: &Stage<'_>) -> Outcome {
    let reason = match halt {
        _ if sys::stop_signal::received().is_some() => STOPPED.to_owned(),
        Halt::Stopped => STOPPED.to_owned(),
        Halt::Broken(error) => stage.explain(&error),
    };
    let partial = (measured.iterations > 0).then_some(measured);
    Outcome::Failed { reason, partial }
}
