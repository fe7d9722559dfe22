//! Client of a pair: its two threads, the real-time and the ordinary one; one call or a series of them.
//! Not here: the loop of iterations (`super::role`), sample storage (`procgroup::block`), the called service
//! (`super::endpoint`).
//! Facts: only the call lies between the two clock readings of a sample; the trace marks that identify the
//! call and its end come before the first and after the second. The real-time thread lives as long as the
//! test and sleeps between its calls; it exists only if it is actually real-time. With a rate, latency counts
//! from the intended start of the call: a slow call that delays the next ones does not hide them (coordinated
//! omission). Each class then has its own schedule: an ordinary caller delayed by load must not delay an
//! urgent one.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;

use record::Class;
use sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns};

use sys::sched::current_cpu;

use super::disturbance::Timers;
use super::endpoint::Callee;
use super::notes::{NotedThread, ThreadFacts};
use super::pace::Pace;
use super::sample::{Sample, Timed};
use ftrace::marker::Marker;
use ftrace::switch::Switch;
use host::realtime;

/// Settings shared by both threads of a client.
#[derive(Clone, Debug)]
pub(super) struct CallSettings {
    /// Deadline in clock units; a longer call misses it.
    pub(super) deadline: u64,
    /// Stops tracing at the first miss.
    pub(super) switch: Option<Switch>,
    /// Writes trace marks for the next call and for a miss.
    pub(super) stamp: Marker,
    pub(super) pair: u32,
    /// Timers that expire during each call; none unless requested.
    pub(super) timers: Arc<Timers>,
}

/// A call to make.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallOrder {
    /// Number of the call in its class, from 0.
    pub(super) number: u64,
    /// Intended start; `None`: now.
    pub(super) intended: Option<u64>,
}

impl CallSettings {
    /// Writes a trace mark with the class and number of a call; returns true if it was written.
    fn tell(&self, verb: &str, class: Class, number: u64, more: fmt::Arguments<'_>) -> bool {
        let (pair, class) = (self.pair, class.name());
        self.stamp.mark(verb, format_args!("pair={pair} class={class} number={number}{more}"))
    }
}

/// Makes one call, now or at its intended start.
fn timed<C: Callee>(
    callee: &C,
    class: Class,
    order: CallOrder,
    terms: &CallSettings,
) -> Result<Timed, String> {
    let CallOrder { number, intended } = order;
    if let Some(moment) = intended {
        sleep_until(moment);
    }
    let expire = terms.timers.arm();
    // After the sleep, which would otherwise be part of the call in the trace.
    terms.tell("call", class, number, format_args!(""));
    let cpu_before = thread_cpu_ns();
    let before = current_cpu();
    let start = monotonic_ns();
    let result = callee.call();
    let end = monotonic_ns();
    let after = current_cpu();
    let answer = result.map_err(|error| error.to_string())?;
    let took = end - intended.map_or(start, |moment| moment.min(start));
    let (missed, deadline) = (took > terms.deadline, terms.deadline);
    let marked =
        missed && terms.tell("miss", class, number, format_args!(" took_ns={took} deadline_ns={deadline}"));
    // Nothing but that mark comes before this: the events that led to the miss must not be overwritten.
    let stopped_tracing = missed && terms.switch.as_ref().is_some_and(Switch::off);
    let caller_ns = thread_cpu_ns() - cpu_before;
    if !missed {
        terms.tell("done", class, number, format_args!(""));
    }
    let spared = expire.is_some_and(|moment| !(start..end).contains(&moment)) || answer.is_spared();
    let sample = Sample { class, took, lasted: end - start, caller_ns, before, after, spared, answer };
    Ok(Timed { start, end, sample, stopped_tracing, marked })
}

/// The ordinary thread, which leads the iterations.
pub(super) struct Caller<C> {
    callee: C,
    terms: CallSettings,
    urgent: Option<Urgent>,
}

/// Next task of the real-time thread.
enum Task {
    One(CallOrder),
    /// This many calls at scheduled times, until the receiver is dropped.
    Series {
        calls: u64,
        pace: Pace,
        results: Sender<Result<Timed, String>>,
    },
}

/// Handle of the real-time thread.
struct Urgent {
    tasks: SyncSender<Task>,
    results: Receiver<Result<Timed, String>>,
    _thread: JoinHandle<()>,
}

/// Name of the real-time thread, before the number of its pair.
const FIFO_THREAD: &str = "fifo-caller";
const ENDED: &str = "the real-time thread ended";

impl Urgent {
    /// Starts the thread; it has made one call on return, so that first-call setup is not measured.
    fn start<C: Callee>(
        callee: C,
        terms: CallSettings,
        priority: u8,
        spins: bool,
    ) -> Result<(Self, ThreadFacts), String> {
        let pair = terms.pair;
        let (tasks, taken) = sync_channel::<Task>(1);
        let (given, results) = sync_channel(1);
        let (tells, told_of_itself) = sync_channel(1);
        let work = move || {
            let ready = realtime::become_fifo(priority)
                .map_err(|problem| problem.to_string())
                .and_then(|_| callee.call().map_err(|error| error.to_string()))
                .map(|_| ThreadFacts::own());
            let mut told = ready.is_ok() && tells.send(ready.clone()).is_ok();
            if ready.is_err() {
                let _ = tells.send(ready);
            }
            while told && let Ok(task) = taken.recv() {
                if spins {
                    loop {
                        std::hint::spin_loop();
                    }
                }
                match task {
                    Task::One(order) => {
                        told = given.send(timed(&callee, Class::Fifo, order, &terms)).is_ok();
                    }
                    Task::Series { calls, pace, results } => series(&callee, &terms, calls, pace, &results),
                }
            }
        };
        let thread = sys::title::thread(&format!("{FIFO_THREAD} {pair}"), work);
        let thread = thread.map_err(|error| format!("starting the real-time thread: {error}"))?;
        let seen = told_of_itself.recv().map_err(|_| ENDED.to_owned())??;
        Ok((Self { tasks, results, _thread: thread }, seen))
    }

    fn call(&self, order: CallOrder) -> Result<Timed, String> {
        self.tasks.send(Task::One(order)).map_err(|_| ENDED.to_owned())?;
        self.results.recv().map_err(|_| ENDED.to_owned())?
    }

    fn series(&self, calls: u64, pace: Pace) -> Result<Series, String> {
        let (results, made) = channel();
        self.tasks.send(Task::Series { calls, pace, results }).map_err(|_| ENDED.to_owned())?;
        Ok(Series { made, heard: 0, calls })
    }
}

/// Makes calls on schedule, until all are made, one breaks, or the receiver is dropped.
fn series<C: Callee>(
    callee: &C,
    terms: &CallSettings,
    calls: u64,
    mut pace: Pace,
    results: &Sender<Result<Timed, String>>,
) {
    for number in 0..calls {
        let result = timed(callee, Class::Fifo, CallOrder { number, intended: Some(pace.next()) }, terms);
        let broke = result.is_err();
        if results.send(result).is_err() || broke {
            return;
        }
    }
}

/// Calls of the real-time thread on its own schedule. Dropping the value ends them with the next call.
pub(super) struct Series {
    made: Receiver<Result<Timed, String>>,
    heard: u64,
    calls: u64,
}

impl Series {
    /// Returns the next completed call and its number; `None` if none is available yet, or none will follow.
    /// Waits for it if `all`.
    pub(super) fn next(&mut self, all: bool) -> Result<Option<(u64, Timed)>, String> {
        if self.heard == self.calls {
            return Ok(None);
        }
        let result = match self.made.try_recv() {
            Err(TryRecvError::Empty) if !all => return Ok(None),
            Err(_) => self.made.recv().map_err(|_| ENDED.to_owned())?,
            Ok(result) => result,
        };
        let number = self.heard;
        self.heard += 1;
        result.map(|timed| Some((number, timed)))
    }
}

impl<C: Callee> Caller<C> {
    /// Starts both threads, each of which makes one call, and returns their identities.
    pub(super) fn start(
        callee: C,
        terms: CallSettings,
        realtime: Option<u8>,
        spins: bool,
    ) -> Result<(Self, Vec<(NotedThread, ThreadFacts)>), String> {
        let mut seen = Vec::with_capacity(2);
        let urgent = if let Some(priority) = realtime {
            let (urgent, it) = Urgent::start(callee.clone(), terms.clone(), priority, spins)?;
            seen.push((NotedThread::Fifo, it));
            Some(urgent)
        } else {
            None
        };
        callee.call().map_err(|error| error.to_string())?;
        seen.push((NotedThread::Other, ThreadFacts::own()));
        Ok((Self { callee, terms, urgent }, seen))
    }

    /// Classes of the calls of an iteration, in order.
    pub(super) fn classes(&self) -> &'static [Class] {
        if self.urgent.is_some() { &Class::BOTH } else { &[Class::Other] }
    }

    /// Makes one call of this class.
    pub(super) fn call(&self, class: Class, order: CallOrder) -> Result<Timed, String> {
        match (class, &self.urgent) {
            (Class::Fifo, Some(urgent)) => urgent.call(order),
            _ => timed(&self.callee, Class::Other, order, &self.terms),
        }
    }

    /// Starts a series of `calls` calls of the real-time thread; `None` without such a thread.
    pub(super) fn series(&self, calls: u64, pace: Pace) -> Result<Option<Series>, String> {
        self.urgent.as_ref().map(|urgent| urgent.series(calls, pace)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use needs::{Need, need};

    use super::*;
    use crate::call_error::CallError;
    use crate::latency::sample::{SPARED, ServerFacts};

    /// Sleeps for this many us in each call; fails if it is 0.
    #[derive(Clone)]
    struct Slow(u64);

    impl Callee for Slow {
        fn call(&self) -> Result<ServerFacts, CallError> {
            if self.0 == 0 {
                return Err(CallError::Closed);
            }
            std::thread::sleep(Duration::from_micros(self.0));
            Ok(ServerFacts::default())
        }
    }

    fn terms() -> CallSettings {
        CallSettings {
            deadline: u64::MAX,
            switch: None,
            stamp: Marker::default(),
            pair: 0,
            timers: Arc::default(),
        }
    }

    fn at(moment: u64) -> CallOrder {
        CallOrder { number: 0, intended: Some(moment) }
    }

    #[test]
    fn a_late_call_counts_from_the_moment_that_was_intended() {
        let late = monotonic_ns() - 50_000_000;
        let timed = timed(&Slow(100), Class::Other, at(late), &terms()).expect("it answers");
        assert!(timed.sample.took >= 50_100_000, "{timed:?}");
        assert!(timed.end - timed.start < timed.sample.took);
    }

    #[test]
    fn a_call_whose_fault_did_not_come_is_marked() {
        #[derive(Clone)]
        struct Answers(u64);
        impl Callee for Answers {
            fn call(&self) -> Result<ServerFacts, CallError> {
                Ok(ServerFacts { sched: self.0, ..ServerFacts::default() })
            }
        }
        for (sched, spared) in [(0, false), (SPARED | 0x01_63_00, true)] {
            let timed =
                timed(&Answers(sched), Class::Fifo, CallOrder::default(), &terms()).expect("an answer");
            assert_eq!(timed.sample.spared, spared);
            let kept = Sample::of(&timed.sample.words());
            assert_eq!((kept.spared, kept.answer.sched), (spared, sched & !SPARED));
        }
    }

    #[test]
    fn a_call_waits_for_its_moment_and_counts_from_it() {
        let moment = monotonic_ns() + 5_000_000;
        let timed = timed(&Slow(100), Class::Other, at(moment), &terms()).expect("it answers");
        assert!(timed.start >= moment && timed.sample.took >= timed.end - timed.start);
    }

    /// Answers ordinary callers only after this many calls of the real-time thread.
    #[derive(Clone)]
    struct OnlyAfterUrgent(Arc<AtomicU64>, u64);

    impl Callee for OnlyAfterUrgent {
        fn call(&self) -> Result<ServerFacts, CallError> {
            if std::thread::current().name().is_some_and(|name| name.starts_with(FIFO_THREAD)) {
                self.0.fetch_add(1, Ordering::Relaxed);
                return Ok(ServerFacts::default());
            }
            let enough = || self.0.load(Ordering::Relaxed) >= self.1;
            let given_up = monotonic_ns() + 20_000_000_000;
            while !enough() && monotonic_ns() < given_up {
                std::thread::sleep(Duration::from_millis(1));
            }
            if enough() { Ok(ServerFacts::default()) } else { Err(CallError::Closed) }
        }
    }

    #[test]
    fn a_series_goes_on_while_an_ordinary_call_waits() {
        let urgent_calls = Arc::new(AtomicU64::new(4));
        let callee = OnlyAfterUrgent(Arc::clone(&urgent_calls), 4);
        let started = Caller::start(callee, terms(), Some(realtime::HIGHEST), false);
        let (caller, _) = need!(started.map_err(|error| Need::Realtime.lacks(error)));
        urgent_calls.store(0, Ordering::Relaxed);
        let pace = Pace::new(monotonic_ns(), 1000.0, 0, 2);
        let mut series = caller.series(5, pace).expect("the thread lives").expect("there is one");
        caller.call(Class::Other, CallOrder::default()).expect("it did not wait for the ordinary call");
        let mut made = 0;
        while let Some((number, timed)) = series.next(true).expect("each call answers") {
            assert_eq!((number, timed.sample.class), (made, Class::Fifo));
            made += 1;
        }
        assert_eq!(made, 5);
    }

    #[test]
    fn a_call_that_breaks_says_why_in_either_thread() {
        assert!(Caller::start(Slow(0), terms(), None, false).is_err());
        let (caller, seen) = Caller::start(Slow(1), terms(), None, false).expect("it answers");
        assert_eq!((caller.classes(), seen.len()), (&[Class::Other][..], 1));
        assert_eq!(
            caller.call(Class::Other, CallOrder::default()).expect("it answers").sample.class,
            Class::Other
        );
    }

    #[test]
    fn the_real_time_thread_is_real_time_or_says_why_not() {
        match Caller::start(Slow(1), terms(), Some(realtime::HIGHEST), false) {
            Ok((caller, seen)) => {
                assert_eq!((caller.classes(), seen.len()), (&Class::BOTH[..], 2));
                assert!(seen.iter().any(|(who, it)| *who == NotedThread::Fifo && it.sched.is_realtime()));
                assert_eq!(
                    caller.call(Class::Fifo, CallOrder::default()).expect("it answers").sample.class,
                    Class::Fifo
                );
            }
            Err(why) => assert!(why.contains("SCHED_FIFO"), "{why}"),
        }
    }
}
