//! Passes of a test with a flight recorder: which calls are made with it and which without, so that no figure includes a
//! cost that changes it.
//! Not here: the recordings (`flight`), the rule (`record::Recorder::is_too_dear`).
//!
//! A short pass without the recorder comes first, then the whole test with it. Where the medians of both say that it is too
//! dear, or cannot say, the whole test is made once more without it: the figures are of that pass, the pictures of the other.

use std::path::PathBuf;

use record::{Class, ClassTotals, Finding, Pass, Recorder, Run, Severity};

use super::flight::RecordingKeeper;
use super::options::LatencyOptions;
use super::pairs::{PairResult, Pairs, Setup};
use super::{measure, totals};
use crate::brokers::Brokers;
use crate::run::{Observer, RunError};

/// Iterations of the short pass.
const SHORT: std::ops::RangeInclusive<u64> = 100..=2000;
/// Seconds without a call that end the short pass: a pair that hangs there hangs in the test, too, which waits as it should.
const SHORT_PATIENCE_S: u64 = 5;

/// A test that wants a flight recorder.
pub(super) struct Passes<'t> {
    pub(super) options: &'t LatencyOptions,
    /// Without a recorder.
    pub(super) setup: &'t Setup,
    pub(super) brokers: &'t Brokers,
}

impl Passes<'_> {
    /// Measures the test; its recordings begin with `prefix`. Without a recorder the record says why.
    ///
    /// # Errors
    /// Those of a test without a recorder.
    pub(super) fn measure(
        &self,
        prefix: PathBuf,
        run: &mut Run,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        let prepared = RecordingKeeper::prepare(prefix, self.options.deadline());
        let started = prepared.and_then(|keeper| {
            let short = self.short_pass();
            keeper.start().map(|()| (keeper, short))
        });
        let recorder = match started {
            Ok((keeper, short)) => {
                let blank = run.clone();
                let recorder = self.recorded_pass(keeper, short, run, observer)?;
                self.without_its_cost(recorder, blank, run, observer)
            }
            Err(missing) => {
                measure(self.options, self.setup, run, self.brokers, None, observer)?;
                Recorder { missing: Some(missing), ..Recorder::default() }
            }
        };
        if let Some(test) = run.measured.latency_mut() {
            test.recorder = Some(recorder);
        }
        Ok(())
    }

    /// Measures a fifth of the test without the recorder, for its cost.
    fn short_pass(&self) -> Recorder {
        let options = self.options;
        let iterations = (options.iterations / 5).clamp(*SHORT.start(), *SHORT.end());
        let short = LatencyOptions {
            iterations: iterations.min(options.iterations),
            patience_s: options.patience_s.min(SHORT_PATIENCE_S),
            ..options.clone()
        };
        let mut recorder = Recorder::default();
        // Whatever fails here fails again in the test itself, which says why.
        if let Ok(mut pairs) = Pairs::start(&short, self.setup) {
            let ended = pairs.run(None, self.brokers, &mut |_| {});
            let results = pairs.results();
            if ended.is_ok() {
                (recorder.without, recorder.calls_without) = (of_classes(&results), calls(&results));
            }
        }
        recorder
    }

    /// Measures the whole test with the recorder.
    fn recorded_pass(
        &self,
        mut keeper: RecordingKeeper,
        short: Recorder,
        run: &mut Run,
        observer: &mut dyn Observer,
    ) -> Result<Recorder, RunError> {
        let setup = Setup { flight: Some(keeper.folder()), records: keeper.records(), ..self.setup.clone() };
        measure(self.options, &setup, run, self.brokers, Some(&mut keeper), observer)?;
        let Recorder { saved, stopped, trouble, .. } = keeper.finish();
        Ok(Recorder { saved, stopped, trouble, ..short })
    }

    /// Measures the whole test without the recorder, if this was too dear. A failed or stopped call is the result, with or
    /// without the recorder, so a test with one is left as it is.
    fn without_its_cost(
        &self,
        recorder: Recorder,
        blank: Run,
        run: &mut Run,
        observer: &mut dyn Observer,
    ) -> Recorder {
        let with = run.latency().map(|test| test.all.clone()).unwrap_or_default();
        let failed = run.cases.iter().any(|case| case.failure().is_some());
        if !run.complete || failed || !recorder.is_too_dear(&with) {
            return recorder;
        }
        let mut again = blank;
        if let Err(error) = measure(self.options, self.setup, &mut again, self.brokers, None, observer) {
            let text =
                format!("all times include the flight recorder's cost: measuring without it failed: {error}");
            run.findings.push(Finding::new("recorder-cost", Severity::Warning, text));
            return recorder;
        }
        let calls_with = with.iter().filter_map(|totals| totals.placed).map(|placed| placed.calls).sum();
        *run = again;
        Recorder {
            figures: Pass::Without,
            with,
            calls_with,
            without: Vec::new(),
            calls_without: 0,
            ..recorder
        }
    }
}

pub(super) fn of_classes(results: &[PairResult]) -> Vec<ClassTotals> {
    Class::BOTH.into_iter().filter_map(|class| totals(class, results)).collect()
}

fn calls(results: &[PairResult]) -> u64 {
    results.iter().map(|result| result.samples.len() as u64).sum()
}
