//! Turns the experiment's calls into figures and an inversion verdict.
//! Not here: making the calls (`role`), the threshold (`record::experiments::inversion`).

use std::collections::BTreeMap;

use record::experiments::inversion::lateness::{Lateness, limit};
use record::{InversionRow, Measured, Measurement, Percentiles, Run, Sched, ServedAs, Setting, same_urgency};

use super::role::WORDS;
use crate::measure;
use crate::scheduling::unpack;

/// The calls of one setting in one round.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) caller: Sched,
    /// CPU time of the caller, in ns.
    pub(super) cpu_ns: u64,
    /// [`WORDS`] for each call: duration, the server's scheduling, CPU time of both sides.
    pub(super) words: Vec<u64>,
}

impl Calls {
    fn each(&self) -> impl Iterator<Item = &[u64; WORDS]> {
        self.words.as_chunks().0.iter()
    }
}

/// Returns the measurement of a round; `None` without calls.
pub(super) fn measurement(calls: &Calls) -> Option<Measurement> {
    measure::of_samples(&calls.each().map(|[took, ..]| *took).collect::<Vec<_>>(), calls.cpu_ns)
}

/// All calls of one setting.
#[derive(Clone, Debug, Default)]
struct Of {
    times: Vec<u64>,
    /// Durations and CPU times of both sides together.
    ran: Vec<(u64, u64)>,
    served: BTreeMap<u64, u64>,
    not_inherited: u64,
}

impl Of {
    /// Counts late calls in which neither side ran for most of the time.
    fn bubbles(&self, limit: Option<u64>) -> u64 {
        let is_bubble =
            |(took, ran): &&(u64, u64)| limit.is_some_and(|limit| *took > limit) && *ran < took / 2;
        self.ran.iter().filter(is_bubble).count() as u64
    }
}

/// All calls so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    settings: BTreeMap<Setting, Of>,
}

impl Tally {
    pub(super) fn add(&mut self, setting: Setting, calls: &Calls) {
        let of = self.settings.entry(setting).or_default();
        for &[took, sched, ran] in calls.each() {
            of.times.push(took);
            of.ran.push((took, ran));
            *of.served.entry(sched).or_default() += 1;
            of.not_inherited += u64::from(!same_urgency(unpack(sched), calls.caller));
        }
    }

    fn times(&self, setting: Setting) -> &[u64] {
        self.settings.get(&setting).map_or(&[], |of| &of.times)
    }

    /// Adds the summary of all calls to the run.
    pub(super) fn conclude(mut self, run: &mut Run, means: impl Fn(Setting) -> String) {
        let Measured::Inversion(experiment) = &mut run.measured else { return };
        let medians = [Setting::Quiet, Setting::Raised]
            .map(|setting| Some(Percentiles::of(&mut self.times(setting).to_vec())?.p50));
        experiment.limit = medians.into_iter().flatten().min().map(limit);
        let late_of = |times: &[u64]| experiment.limit.map(|limit| Lateness::of(times, limit));
        let (quiet, raised) = (late_of(self.times(Setting::Quiet)), late_of(self.times(Setting::Raised)));
        let inverted = |own: Option<Lateness>, reference: Option<Lateness>| match quiet {
            Some(quiet) => own?.is_inverted_beyond(reference?, quiet),
            None => own?.is_inverted(reference?),
        };
        let off = late_of(self.times(Setting::Off));
        let raised_waits = (|| raised?.waits_although_raised(quiet?, off?))();
        let reference = if raised_waits == Some(true) { quiet } else { raised };
        for (setting, case) in Setting::ALL.into_iter().zip(&run.cases) {
            let of = self.settings.entry(setting).or_default();
            let lateness = late_of(&of.times);
            let percentiles = Percentiles::of(&mut of.times);
            let late = lateness.map_or(0, |lateness| lateness.late);
            experiment.rows.push(InversionRow {
                setting,
                case: case.name.clone(),
                means: means(setting),
                calls: of.times.len() as u64,
                late,
                bubbles: of.bubbles(experiment.limit),
                not_inherited: of.not_inherited,
                percentiles,
                served: served(&of.served),
                inverted: match setting {
                    Setting::Quiet => None,
                    Setting::Raised => raised_waits,
                    Setting::Off | Setting::On => inverted(lateness, reference),
                },
            });
        }
    }
}

fn served(counts: &BTreeMap<u64, u64>) -> Vec<ServedAs> {
    let mut served: Vec<ServedAs> =
        counts.iter().map(|(word, calls)| ServedAs { sched: unpack(*word), calls: *calls }).collect();
    served.sort_by_key(|served| std::cmp::Reverse(served.calls));
    served
}

#[cfg(test)]
mod tests {
    use record::Inversion;

    use super::*;
    use crate::case::new_case;
    use crate::run::new_run;
    use crate::scheduling::pack;
    use host;

    fn calls(count: usize, took: u64, sched: Sched, ran: u64) -> Calls {
        Calls { caller: Sched::fifo(99), cpu_ns: 5, words: [took, pack(sched), ran].repeat(count) }
    }

    /// A run with an empty experiment, and its cases.
    fn run() -> Run {
        let case =
            |setting: Setting| new_case(format!("inversion/{}", setting.name()), "inversion".to_owned(), 0);
        let mut run = new_run(record::Plan::default(), None, host::class());
        run.cases = Setting::ALL.map(case).into();
        run.measured = Measured::Inversion(Inversion {
            flavour: "binder".to_owned(),
            cpu: 0,
            hogs: 2,
            hog_class: "fifo10".to_owned(),
            caller: Sched::fifo(99),
            iterations: 30,
            rounds: 1,
            limit: None,
            rows: Vec::new(),
        });
        run
    }

    fn concluded(settings: &[(Setting, Calls)]) -> Run {
        let (mut run, mut tally) = (run(), Tally::default());
        settings.iter().for_each(|(setting, calls)| tally.add(*setting, calls));
        tally.conclude(&mut run, |setting| setting.name().to_owned());
        run
    }

    #[test]
    fn rows_say_what_the_calls_were_like() {
        let (fifo, other) = (Sched::fifo(99), Sched::other(0));
        let run = concluded(&[
            (Setting::Quiet, calls(30, 20_000, other, 15_000)),
            (Setting::Off, calls(30, 4_000_000, other, 20_000)),
            (Setting::Off, calls(30, 4_000_000, other, 3_000_000)),
            (Setting::On, calls(29, 21_000, fifo, 15_000)),
            (Setting::On, calls(1, 5_000_000, other, 15_000)),
            (Setting::Raised, calls(30, 20_000, fifo, 15_000)),
        ]);
        let experiment = run.inversion().expect("it is there");
        assert_eq!(experiment.limit, Some(270_000));
        let of = |setting| experiment.row(setting).expect("a row");
        let inverted = Setting::ALL.map(|setting| of(setting).inverted);
        assert_eq!(inverted, [None, Some(true), Some(false), Some(false)]);
        let on = of(Setting::On);
        assert_eq!((on.calls, on.late), (30, 1));
        let want = [ServedAs { sched: fifo, calls: 29 }, ServedAs { sched: other, calls: 1 }];
        assert_eq!(on.served, want, "the most frequent first");
        let off = of(Setting::Off);
        assert_eq!((off.late, off.bubbles, off.not_inherited), (60, 30, 60));
        assert_eq!((on.bubbles, on.not_inherited), (1, 1));
        assert_eq!(of(Setting::Raised).not_inherited, 0);
    }

    /// Every call goes through a process of normal priority.
    #[test]
    fn a_reference_that_waits_itself_is_none() {
        let fifo = Sched::fifo(99);
        let run = concluded(&[
            (Setting::Quiet, calls(30, 100_000, Sched::other(0), 0)),
            (Setting::Off, calls(30, 6_000_000, Sched::other(0), 0)),
            (Setting::On, calls(30, 5_000_000, fifo, 0)),
            (Setting::Raised, calls(30, 5_000_000, fifo, 0)),
        ]);
        let experiment = run.inversion().expect("it is there");
        assert_eq!(experiment.limit, Some(350_000));
        let inverted = Setting::ALL.map(|setting| experiment.row(setting).expect("a row").inverted);
        assert_eq!(inverted, [None, Some(true), Some(true), Some(true)]);
    }

    /// A busy host delays some calls of every setting, here none of the quiet ones.
    #[test]
    fn a_reference_that_the_machine_disturbed_is_still_one() {
        let fifo = Sched::fifo(99);
        let run = concluded(&[
            (Setting::Quiet, calls(30, 2_000_000, Sched::other(0), 0)),
            (Setting::Off, calls(30, 20_000_000, Sched::other(0), 0)),
            (Setting::On, calls(30, 20_000_000, Sched::other(0), 0)),
            (Setting::Raised, calls(24, 2_000_000, fifo, 0)),
            (Setting::Raised, calls(6, 20_000_000, fifo, 0)),
        ]);
        let experiment = run.inversion().expect("it is there");
        let inverted = Setting::ALL.map(|setting| experiment.row(setting).expect("a row").inverted);
        assert_eq!(inverted, [None, Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn without_a_reference_nothing_is_told() {
        let run = concluded(&[(Setting::Off, calls(30, 4_000_000, Sched::other(0), 0))]);
        let experiment = run.inversion().expect("it is there");
        assert_eq!(experiment.limit, None);
        assert!(experiment.rows.iter().all(|row| row.inverted.is_none()), "{:?}", experiment.rows);
        assert_eq!(experiment.rows.len(), Setting::ALL.len());
    }

    #[test]
    fn a_rounds_times_are_kept() {
        let numbers = measurement(&calls(7, 100, Sched::other(0), 50)).expect("calls");
        assert_eq!((numbers.iterations, numbers.real_total, numbers.samples.count), (7, 700, 7));
        assert_eq!(measurement(&calls(0, 1, Sched::other(0), 1)), None);
    }
}
