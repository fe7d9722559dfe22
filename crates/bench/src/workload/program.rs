//! A load with its calls numbered: what all of its processes know of it.
//! Not here: the description (crate `workload`), carrying it out (`actor`, `service`).

use workload::description::{Call, Process, Scheduling, Step, Turns};
use workload::text::MEASURING;
use workload::{Workload, description};

/// Bits of a transaction code that are the number of the calling copy.
const COPY_BITS: u32 = 14;
/// The number that asks for objects in place of a call of the load.
const FETCH: usize = (1 << (u32::BITS - COPY_BITS)) - 1;

/// Number of the first bytes of a request of a thread that numbers its oneway calls: its own number, not 0, and that of the call.
pub(crate) const STAMP: usize = 8;

/// A step, with the number of its call.
#[derive(Debug)]
pub(crate) enum Act {
    Call(usize),
    Other(Step),
}

/// A call of the load; all processes know it by its index.
#[derive(Debug)]
pub(crate) struct Site {
    /// The call, without the receiver's steps.
    pub(crate) call: Call,
    /// Index of the process that makes it.
    pub(crate) from: usize,
    /// Index of its pair of processes in [`Program::pairs`].
    pub(crate) pair: usize,
    pub(crate) served: Vec<Act>,
}

/// Calls from one process to another, two-way or oneway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) oneway: bool,
}

/// A thread of each copy of a process.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) process: usize,
    pub(crate) scheduling: Scheduling,
    pub(crate) turns: Turns,
    pub(crate) acts: Vec<Act>,
}

/// The steps of the measuring process.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) once: Vec<Act>,
    pub(crate) before: Vec<Act>,
    pub(crate) measure: Vec<Act>,
    pub(crate) after: Vec<Act>,
}

/// A load with numbers.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) processes: Vec<Process>,
    pub(crate) sites: Vec<Site>,
    /// Ordered by the first call.
    pub(crate) pairs: Vec<Pair>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) measured: Measured,
    /// The process that measures; an index beyond the others where it is not called.
    pub(crate) measuring: usize,
    /// Bytes of the largest request or reply.
    pub(crate) largest: usize,
}

/// Meaning of a transaction code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A call of the load, on behalf of the copy with this number.
    Call(usize, u32),
    /// Objects, as many as the request says.
    Objects,
}

impl Program {
    /// Numbers the calls of a load.
    ///
    /// # Errors
    /// It has too many calls, or calls a process that has no copies.
    pub(crate) fn new(workload: &Workload) -> Result<Self, String> {
        let Workload { processes, threads, measured, .. } = workload;
        let is_measuring = |process: &Process| process.name == MEASURING;
        let measuring = processes.iter().position(is_measuring).unwrap_or(processes.len());
        let mut program = Self {
            processes: processes.clone(),
            sites: Vec::new(),
            pairs: Vec::new(),
            threads: Vec::new(),
            measured: Measured::default(),
            measuring,
            largest: 0,
        };
        for description::Thread { process, scheduling, turns, steps } in threads {
            let acts = program.number(*process, steps)?;
            program.threads.push(Thread { process: *process, scheduling: *scheduling, turns: *turns, acts });
        }
        if let Some(description::Measured { once, before, measure, after }) = measured {
            program.measured = Measured {
                once: program.number(measuring, once)?,
                before: program.number(measuring, before)?,
                measure: program.number(measuring, measure)?,
                after: program.number(measuring, after)?,
            };
        }
        Ok(program)
    }

    fn number(&mut self, from: usize, steps: &[Step]) -> Result<Vec<Act>, String> {
        let numbered = |step: &Step| {
            let Step::Call(call) = step else { return Ok(Act::Other(step.clone())) };
            let is_none = |process: usize| self.processes.get(process).is_some_and(|found| found.copies == 0);
            if is_none(call.to) && !is_none(from) {
                let name = self.processes.get(call.to).map_or("", |process| &process.name);
                return Err(format!("a call goes to {name}, of which there are no copies"));
            }
            let number = self.sites.len();
            if number >= FETCH {
                return Err(format!("the load has more than {FETCH} calls"));
            }
            let alone = Call { served: Vec::new(), ..call.clone() };
            self.largest = self.largest.max(call.request.max(call.reply) as usize);
            let pair = self.pair(Pair { from, to: call.to, oneway: call.oneway });
            self.sites.push(Site { call: alone, from, pair, served: Vec::new() });
            self.sites[number].served = self.number(call.to, &call.served)?;
            Ok(Act::Call(number))
        };
        steps.iter().map(numbered).collect()
    }

    /// Index of a pair, which is added if it is new.
    fn pair(&mut self, pair: Pair) -> usize {
        self.pairs.iter().position(|known| *known == pair).unwrap_or_else(|| {
            self.pairs.push(pair);
            self.pairs.len() - 1
        })
    }

    /// Whether the measuring process has the kernel take unused pages.
    pub(crate) fn reclaims(&self) -> bool {
        let Measured { once, before, measure, after } = &self.measured;
        let acts = [once, before, measure, after].into_iter().flatten();
        acts.into_iter().any(|act| matches!(act, Act::Other(Step::Reclaim)))
    }

    /// Bytes of the largest request that these steps send.
    pub(crate) fn largest_request(&self, acts: &[Act]) -> usize {
        let requests = acts.iter().filter_map(|act| match act {
            Act::Call(site) => Some(self.sites[*site].call.request as usize),
            Act::Other(_) => None,
        });
        requests.max().unwrap_or(0)
    }

    /// Processes that are started, with the number of their copies.
    pub(crate) fn started(&self) -> impl Iterator<Item = (usize, u32)> {
        let copies = self.processes.iter().map(|process| process.copies).enumerate();
        copies.filter(|(process, _)| *process != self.measuring)
    }

    /// Processes that a process calls, each once.
    pub(crate) fn called_by(&self, process: usize) -> Vec<usize> {
        let mine = self.sites.iter().filter(|site| site.from == process);
        let mut called: Vec<usize> = mine.map(|site| site.call.to).collect();
        called.sort_unstable();
        called.dedup();
        called
    }

    /// Threads that wait for a release, in all copies of a process.
    pub(crate) fn released(&self, process: usize) -> u32 {
        let wait = |thread: &&Thread| thread.process == process && thread.turns == Turns::OnRelease;
        let threads = self.threads.iter().filter(wait).count() as u32;
        threads.saturating_mul(self.processes.get(process).map_or(0, |process| process.copies))
    }
}

/// The transaction code of a call that a copy with this number makes, or that is made on its behalf.
pub(crate) fn code(site: usize, copy: u32) -> u32 {
    // Both are within their limits (`Program::new`, the parser's limit of copies).
    (site as u32) << COPY_BITS | copy & ((1 << COPY_BITS) - 1)
}

/// The transaction code that asks for objects.
pub(crate) fn fetch_code() -> u32 {
    code(FETCH, 0)
}

pub(crate) fn decode(code: u32) -> Asked {
    match (code >> COPY_BITS) as usize {
        FETCH => Asked::Objects,
        site => Asked::Call(site, code & ((1 << COPY_BITS) - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_numbered_from_the_outside_in() {
        let text = "binderperf workload 1\nprocess a copies 2\nprocess b\nprocess measuring\n\
            thread a on-release\n  call b 4>8\n    work 1us\n    call a 300>4\n  oneway b 5\nmeasure\n  call a 1>1\n";
        let program = Program::new(&workload::text::parse(text).expect("valid")).expect("numbered");
        let sites: Vec<_> = program.sites.iter().map(|site| (site.from, site.call.to)).collect();
        assert_eq!(sites, [(0, 1), (1, 0), (0, 1), (2, 0)]);
        assert!(matches!(program.sites[0].served[..], [Act::Other(Step::Work(1000)), Act::Call(1)]));
        assert_eq!(
            (program.largest, program.measuring, program.released(0), program.released(1)),
            (300, 2, 2, 0)
        );
        assert_eq!(
            (program.called_by(0), program.called_by(1), program.called_by(2)),
            (vec![1], vec![0], vec![0])
        );
        assert_eq!(program.started().collect::<Vec<_>>(), [(0, 2), (1, 1)]);
    }

    #[test]
    fn codes_carry_the_call_and_the_caller() {
        for (site, copy) in [(0, 0), (7, 9999), (FETCH - 1, 16_383)] {
            assert_eq!(decode(code(site, copy)), Asked::Call(site, copy));
        }
        assert_eq!(decode(fetch_code()), Asked::Objects);
    }

    #[test]
    fn a_call_to_nobody_is_refused() {
        let text = "binderperf workload 1\nprocess a copies 0\nprocess b\nthread b\n  call a 4>4\n";
        let error = Program::new(&workload::text::parse(text).expect("valid")).expect_err("nobody");
        assert!(error.contains("no copies"), "{error}");
        let nor_from_anybody = text.replace("process b", "process b copies 0");
        Program::new(&workload::text::parse(&nor_from_anybody).expect("valid")).expect("nobody calls");
    }
}
