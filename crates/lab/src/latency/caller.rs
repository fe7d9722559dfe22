//! Room: the client of a pair: its two threads, the real-time one and the other, one call or a series of them.
//! Not here: the loop of iterations (`super::role`), where samples go (`crate::board`), which service is called
//! (`super::scene`).
//! Facts: between the two clock readings of a sample lies the call and nothing else; the marks in a trace
//! that say which call it is, and that it is over, come before the first and behind the second. The real-time thread
//! lives as long as the test and sleeps between its calls; it is really real-time, or there is none.
//! With a rate, latency counts from the moment that was intended for the call: a slow call that delays the
//! next ones does not hide them (coordinated omission). Each class then has a clock of its own: an ordinary
//! caller that load keeps waiting must not make an urgent one late.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;

use record::Class;
use sys::clock::{monotonic_ns, thread_cpu_ns};
use sys::clock_sleep;
use sys::sched::current_cpu;

use super::disturbance::Timers;
use super::notes::{Seen, Who};
use super::pace::Pace;
use super::sample::Sample;
use super::scene::Callee;
use crate::realtime;
use crate::trace::stamp::Stamp;
use crate::trace::switch::Switch;

/// What is the same for both threads of a client.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// A longer call misses its deadline; in clock units.
    pub(super) deadline: u64,
    /// Stops tracing at the first miss.
    pub(super) switch: Option<Switch>,
    /// Tells a trace which call comes next, and which one missed.
    pub(super) stamp: Stamp,
    /// Which pair this is.
    pub(super) pair: u32,
    /// Timers that expire during each call; none but where that was asked for.
    pub(super) timers: Arc<Timers>,
}

/// A call to make.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// Which one of its class, from 0.
    pub(super) number: u64,
    /// The moment that it is for, if not now.
    pub(super) intended: Option<u64>,
}

/// One call, timed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) sample: Sample,
    /// Whether tracing was stopped because of it.
    pub(super) stopped_tracing: bool,
    /// Whether the trace says that it missed its deadline: not if another pair's miss stopped tracing just before.
    pub(super) marked: bool,
}

impl Terms {
    /// A trace is told of a call, by the words of its class and number and more; whether there is one.
    #[inline]
    fn tell(&self, verb: &str, class: Class, number: u64, more: fmt::Arguments<'_>) -> bool {
        let (pair, class) = (self.pair, class.name());
        self.stamp.mark(verb, format_args!("pair={pair} class={class} number={number}{more}"))
    }
}

/// Calls once, now or at the moment that was intended.
#[inline]
fn timed<C: Callee>(callee: &C, class: Class, order: Order, terms: &Terms) -> Result<Timed, String> {
    let Order { number, intended } = order;
    if let Some(moment) = intended {
        clock_sleep::until(moment);
    }
    let expire = terms.timers.arm();
    // Behind the sleep, or that would be part of what the trace tells of the call.
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
    // Nothing but that mark comes before this: what led to the miss must not be overwritten.
    let stopped_tracing = missed && terms.switch.as_ref().is_some_and(Switch::off);
    let caller_ns = thread_cpu_ns() - cpu_before;
    if !missed {
        terms.tell("done", class, number, format_args!(""));
    }
    let spared = expire.is_some_and(|moment| !(start..end).contains(&moment));
    let sample = Sample { class, took, lasted: end - start, caller_ns, before, after, spared, answer };
    Ok(Timed { start, end, sample, stopped_tracing, marked })
}

/// The thread with normal priority: the one that leads.
pub(super) struct Caller<C> {
    callee: C,
    terms: Terms,
    urgent: Option<Urgent>,
}

/// What the real-time thread is to do next.
enum Task {
    /// One call.
    One(Order),
    /// So many calls, each at its moment, until nobody wants to hear of them.
    Series { calls: u64, pace: Pace, results: Sender<Result<Timed, String>> },
}

/// The real-time thread, from outside.
struct Urgent {
    tasks: SyncSender<Task>,
    results: Receiver<Result<Timed, String>>,
    _thread: JoinHandle<()>,
}

const FIFO_THREAD: &str = "fifo-caller";
const ENDED: &str = "the real-time thread ended";

impl Urgent {
    /// Starts it; it has made one call when this returns, so that what the first one sets up is not measured.
    fn start<C: Callee>(callee: C, terms: Terms, priority: u8, spins: bool) -> Result<(Self, Seen), String> {
        let (tasks, taken) = sync_channel::<Task>(1);
        let (given, results) = sync_channel(1);
        let (tells, told_of_itself) = sync_channel(1);
        let work = move || {
            let ready = realtime::become_fifo(priority)
                .map_err(|problem| problem.to_string())
                .and_then(|_| callee.call().map_err(|error| error.to_string()))
                .map(|_| Seen::own());
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
        let thread = std::thread::Builder::new().name(FIFO_THREAD.to_owned()).spawn(work);
        let thread = thread.map_err(|error| format!("starting the real-time thread: {error}"))?;
        let seen = told_of_itself.recv().map_err(|_| ENDED.to_owned())??;
        Ok((Self { tasks, results, _thread: thread }, seen))
    }

    fn call(&self, order: Order) -> Result<Timed, String> {
        self.tasks.send(Task::One(order)).map_err(|_| ENDED.to_owned())?;
        self.results.recv().map_err(|_| ENDED.to_owned())?
    }

    fn series(&self, calls: u64, pace: Pace) -> Result<Series, String> {
        let (results, made) = channel();
        self.tasks.send(Task::Series { calls, pace, results }).map_err(|_| ENDED.to_owned())?;
        Ok(Series { made, heard: 0, calls })
    }
}

/// Calls at each moment of the pace, until all calls are made, one breaks, or nobody listens.
fn series<C: Callee>(
    callee: &C,
    terms: &Terms,
    calls: u64,
    mut pace: Pace,
    results: &Sender<Result<Timed, String>>,
) {
    for number in 0..calls {
        let result = timed(callee, Class::Fifo, Order { number, intended: Some(pace.next()) }, terms);
        let broke = result.is_err();
        if results.send(result).is_err() || broke {
            return;
        }
    }
}

/// Calls that the real-time thread makes by its own clock. Dropping it ends them with the next one.
pub(super) struct Series {
    made: Receiver<Result<Timed, String>>,
    heard: u64,
    calls: u64,
}

impl Series {
    /// The next call that was made, and which one it is; `None` if there is none yet, or will be none. With
    /// `all` it is waited for.
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
    /// Both threads, each of which has made one call, and who they are.
    pub(super) fn start(
        callee: C,
        terms: Terms,
        realtime: Option<u8>,
        spins: bool,
    ) -> Result<(Self, Vec<(Who, Seen)>), String> {
        let mut seen = Vec::with_capacity(2);
        let urgent = if let Some(priority) = realtime {
            let (urgent, it) = Urgent::start(callee.clone(), terms.clone(), priority, spins)?;
            seen.push((Who::Fifo, it));
            Some(urgent)
        } else {
            None
        };
        callee.call().map_err(|error| error.to_string())?;
        seen.push((Who::Other, Seen::own()));
        Ok((Self { callee, terms, urgent }, seen))
    }

    /// Calls of an iteration, in their order.
    pub(super) fn classes(&self) -> &'static [Class] {
        if self.urgent.is_some() { &Class::BOTH } else { &[Class::Other] }
    }

    /// One call of this class.
    pub(super) fn call(&self, class: Class, order: Order) -> Result<Timed, String> {
        match (class, &self.urgent) {
            (Class::Fifo, Some(urgent)) => urgent.call(order),
            _ => timed(&self.callee, Class::Other, order, &self.terms),
        }
    }

    /// Has the real-time thread make so many calls by itself; `None` if there is no such thread.
    pub(super) fn series(&self, calls: u64, pace: Pace) -> Result<Option<Series>, String> {
        self.urgent.as_ref().map(|urgent| urgent.series(calls, pace)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::latency::sample::Answer;
    use crate::measure::CallError;

    /// Sleeps for so many us, and fails when it is to sleep for none.
    #[derive(Clone)]
    struct Slow(u64);

    impl Callee for Slow {
        fn call(&self) -> Result<Answer, CallError> {
            if self.0 == 0 {
                return Err(CallError::Closed);
            }
            std::thread::sleep(Duration::from_micros(self.0));
            Ok(Answer::default())
        }
    }

    fn terms() -> Terms {
        Terms { deadline: u64::MAX, switch: None, stamp: Stamp::default(), pair: 0, timers: Arc::default() }
    }

    fn at(moment: u64) -> Order {
        Order { number: 0, intended: Some(moment) }
    }

    #[test]
    fn a_late_call_counts_from_the_moment_that_was_intended() {
        let late = monotonic_ns() - 50_000_000;
        let timed = timed(&Slow(100), Class::Other, at(late), &terms()).expect("it answers");
        assert!(timed.sample.took >= 50_100_000, "{timed:?}");
        assert!(timed.end - timed.start < timed.sample.took);
    }

    #[test]
    fn a_call_waits_for_its_moment_and_counts_from_it() {
        let moment = monotonic_ns() + 5_000_000;
        let timed = timed(&Slow(100), Class::Other, at(moment), &terms()).expect("it answers");
        assert!(timed.start >= moment && timed.sample.took >= timed.end - timed.start);
    }

    /// Answers ordinary callers only once the real-time thread has called so often.
    #[derive(Clone)]
    struct OnlyAfterUrgent(Arc<AtomicU64>, u64);

    impl Callee for OnlyAfterUrgent {
        fn call(&self) -> Result<Answer, CallError> {
            if std::thread::current().name() == Some(FIFO_THREAD) {
                self.0.fetch_add(1, Ordering::Relaxed);
                return Ok(Answer::default());
            }
            let enough = || self.0.load(Ordering::Relaxed) >= self.1;
            let given_up = monotonic_ns() + 20_000_000_000;
            while !enough() && monotonic_ns() < given_up {
                std::thread::sleep(Duration::from_millis(1));
            }
            if enough() { Ok(Answer::default()) } else { Err(CallError::Closed) }
        }
    }

    #[test]
    fn a_series_goes_on_while_an_ordinary_call_waits() {
        let urgent_calls = Arc::new(AtomicU64::new(4));
        let callee = OnlyAfterUrgent(Arc::clone(&urgent_calls), 4);
        let Ok((caller, _)) = Caller::start(callee, terms(), Some(realtime::HIGHEST), false) else {
            eprintln!("SKIPPED: no right to be real-time");
            return;
        };
        urgent_calls.store(0, Ordering::Relaxed);
        let pace = Pace::new(monotonic_ns(), 1000.0, 0, 2);
        let mut series = caller.series(5, pace).expect("the thread lives").expect("there is one");
        caller.call(Class::Other, Order::default()).expect("it did not wait for the ordinary call");
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
            caller.call(Class::Other, Order::default()).expect("it answers").sample.class,
            Class::Other
        );
    }

    #[test]
    fn the_real_time_thread_is_real_time_or_says_why_not() {
        match Caller::start(Slow(1), terms(), Some(realtime::HIGHEST), false) {
            Ok((caller, seen)) => {
                assert_eq!((caller.classes(), seen.len()), (&Class::BOTH[..], 2));
                assert!(seen.iter().any(|(who, it)| *who == Who::Fifo && it.sched.is_realtime()));
                assert_eq!(
                    caller.call(Class::Fifo, Order::default()).expect("it answers").sample.class,
                    Class::Fifo
                );
            }
            Err(why) => assert!(why.contains("SCHED_FIFO"), "{why}"),
        }
    }
}
