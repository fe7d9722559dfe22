//! A description of the load that a recording holds.
//! Not here: reading a trace (`recording`), carrying a description out (`bench`).
//!
//! - Each thread that makes calls for no other call is a thread of the description, and makes them in its order.
//! - The time between its calls is closed-loop or open-loop: `rhythm` has the rule.
//! - What a receiver did between the receipt and its reply is part of the call: `pauses` has the rule of times, and
//!   calls that it made stand
//!   between them.
//! - `sizes`: the sizes of calls, and what is taken where the trace lacks them.

mod notes;
mod pauses;
mod rhythm;
mod sizes;

use std::collections::BTreeMap;

use trace::event::Prio;

use crate::description::{
    Call as Made, Carries, Expected, Process, Scheduling, Step, Thread, Turns, Workload,
};
use crate::recording::{Call, CannotSelect, Recording, Selected, Selection};
use rhythm::{Gap, Rhythm};
use sizes::Sizes;

/// Maximum number of calls within one another; what is deeper is waited for instead of made.
const MOST_NESTED: usize = 16;
/// Maximum number of threads that a driver is asked for.
const MOST_POOL: u32 = 31;

/// How a description is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which calls.
    pub selection: Selection,
    /// Seed of what is drawn; the same one gives the same description.
    pub seed: u64,
}

/// Describes the selected calls of a recording.
///
/// # Errors
/// [`CannotSelect`] if there are none.
pub fn describe(recording: &Recording, options: &Options) -> Result<Workload, CannotSelect> {
    let selected = recording.select(&options.selection)?;
    let mut describer = Describer::new(&selected, options.seed);
    let threads = describer.threads();
    let notes = notes::of(&selected, &describer.counted, &describer.sizes, threads.len(), options.seed);
    let processes = describer.processes();
    Ok(Workload { notes, processes, threads, measured: None })
}

/// Counts for the notes of a description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    /// Calls too deep to be made.
    deep: u64,
    /// Calls that came by time.
    by_time: u64,
    /// Threads whose calls come at a steady rate.
    periodic: u64,
}

struct Describer<'r> {
    selected: &'r Selected<'r>,
    /// Index of each process in the description.
    places: BTreeMap<i32, usize>,
    /// Calls that were made for each call, in order.
    inner: BTreeMap<usize, Vec<usize>>,
    sizes: Sizes,
    counted: Counted,
}

impl<'r> Describer<'r> {
    fn new(selected: &'r Selected<'r>, seed: u64) -> Self {
        let places = selected.processes.iter().enumerate().map(|(at, process)| (*process, at)).collect();
        let mut inner: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in &selected.calls {
            if let Some(parent) = selected.recording.calls[*at].parent {
                inner.entry(parent).or_default().push(*at);
            }
        }
        let sizes = Sizes::of(selected.each(), seed);
        Self { selected, places, inner, sizes, counted: Counted::default() }
    }

    fn call(&self, at: usize) -> &'r Call {
        &self.selected.recording.calls[at]
    }

    fn place(&self, process: i32) -> usize {
        self.places.get(&process).copied().unwrap_or(0)
    }

    /// The processes, with as many threads as served at one time.
    fn processes(&self) -> Vec<Process> {
        let mut edges: BTreeMap<i32, Vec<(u64, i32)>> = BTreeMap::new();
        for call in self.selected.each().filter(|call| !call.back) {
            // One that is over in no time takes a thread, too.
            let done = call.done.max(call.received.saturating_add(1));
            edges.entry(call.callee).or_default().extend([(call.received, 1), (done, -1)]);
        }
        let pool = |process: &i32| {
            let mut edges = edges.get(process).cloned().unwrap_or_default();
            edges.sort_unstable();
            let busy = edges.iter().scan(0_i32, |now, (_, step)| {
                *now += step;
                Some(*now)
            });
            u32::try_from(busy.max().unwrap_or(0) - 1).unwrap_or(0).min(MOST_POOL)
        };
        let mut used: BTreeMap<&str, u32> = BTreeMap::new();
        // Copies of a process of a replay have one name; a number behind it says that they are copies.
        let mut name = |process| {
            let name = self.selected.names.get(process).map_or("", String::as_str);
            let before = used.entry(name).and_modify(|before| *before += 1).or_insert(0);
            if *before == 0 { name.to_owned() } else { format!("{name}.{before}") }
        };
        let one = |process| Process { name: name(process), copies: 1, pool: pool(process) };
        self.selected.processes.iter().map(one).collect()
    }

    /// The threads that make calls of their own accord, by process and then by their first calls.
    fn threads(&mut self) -> Vec<Thread> {
        let mut threads: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for at in self.selected.calls.iter().filter(|at| self.call(**at).parent.is_none()) {
            threads.entry(self.call(*at).client).or_default().push(*at);
        }
        let mut order: Vec<Vec<usize>> = threads.into_values().collect();
        order.sort_by_key(|calls| calls.first().map(|at| (self.place(self.call(*at).caller), *at)));
        order.into_iter().map(|calls| self.thread(&calls)).collect()
    }

    fn thread(&mut self, calls: &[usize]) -> Thread {
        let (begin, history) = (self.selected.span.0, &self.selected.recording.threads);
        let mut gaps = Vec::with_capacity(calls.len());
        let mut free = None;
        for call in calls.iter().map(|at| self.call(*at)) {
            let since = free.unwrap_or(begin).min(call.sent);
            gaps.push(Gap::of(history.slices(call.client, since, call.sent), free.is_none()));
            free = Some(free.unwrap_or(0).max(call.free));
        }
        let rhythm = Rhythm::of(&gaps);
        self.counted.periodic += u64::from(rhythm == Rhythm::Open);
        let mut steps = Vec::new();
        for (at, gap) in calls.iter().zip(&gaps) {
            let before = gap.steps(rhythm, begin, self.call(*at).sent);
            self.counted.by_time += u64::from(before.iter().any(|step| matches!(step, Step::At(_))));
            before.into_iter().for_each(|step| add(&mut steps, step));
            let made = self.made(*at, 0);
            add(&mut steps, made);
        }
        let first = calls.first().map(|at| self.call(*at));
        let process = first.map_or(0, |call| self.place(call.caller));
        let prio = calls.iter().find_map(|at| self.call(*at).prio);
        Thread { process, scheduling: scheduling(prio), turns: Turns::Times(1), steps }
    }

    /// A call, with all that was done for it.
    fn made(&mut self, at: usize, depth: usize) -> Step {
        let call = self.call(at);
        let (request, objects) = self.sizes.request(call);
        let reply = if call.oneway { 0 } else { self.sizes.reply(call) };
        let mut served = Vec::new();
        if depth < MOST_NESTED {
            let mut since = call.received;
            for inner in self.inner.remove(&at).unwrap_or_default() {
                let (sent, free) = (self.call(inner).sent, self.call(inner).free);
                self.pause(call, since, sent, &mut served);
                let made = self.made(inner, depth + 1);
                add(&mut served, made);
                since = since.max(free);
            }
            self.pause(call, since, call.done, &mut served);
        } else {
            self.pause(call, call.received, call.done, &mut served);
            self.counted.deep += self.inner.remove(&at).map_or(0, |inner| inner.len() as u64);
        }
        let descriptors = call.descriptors.min(objects);
        let carries = Carries { descriptors, known_objects: objects - descriptors, ..Carries::default() };
        let to = self.place(call.callee);
        // A oneway call finds no room if the replay's receiver is slower than the original's: that is no reason to end.
        let expected = if call.oneway { Expected::Either } else { Expected::Taken };
        let oneway = call.oneway;
        Step::Call(Made { to, oneway, request, reply, carries, times: 1, expected, served })
    }

    /// Steps of the server of a call in a time without calls.
    fn pause(&self, call: &Call, since: u64, until: u64, steps: &mut Vec<Step>) {
        if let (Some(server), true) = (call.server, since < until) {
            let slices = self.selected.recording.threads.slices(server, since, until);
            pauses::of(&slices).into_iter().for_each(|step| add(steps, step));
        }
    }
}

/// Adds a step; a call like the one right before it is made once more by that.
fn add(steps: &mut Vec<Step>, step: Step) {
    if let (Some(Step::Call(last)), Step::Call(call)) = (steps.last_mut(), &step) {
        let times = std::mem::replace(&mut last.times, call.times);
        let is_alike = last == call;
        last.times = if is_alike { times.saturating_add(1) } else { times };
        if is_alike {
            return;
        }
    }
    steps.push(step);
}

/// Scheduling of a thread with this priority. A trace does not tell the two real-time classes apart.
fn scheduling(prio: Option<Prio>) -> Scheduling {
    let real_time = prio.and_then(Prio::rt_priority).and_then(|prio| u8::try_from(prio).ok());
    let nice = prio.and_then(Prio::nice).and_then(|nice| i8::try_from(nice).ok());
    match (real_time, nice) {
        (Some(prio), _) if prio > 0 => Scheduling::Fifo(prio.min(99)),
        (_, Some(nice)) => Scheduling::Nice(nice.clamp(-20, 19)),
        _ => Scheduling::Inherited,
    }
}

#[cfg(test)]
mod tests;
