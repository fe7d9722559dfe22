//! Room: one call as it is kept: six words, with all that is said of it later.
//! Not here: where they lie (`crate::board`), what they mean together (`super::tally`).

use record::{Class, Sched};

/// Words of a sample.
pub(super) const WORDS: usize = 6;

/// Into 24 bits.
pub(super) fn pack(sched: Sched) -> u64 {
    let nice = u64::from((sched.nice as i8).cast_unsigned());
    u64::from(sched.policy & 0xff) << 16 | u64::from(sched.priority & 0xff) << 8 | nice
}

/// Out of the lowest 24 bits.
pub(super) fn unpack(word: u64) -> Sched {
    let byte = |shift: u32| (word >> shift) as u8;
    Sched { policy: byte(16).into(), priority: byte(8).into(), nice: byte(0).cast_signed().into() }
}

/// What a service says of the thread that served a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Its number.
    pub(super) tid: u32,
    /// The CPU that it ran on.
    pub(super) cpu: u32,
    /// How it was scheduled, packed.
    pub(super) sched: u64,
    /// CPU time that it has used in its life, in ns.
    pub(super) cpu_ns: u64,
}

/// One call that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) class: Class,
    /// From its start, or the moment that was intended for it, to the reply; in clock units.
    pub(super) took: u64,
    /// From its start to the reply, in clock units.
    pub(super) lasted: u64,
    /// CPU time of the calling thread meanwhile, in ns.
    pub(super) caller_ns: u64,
    /// The caller's CPU before and after.
    pub(super) before: u32,
    pub(super) after: u32,
    /// Timers were to expire while it lasted, and by the caller's clock did not.
    pub(super) spared: bool,
    pub(super) answer: Answer,
}

const CPU_BITS: u32 = 16;
const CPU_MASK: u64 = (1 << CPU_BITS) - 1;

impl Sample {
    /// As it is kept.
    pub(super) fn words(&self) -> [u64; WORDS] {
        let cpus = [self.before, self.after, self.answer.cpu];
        let cpus = cpus.iter().fold(0, |word, cpu| word << CPU_BITS | u64::from(*cpu) & CPU_MASK);
        let class = u64::from(self.spared) << 1 | u64::from(self.class == Class::Fifo);
        let server = u64::from(self.answer.tid) << 32 | self.answer.sched & 0xff_ffff;
        [self.took, self.lasted, self.caller_ns, class << (3 * CPU_BITS) | cpus, server, self.answer.cpu_ns]
    }

    /// Reads what [`Self::words`] wrote.
    pub(super) fn of(words: &[u64; WORDS]) -> Self {
        let [took, lasted, caller_ns, cpus, server, cpu_ns] = *words;
        let cpu = |place: u32| (cpus >> (place * CPU_BITS) & CPU_MASK) as u32;
        let class = if cpus >> (3 * CPU_BITS) & 1 == 1 { Class::Fifo } else { Class::Other };
        let answer = Answer { tid: (server >> 32) as u32, cpu: cpu(0), sched: server & 0xff_ffff, cpu_ns };
        let spared = cpus >> (3 * CPU_BITS) & 2 != 0;
        Self { class, took, lasted, caller_ns, before: cpu(2), after: cpu(1), spared, answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_reads_back_as_kept() {
        for class in Class::BOTH {
            let sched = pack(Sched { policy: 1, priority: 99, nice: -20 });
            let answer = Answer { tid: 4_194_304, cpu: 1023, sched, cpu_ns: 1 << 40 };
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

    #[test]
    fn scheduling_fits_its_bits() {
        for (policy, priority) in [(0, 0), (1, 99), (2, 1), (3, 0), (5, 0), (6, 0), (42, 0)] {
            for nice in [-20, 0, 19] {
                let whole = Sched { policy, priority, nice };
                assert_eq!(unpack(pack(whole)), whole);
            }
        }
    }
}
