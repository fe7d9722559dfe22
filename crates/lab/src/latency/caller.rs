//! Room: the client of a pair: its two threads, the real-time one and the other, and the loop of iterations.
//! Not here: where samples go (`crate::board`), which service is called (`super::scene`).
//! Facts: between the two clock readings of a sample lies the call and nothing else; the marks in a trace
//! that say which call it is, and that it is over, come before the first and behind the second. The real-time thread
//! lives as long as the test and sleeps between its calls; it is really real-time, or there is none.
//! With a rate, latency counts from the moment that was intended for the call: a slow call that delays the
//! next ones does not hide them (coordinated omission).

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use record::Class;
use sys::clock::{monotonic_ns, thread_cpu_ns};
use sys::clock_sleep;
use sys::sched::current_cpu;

use super::disturbance::Timers;
use super::notes::{Seen, Who};
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

/// The real-time thread, from outside. Each send hands over one call to make.
struct Urgent {
    orders: SyncSender<Order>,
    results: Receiver<Result<Timed, String>>,
    _thread: JoinHandle<()>,
}

const ENDED: &str = "the real-time thread ended";

impl Urgent {
    /// Starts it; it has made one call when this returns, so that what the first one sets up is not measured.
    fn start<C: Callee>(callee: C, terms: Terms, priority: u8, spins: bool) -> Result<(Self, Seen), String> {
        let (orders, taken) = sync_channel::<Order>(1);
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
            while told && let Ok(order) = taken.recv() {
                if spins {
                    loop {
                        std::hint::spin_loop();
                    }
                }
                told = given.send(timed(&callee, Class::Fifo, order, &terms)).is_ok();
            }
        };
        let thread = std::thread::Builder::new().name("fifo-caller".to_owned()).spawn(work);
        let thread = thread.map_err(|error| format!("starting the real-time thread: {error}"))?;
        let seen = told_of_itself.recv().map_err(|_| ENDED.to_owned())??;
        Ok((Self { orders, results, _thread: thread }, seen))
    }

    fn call(&self, order: Order) -> Result<Timed, String> {
        self.orders.send(order).map_err(|_| ENDED.to_owned())?;
        self.results.recv().map_err(|_| ENDED.to_owned())?
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
}

/// When calls are to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The first one's moment.
    begin: u64,
    /// Between two calls, in ns; `None` for one right after the other.
    period: Option<f64>,
    made: u64,
}

impl Pace {
    /// So many calls per second of both classes together, from now on.
    pub(super) fn new(rate_hz: Option<f64>) -> Self {
        Self { begin: monotonic_ns(), period: rate_hz.map(|rate| 1e9 / rate), made: 0 }
    }

    /// The moment of the next call.
    pub(super) fn next(&mut self) -> Option<u64> {
        let period = self.period?;
        self.made += 1;
        // Below 2^53 ns, which is 104 days, a float is exact.
        Some(self.begin.saturating_add((self.made as f64 * period) as u64))
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn moments_are_evenly_spaced_whatever_calls_take() {
        let mut pace = Pace::new(Some(1000.0));
        let (first, second) = (pace.next().expect("paced"), pace.next().expect("paced"));
        assert_eq!((first - pace.begin, second - first), (1_000_000, 1_000_000));
        assert_eq!(Pace::new(None).next(), None);
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
