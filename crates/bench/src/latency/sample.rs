//! Sample of one call: six words, from which all its figures derive.
//! Not here: their memory (`procgroup::block`), the figures (`super::tally`).

use record::Class;

/// Words of a sample.
pub(super) const WORDS: usize = 6;

/// Bit of [`ServerFacts::sched`]: a fault of the service was to delay the call, and by its own clocks did not.
pub(super) const SPARED: u64 = 1 << 24;

/// A service's report on the thread that served a call; all zero if it made none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerFacts {
    /// Number of the thread.
    pub(super) tid: u32,
    /// CPU that it ran on.
    pub(super) cpu: u32,
    /// Its scheduling, packed, and [`SPARED`].
    pub(super) sched: u64,
    /// CPU time since its start, in ns.
    pub(super) cpu_ns: u64,
}

impl ServerFacts {
    /// Returns true if the service reported.
    pub(super) fn is_told(self) -> bool {
        self.tid != 0
    }

    /// Returns true if a fault of the service failed to delay the call.
    pub(super) fn is_spared(self) -> bool {
        self.sched & SPARED != 0
    }
}

/// One completed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) class: Class,
    /// Time from its start, or its intended start, to the reply; in clock units.
    pub(super) took: u64,
    /// Time from its start to the reply, in clock units.
    pub(super) lasted: u64,
    /// CPU time of the calling thread meanwhile, in ns.
    pub(super) caller_ns: u64,
    /// CPU of the caller before and after.
    pub(super) before: u32,
    pub(super) after: u32,
    /// Timers were to expire during the call, and by the caller's clock did not; or [`ServerFacts::is_spared`].
    pub(super) spared: bool,
    pub(super) answer: ServerFacts,
}

const CPU_BITS: u32 = 16;
const CPU_MASK: u64 = (1 << CPU_BITS) - 1;

/// A completed call with its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) sample: Sample,
    /// Whether tracing was stopped because of this call.
    pub(super) stopped_tracing: bool,
    /// Whether the trace contains the mark of the miss: not if another pair's miss stopped tracing just
    /// before.
    pub(super) marked: bool,
}

impl Sample {
    /// Encodes the sample.
    pub(super) fn words(&self) -> [u64; WORDS] {
        let cpus = [self.before, self.after, self.answer.cpu];
        let cpus = cpus.iter().fold(0, |word, cpu| word << CPU_BITS | u64::from(*cpu) & CPU_MASK);
        let class = u64::from(self.spared) << 1 | u64::from(self.class == Class::Fifo);
        let server = u64::from(self.answer.tid) << 32 | self.answer.sched & 0xff_ffff;
        [self.took, self.lasted, self.caller_ns, class << (3 * CPU_BITS) | cpus, server, self.answer.cpu_ns]
    }

    /// Decodes the words of [`Self::words`].
    pub(super) fn of(words: &[u64; WORDS]) -> Self {
        let [took, lasted, caller_ns, cpus, server, cpu_ns] = *words;
        let cpu = |place: u32| (cpus >> (place * CPU_BITS) & CPU_MASK) as u32;
        let class = if cpus >> (3 * CPU_BITS) & 1 == 1 { Class::Fifo } else { Class::Other };
        let answer =
            ServerFacts { tid: (server >> 32) as u32, cpu: cpu(0), sched: server & 0xff_ffff, cpu_ns };
        let spared = cpus >> (3 * CPU_BITS) & 2 != 0;
        Self { class, took, lasted, caller_ns, before: cpu(2), after: cpu(1), spared, answer }
    }
}

#[cfg(test)]
mod tests {
    use record::Sched;

    use super::*;
    use crate::scheduling::pack;

    #[test]
    fn a_sample_reads_back_as_kept() {
        for class in Class::BOTH {
            let sched = pack(Sched { policy: 1, priority: 99, nice: -20 });
            let answer = ServerFacts { tid: 4_194_304, cpu: 1023, sched, cpu_ns: 1 << 40 };
            let sample = Sample {
                class,
                took: 1 << 41,
                lasted: 1 << 39,
                caller_ns: 77,
                before: 512,
                after: 0,
                spared: class == Class::Other,
                answer,
            };
            assert_eq!(Sample::of(&sample.words()), sample);
        }
    }
}
