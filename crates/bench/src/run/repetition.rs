//! One repetition of one case: warm-up, search for the number of iterations, measurement.
//! Not here: the order of repetitions (`super`).

use record::{Measurement, Outcome, Sampler};

use super::Observer;
use super::search;
use crate::measure::echo::rpc;
use crate::measure::same_cpu::Watched;
use crate::measure::together::batch_together;
use crate::measure::{Halt, RoundTrip, Sequence, batch};
use crate::plan::{MOST_ITERATIONS, MinTime, Plan, Planned};
use crate::profiled;
use crate::servers::{AnyClient, Servers, on_client};

/// Reason of a repetition that a signal cut short.
pub(super) const STOPPED: &str = "stopped by a signal";

/// State shared by all repetitions.
pub(super) struct RepetitionRunner<'p> {
    pub(super) plan: &'p Plan,
    /// Allocated once, before the first measurement.
    pub(super) sampler: Sampler,
    pub(super) sequence: Sequence,
    /// Iterations that the first repetition of each case found; later ones use the same number.
    pub(super) found: Vec<Option<u64>>,
}

/// State of the search in one repetition.
struct Trials<'a> {
    name: &'a str,
    servers: &'a Servers,
    observer: &'a mut dyn Observer,
}

/// Clients of a case: one, or several at once.
trait Caller {
    /// Makes so many round trips with each client.
    fn batch(
        &mut self,
        iterations: u64,
        sequence: &mut Sequence,
        sampler: &mut Sampler,
        servers: &Servers,
    ) -> (Measurement, Option<Halt>);

    /// Number of clients.
    fn clients(&self) -> u64 {
        1
    }

    /// Round trips of each client that are worth their time.
    fn most_samples(&self) -> u64 {
        MOST_ITERATIONS
    }
}

/// A client that calls alone.
struct Alone<R>(R);

impl<R: RoundTrip> Caller for Alone<R> {
    fn batch(
        &mut self,
        iterations: u64,
        sequence: &mut Sequence,
        sampler: &mut Sampler,
        servers: &Servers,
    ) -> (Measurement, Option<Halt>) {
        let watchdog = servers.watchdog();
        let watched = Watched::new(watchdog, servers.freely_placed());
        let (mut measured, halt) =
            watchdog.during(|| batch(&mut self.0, iterations, sequence, sampler, &watched));
        measured.cpus = watched.take();
        (measured, halt)
    }

    fn most_samples(&self) -> u64 {
        self.0.most_samples()
    }
}

/// All connections of a session, each with a thread.
impl Caller for Vec<rpc::Client> {
    fn batch(
        &mut self,
        iterations: u64,
        sequence: &mut Sequence,
        _sampler: &mut Sampler,
        servers: &Servers,
    ) -> (Measurement, Option<Halt>) {
        let watchdog = servers.watchdog();
        watchdog.during(|| batch_together(self, iterations, sequence, watchdog))
    }

    fn clients(&self) -> u64 {
        self.len() as u64
    }
}

impl RepetitionRunner<'_> {
    /// Measures a case once on its prepared servers.
    pub(super) fn repeat(
        &mut self,
        index: usize,
        planned: &Planned,
        client: AnyClient,
        servers: &Servers,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let mut trials = Trials { name: &planned.case.name, servers, observer };
        on_client!(client, |client| self.measure(index, &mut Alone(client), &mut trials))
    }

    /// Measures a case once through all connections of a session.
    pub(super) fn repeat_together(
        &mut self,
        index: usize,
        planned: &Planned,
        mut session: Vec<rpc::Client>,
        servers: &Servers,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let mut trials = Trials { name: &planned.case.name, servers, observer };
        self.measure(index, &mut session, &mut trials)
    }

    fn measure(&mut self, index: usize, caller: &mut impl Caller, trials: &mut Trials<'_>) -> Outcome {
        let first = self.found[index].is_none();
        if first && let Err(reason) = profiled::announce(trials.name) {
            return Outcome::Failed { reason, partial: None };
        }
        if first
            && !self.plan.dry_run
            && self.plan.min_warmup_s > 0.0
            && let Err(broken) = self.search(1, self.plan.min_warmup_s, caller, trials)
        {
            return *broken;
        }
        let (start, min_seconds) = match (self.found[index], self.plan.min_time) {
            // The number from the first repetition.
            (Some(found), _) => (found, 0.0),
            _ if self.plan.dry_run => (1, 0.0),
            (None, MinTime::Iterations(count)) => (count, 0.0),
            (None, MinTime::Seconds(seconds)) => (1, seconds),
        };
        match self.search(start, min_seconds, caller, trials) {
            Ok(measured) => {
                self.found[index] = Some(measured.iterations / caller.clients().max(1));
                Outcome::Measured(measured)
            }
            Err(broken) => *broken,
        }
    }

    /// Makes trials until one is long enough, and returns that one.
    fn search(
        &mut self,
        start: u64,
        min_seconds: f64,
        caller: &mut impl Caller,
        trials: &mut Trials<'_>,
    ) -> Result<Measurement, Box<Outcome>> {
        let most = caller.most_samples();
        let mut iterations = start;
        loop {
            let (measured, halt) =
                caller.batch(iterations, &mut self.sequence, &mut self.sampler, trials.servers);
            if let Some(halt) = halt {
                return Err(Box::new(broken(halt, measured, trials.servers)));
            }
            let seconds = measured.real_total as f64 / 1e9 / caller.clients().max(1) as f64;
            trials.observer.tried(trials.name, iterations, seconds);
            match search::next(iterations, seconds, min_seconds) {
                Some(more) if iterations < most => iterations = more.min(most),
                _ => return Ok(measured),
            }
        }
    }
}

fn broken(halt: Halt, measured: Measurement, servers: &Servers) -> Outcome {
    let reason = match halt {
        _ if sys::stop_signal::received().is_some() => STOPPED.to_owned(),
        Halt::Stopped => STOPPED.to_owned(),
        Halt::Broken(error) => servers.explain(&error),
    };
    let partial = (measured.iterations > 0).then_some(measured);
    Outcome::Failed { reason, partial }
}
