//! Room: what the calls of a pair say together: times, misses, bubbles, the same CPU, the caller's priority.
//! Not here: taking samples (`super::caller`), calling any of it good or poor (`record::verdict`).

use record::{Class, Distribution, Latency, Measurement, Percentiles, Sched};

use super::sample::{Sample, unpack};

/// What all pairs of a test share.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) pairs: u32,
    pub(super) deadline: u64,
    pub(super) load: String,
    pub(super) rate_hz: Option<f64>,
    /// Whether single times are kept.
    pub(super) raw: bool,
}

/// How the callers of a pair were scheduled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callers {
    pub(super) fifo: Option<Sched>,
    pub(super) other: Sched,
}

impl Callers {
    fn of(&self, class: Class) -> Sched {
        match class {
            Class::Fifo => self.fifo.unwrap_or(self.other),
            Class::Other => self.other,
        }
    }
}

/// Whether a call was served as urgently as it was made, or more so within the same class: a node may ask
/// for a nice that is better than the caller's.
fn inherited(caller: Sched, server: Sched) -> bool {
    match (caller.is_realtime(), server.is_realtime()) {
        (true, true) => (caller.policy, caller.priority) == (server.policy, server.priority),
        (false, false) => server.nice <= caller.nice,
        (false, true) | (true, false) => false,
    }
}

/// Of so many ordinary calls one may be served by a thread that is still raised, where both callers call at once: it was
/// raised for the other one's call a moment after it had taken this one. More than that was not given back.
const ONE_OF: u64 = 100;

/// For each sample, for how much of the call neither side ran on a CPU, in ns, the time before its start apart; `None`
/// where it is not known: the first call that a thread serves. The server's part is what its thread used since it last answered.
fn idle(samples: &[Sample]) -> Vec<Option<u64>> {
    // Calls of two callers are kept class by class; a thread's own CPU time tells in which order it served them.
    let mut served: Vec<usize> = (0..samples.len()).collect();
    served.sort_by_key(|&at| (samples[at].answer.tid, samples[at].answer.cpu_ns));
    let mut idle = vec![None; samples.len()];
    for pair in served.windows(2) {
        let (before, sample) = (samples[pair[0]].answer, &samples[pair[1]]);
        if before.tid == sample.answer.tid {
            let running = sample.caller_ns.saturating_add(sample.answer.cpu_ns - before.cpu_ns);
            idle[pair[1]] = Some(sample.lasted.saturating_sub(running));
        }
    }
    idle
}

/// The numbers of those that it holds of.
fn numbers(calls: &[(&Sample, Option<u64>)], holds: impl Fn(&Sample) -> bool) -> Vec<u64> {
    (0..).zip(calls).filter(|(_, (sample, _))| holds(sample)).map(|(number, _)| number).collect()
}

/// The calls of one class, of all those of a pair in their order. No numbers if it made none.
pub(super) fn class(
    frame: &Frame,
    pair: u32,
    class: Class,
    callers: &Callers,
    samples: &[Sample],
) -> (Option<Measurement>, Latency) {
    let idle = idle(samples);
    let calls: Vec<(&Sample, Option<u64>)> =
        samples.iter().zip(idle).filter(|(sample, _)| sample.class == class).collect();
    let times: Vec<u64> = calls.iter().map(|(sample, _)| sample.took).collect();
    let count =
        |holds: &dyn Fn(&Sample) -> bool| calls.iter().filter(|(sample, _)| holds(sample)).count() as u64;
    let missed = |sample: &Sample| sample.took > frame.deadline;
    let migrated = |sample: &Sample| sample.before != sample.after;
    let caller = callers.of(class);
    let at_once = frame.rate_hz.is_some() && callers.fifo.is_some();
    let still_raised = count(&|sample| !caller.is_realtime() && unpack(sample.answer.sched).is_realtime());
    let forgiven = if at_once && still_raised * ONE_OF <= calls.len() as u64 { still_raised } else { 0 };
    let not_inherited = count(&|sample| !inherited(caller, unpack(sample.answer.sched))) - forgiven;
    let bubbles = calls
        .iter()
        .filter(|(sample, idle)| missed(sample) && idle.is_some_and(|idle| idle > sample.took / 2));
    let latency = Latency {
        pair,
        class,
        pairs: frame.pairs,
        deadline: frame.deadline,
        misses: count(&missed),
        bubbles: bubbles.count() as u64,
        same_cpu: count(&|sample| !migrated(sample) && sample.before == sample.answer.cpu),
        migrated: count(&migrated),
        not_inherited,
        percentiles: Percentiles::of(&mut times.clone()),
        raw: if frame.raw { times.clone() } else { Vec::new() },
        spared: numbers(&calls, |sample| frame.raw && sample.spared),
        load: frame.load.clone(),
        rate_hz: frame.rate_hz,
    };
    let measurement = (!times.is_empty()).then(|| Measurement {
        iterations: times.len() as u64,
        real_total: times.iter().copied().fold(0, u64::saturating_add),
        cpu_total: calls.iter().map(|(sample, _)| sample.caller_ns).fold(0, u64::saturating_add),
        samples: Distribution::of(times.iter().copied()),
        ..Measurement::default()
    });
    (measurement, latency)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Answer, pack};
    use super::*;

    const FRAME: Frame = Frame { pairs: 1, deadline: 1000, load: String::new(), rate_hz: None, raw: true };
    const CALLERS: Callers = Callers {
        fifo: Some(Sched { policy: 1, priority: 99, nice: 0 }),
        other: Sched { policy: 0, priority: 0, nice: 0 },
    };

    /// A call by CPU 0 that a thread of the same priority served there.
    fn call(class: Class, took: u64) -> Sample {
        let sched = pack(CALLERS.of(class));
        let answer = Answer { tid: 9, cpu: 0, sched, cpu_ns: 0 };
        Sample { class, took, lasted: took, caller_ns: 0, before: 0, after: 0, spared: false, answer }
    }

    fn other(samples: &[Sample]) -> Latency {
        class(&FRAME, 0, Class::Other, &CALLERS, samples).1
    }

    #[test]
    fn each_class_has_its_own_times() {
        let samples = [call(Class::Fifo, 10), call(Class::Other, 30), call(Class::Fifo, 20)];
        let (measured, latency) = class(&FRAME, 4, Class::Fifo, &CALLERS, &samples);
        let measured = measured.expect("calls");
        assert_eq!((measured.iterations, measured.real_total, latency.pair), (2, 30, 4));
        assert_eq!((latency.raw.as_slice(), latency.not_inherited), (&[10, 20][..], 0));
        assert_eq!(latency.percentiles.expect("calls").p99, 20);
        let (measured, latency) = class(&FRAME, 0, Class::Other, &CALLERS, &samples[..1]);
        assert_eq!((measured, latency.percentiles, latency.misses), (None, None, 0), "it made no call");
    }

    #[test]
    fn calls_that_no_timer_expired_in_are_known_by_their_numbers() {
        let spared = Sample { spared: true, ..call(Class::Other, 7) };
        let samples = [call(Class::Other, 7), call(Class::Fifo, 7), spared, call(Class::Other, 7)];
        assert_eq!(other(&samples).spared, [1]);
        let frame = Frame { raw: false, ..FRAME };
        assert!(class(&frame, 0, Class::Other, &CALLERS, &samples).1.spared.is_empty(), "not asked for");
    }

    #[test]
    fn a_call_as_long_as_the_deadline_meets_it() {
        let latency = other(&[call(Class::Other, 1000), call(Class::Other, 1001), call(Class::Other, 5)]);
        assert_eq!(latency.misses, 1);
    }

    #[test]
    fn a_migrated_caller_is_on_no_cpu_that_could_be_the_same() {
        let mut samples = [call(Class::Other, 1); 4];
        samples[1].answer.cpu = 1;
        samples[2].after = 1;
        samples[3] = Sample { after: 1, ..samples[1] };
        let latency = other(&samples);
        assert_eq!((latency.same_cpu, latency.migrated), (1, 2));
    }

    #[test]
    fn a_miss_is_a_bubble_when_nobody_ran_for_most_of_it() {
        let at = |took, caller_ns, cpu_ns| {
            let mut sample = call(Class::Other, took);
            (sample.caller_ns, sample.answer.cpu_ns) = (caller_ns, cpu_ns);
            sample
        };
        // Of the first nothing is known; then one in which the server ran, one in which the caller did, one in
        // which nobody did, and one that met the deadline.
        let samples = [
            at(5000, 0, 100),
            at(5000, 100, 4600),
            at(5000, 4000, 4700),
            at(5000, 300, 4900),
            at(900, 0, 4900),
        ];
        let latency = other(&samples);
        assert_eq!((latency.misses, latency.bubbles), (4, 1));
        assert_eq!(idle(&samples), [None, Some(400), Some(900), Some(4500), Some(900)]);
    }

    #[test]
    fn what_a_server_used_is_told_by_the_order_in_which_it_served() {
        let mut samples = [100, 700, 400].map(|cpu_ns| {
            let mut sample = call(Class::Other, 1000);
            sample.answer.cpu_ns = cpu_ns;
            sample
        });
        assert_eq!(
            idle(&samples),
            [None, Some(700), Some(700)],
            "it answered the last one before the second"
        );
        samples[1].answer.tid += 1;
        assert_eq!(idle(&samples), [None, None, Some(700)], "each thread by itself");
    }

    #[test]
    fn what_a_call_waited_for_its_turn_is_no_bubble() {
        // Intended long ago, and computed on from its start to its end.
        let mut late = call(Class::Other, 50_000);
        (late.lasted, late.answer.cpu_ns) = (5000, 10_000);
        let before = call(Class::Other, 1);
        assert_eq!(other(&[before, late]).bubbles, 0);
        late.lasted = 50_000;
        assert_eq!(other(&[before, late]).bubbles, 1);
    }

    #[test]
    fn inheritance_is_seen_in_both_directions() {
        let served = |class: Class, sched: Sched| {
            let mut sample = call(class, 1);
            sample.answer.sched = pack(sched);
            super::class(&FRAME, 0, class, &CALLERS, &[sample]).1.not_inherited
        };
        assert_eq!(served(Class::Fifo, Sched::fifo(99)), 0);
        assert_eq!(served(Class::Fifo, Sched::fifo(98)), 1);
        assert_eq!(served(Class::Fifo, Sched::other(0)), 1);
        assert_eq!(served(Class::Other, Sched::other(0)), 0);
        assert_eq!(served(Class::Other, Sched::other(-5)), 0, "a node may ask for more");
        assert_eq!(served(Class::Other, Sched::other(10)), 1);
        assert_eq!(served(Class::Other, Sched::fifo(99)), 1, "not given back");
    }

    #[test]
    fn a_thread_that_is_raised_for_the_other_callers_call_is_forgiven_and_one_that_stays_so_is_not() {
        let at_a_rate = Frame { rate_hz: Some(10.0), ..FRAME };
        let not_inherited = |frame: &Frame, asked: Class, by: Class, of: usize| {
            let mut samples = vec![call(asked, 1); of];
            samples[0].answer.sched = call(by, 1).answer.sched;
            super::class(frame, 0, asked, &CALLERS, &samples).1.not_inherited
        };
        use Class::{Fifo, Other};
        assert_eq!(not_inherited(&at_a_rate, Other, Fifo, 100), 0);
        assert_eq!(not_inherited(&at_a_rate, Other, Fifo, 99), 1, "too often");
        assert_eq!(not_inherited(&FRAME, Other, Fifo, 100), 1, "one call after the other");
        assert_eq!(not_inherited(&at_a_rate, Fifo, Other, 100), 1, "not raised");
    }
}
