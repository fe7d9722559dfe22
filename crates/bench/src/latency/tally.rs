//! Figures of a pair's calls: durations, misses, bubbles, CPU placement, priority inheritance.
//! Not here: taking samples (`super::caller`), the verdict (`record::verdict`).

use record::{AndroidCounts, Class, ClassTotals, Latency, Measurement, Percentiles, PlacedMedians, Sched};

use super::sample::Sample;
use crate::measure;
use crate::plan::Flavour;
use crate::scheduling::unpack;
use host::realtime;

/// Facts common to all pairs of a test.
#[derive(Clone, Debug)]
pub(super) struct CaseFacts {
    pub(super) pairs: u32,
    pub(super) deadline: u64,
    pub(super) load: String,
    pub(super) rate_hz: Option<f64>,
    /// Whether to keep single durations.
    pub(super) raw: bool,
    pub(super) flavour: Flavour,
    /// Whether services report the threads that served.
    pub(super) told: bool,
}

/// Scheduling of the callers of a pair.
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

/// Returns true if a call was served at least as urgently as it was made, within the same class: a node may
/// ask for a lower nice than the caller's.
fn inherited(caller: Sched, server: Sched) -> bool {
    match (caller.is_realtime(), server.is_realtime()) {
        (true, true) => (caller.policy, caller.priority) == (server.policy, server.priority),
        (false, false) => server.nice <= caller.nice,
        (false, true) | (true, false) => false,
    }
}

/// One in this many ordinary calls may be served by a thread that is still raised, where both callers call at
/// once: it was raised for the other caller's call just after it had taken this one. A higher share means
/// that a priority was not restored.
const ONE_OF: u64 = 100;

/// Returns for each sample the time of the call in which neither side ran on a CPU, in ns, without the time
/// before its start; `None` where it is unknown: the first call that a thread serves. The server's part is
/// the CPU time of its thread since its previous answer.
fn idle(samples: &[Sample]) -> Vec<Option<u64>> {
    // Calls of two callers are stored class by class; a thread's own CPU time gives the order in which it
    // served them.
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

/// Counts as Android's tools do: by real-time priorities, and by the caller's CPU before the call. `schd-dbg` looks at
/// the CPU only where the server runs at the highest real-time priority.
fn as_android(flavour: Flavour, caller: Sched, calls: &[(&Sample, Option<u64>)]) -> AndroidCounts {
    let mut counts = AndroidCounts::default();
    for (sample, _) in calls {
        let server = unpack(sample.answer.sched).priority;
        let looked_at = flavour != Flavour::Binder || server == u32::from(realtime::HIGHEST);
        counts.apart += u64::from(looked_at && sample.before != sample.answer.cpu);
        counts.other_priority += u64::from(server != caller.priority);
    }
    counts
}

/// Whether a call began, was served and ended on one CPU.
fn on_one_cpu(sample: &Sample) -> bool {
    sample.before == sample.after && sample.before == sample.answer.cpu
}

/// Percentiles of the calls of a class, and their medians by placement; `None` without a call.
pub(super) fn totals<'s>(class: Class, samples: impl Iterator<Item = &'s Sample>) -> Option<ClassTotals> {
    let (same, apart): (Vec<&Sample>, Vec<&Sample>) = samples.partition(|sample| on_one_cpu(sample));
    let times = |samples: &[&Sample]| samples.iter().map(|sample| sample.took).collect::<Vec<u64>>();
    let (mut one, mut two) = (times(&same), times(&apart));
    let placed = PlacedMedians {
        calls: (one.len() + two.len()) as u64,
        same_cpu: one.len() as u64,
        p50_same: Percentiles::of(&mut one).map(|percentiles| percentiles.p50),
        p50_apart: Percentiles::of(&mut two).map(|percentiles| percentiles.p50),
    };
    let told = same.iter().chain(&apart).any(|sample| sample.answer.is_told());
    let percentiles = Percentiles::of(&mut [one, two].concat())?;
    Some(ClassTotals { class, percentiles, placed: told.then_some(placed) })
}

/// Returns the numbers of the calls for which `holds` is true.
fn numbers(calls: &[(&Sample, Option<u64>)], holds: impl Fn(&Sample) -> bool) -> Vec<u64> {
    (0..).zip(calls).filter(|(_, (sample, _))| holds(sample)).map(|(number, _)| number).collect()
}

/// Computes the figures of one class from all calls of a pair in their order. No numbers without a call of
/// the class.
pub(super) fn class(
    frame: &CaseFacts,
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
    let if_told = |count: u64| if frame.told { count } else { 0 };
    let latency = Latency {
        misses: count(&missed),
        bubbles: if_told(bubbles.count() as u64),
        untold: !frame.told,
        same_cpu: if_told(count(&on_one_cpu)),
        migrated: count(&migrated),
        not_inherited: if_told(not_inherited),
        percentiles: Percentiles::of(&mut times.clone()),
        raw: if frame.raw { times.clone() } else { Vec::new() },
        spared: numbers(&calls, |sample| frame.raw && sample.spared),
        idle: calls.iter().filter(|_| frame.raw && frame.told).map(|(_, idle)| *idle).collect(),
        load: frame.load.clone(),
        rate_hz: frame.rate_hz,
        android: frame.told.then(|| as_android(frame.flavour, caller, &calls)),
        ..Latency::new(pair, class, frame.pairs, frame.deadline)
    };
    let cpu_total = calls.iter().map(|(sample, _)| sample.caller_ns).fold(0, u64::saturating_add);
    (measure::of_samples(&times, cpu_total), latency)
}

#[cfg(test)]
mod tests {
    use super::super::sample::ServerFacts;
    use super::*;
    use crate::scheduling::pack;

    const FRAME: CaseFacts = CaseFacts {
        pairs: 1,
        deadline: 1000,
        load: String::new(),
        rate_hz: None,
        raw: true,
        flavour: Flavour::Hwbinder,
        told: true,
    };
    const CALLERS: Callers = Callers {
        fifo: Some(Sched { policy: 1, priority: 99, nice: 0 }),
        other: Sched { policy: 0, priority: 0, nice: 0 },
    };

    /// A call from CPU 0, served there by a thread of the same priority.
    fn call(class: Class, took: u64) -> Sample {
        let sched = pack(CALLERS.of(class));
        let answer = ServerFacts { tid: 9, cpu: 0, sched, cpu_ns: 0 };
        Sample { class, took, lasted: took, caller_ns: 0, before: 0, after: 0, spared: false, answer }
    }

    fn other(samples: &[Sample]) -> Latency {
        class(&FRAME, 0, Class::Other, &CALLERS, samples).1
    }

    #[test]
    fn medians_are_told_apart_by_placement() {
        let apart = |took| {
            let call = call(Class::Other, took);
            Sample { answer: ServerFacts { cpu: 1, ..call.answer }, ..call }
        };
        let moved = Sample { after: 1, ..call(Class::Other, 70) };
        let samples =
            [call(Class::Other, 10), apart(50), moved, call(Class::Other, 12), call(Class::Other, 14)];
        let found = totals(Class::Other, samples.iter()).expect("calls");
        let placed = found.placed.expect("told");
        assert_eq!((placed.calls, placed.same_cpu, placed.p50_same), (5, 3, Some(12)));
        assert!(placed.p50_apart.is_some_and(|median| (50..=70).contains(&median)), "{placed:?}");
        assert_eq!(found.percentiles.p50, 14);
        assert_eq!(totals(Class::Other, [].iter()), None);
    }

    #[test]
    fn of_a_server_that_tells_nothing_nothing_is_claimed() {
        let mut samples = [call(Class::Fifo, 5000), call(Class::Fifo, 7)];
        samples.iter_mut().for_each(|sample| sample.answer = ServerFacts::default());
        let frame = CaseFacts { told: false, ..FRAME };
        let (measured, latency) = class(&frame, 0, Class::Fifo, &CALLERS, &samples);
        assert!(measured.is_some() && latency.untold && latency.android.is_none());
        assert_eq!((latency.misses, latency.bubbles, latency.same_cpu, latency.not_inherited), (1, 0, 0, 0));
        assert_eq!(totals(Class::Fifo, samples.iter()).expect("calls").placed, None);
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
        let frame = CaseFacts { raw: false, ..FRAME };
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
    fn androids_counts_follow_its_rules() {
        let counts = |flavour, class, samples: &[Sample]| {
            let frame = CaseFacts { flavour, ..FRAME };
            super::class(&frame, 0, class, &CALLERS, samples).1.android.expect("counted")
        };
        // Served on the caller's CPU; elsewhere; by a thread that was not raised elsewhere; while the caller moved.
        let mut samples = [call(Class::Fifo, 1); 4];
        samples[1].answer.cpu = 1;
        samples[2].answer = ServerFacts { cpu: 1, sched: pack(Sched::other(0)), ..samples[2].answer };
        samples[3].after = 1;
        let hwbinder = counts(Flavour::Hwbinder, Class::Fifo, &samples);
        assert_eq!(hwbinder, AndroidCounts { apart: 2, other_priority: 1 });
        let binder = counts(Flavour::Binder, Class::Fifo, &samples);
        assert_eq!(binder, AndroidCounts { apart: 1, other_priority: 1 }, "not where no thread was raised");
        // A nice value that was not passed on is no difference to Android's tools, and one to ours.
        let mut nicer = call(Class::Other, 1);
        nicer.answer.sched = pack(Sched::other(10));
        assert_eq!(counts(Flavour::Hwbinder, Class::Other, &[nicer]), AndroidCounts::default());
        assert_eq!(other(&[nicer]).not_inherited, 1);
    }

    #[test]
    fn a_miss_is_a_bubble_when_nobody_ran_for_most_of_it() {
        let at = |took, caller_ns, cpu_ns| {
            let mut sample = call(Class::Other, took);
            (sample.caller_ns, sample.answer.cpu_ns) = (caller_ns, cpu_ns);
            sample
        };
        // The first one has no known idle time; then one in which the server ran, one in which the caller
        // did, one in which neither did, and one that met the deadline.
        let samples = [
            at(5000, 0, 100),
            at(5000, 100, 4600),
            at(5000, 4000, 4700),
            at(5000, 300, 4900),
            at(900, 0, 4900),
        ];
        let latency = other(&samples);
        assert_eq!(latency.idle, idle(&samples));
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
        // Intended long ago, and computing from its start to its end.
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
        let at_a_rate = CaseFacts { rate_hz: Some(10.0), ..FRAME };
        let not_inherited = |frame: &CaseFacts, asked: Class, by: Class, of: usize| {
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
