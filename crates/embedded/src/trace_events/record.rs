//! One event of a call as words in memory that other processes may write.
//! Not here: where it is kept (`records`).
//!
//! A record counts if its first word is the check of the others and of its place. So a record that was written in part,
//! overwritten while it was read, or damaged is refused as a whole, whatever the order of the stores.

use super::{CallEvent, CodeAndFlags, Sent, TaskId};

/// Words of a record.
pub(super) const WORDS: usize = 12;

/// Kinds of events. None is 0, so that untouched memory is no record.
const CALL: u32 = 1;
const REPLY: u32 = 2;
const RECEIVED: u32 = 3;

/// An event with its circumstances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Nanoseconds of the trace's clock.
    pub(super) ts: u64,
    /// CPU; below 2^24.
    pub(super) cpu: u32,
    pub(super) writer: TaskId,
    pub(super) event: CallEvent,
}

impl Record {
    /// The words of the record at this place.
    pub(super) fn encode(&self, place: u32) -> [u32; WORDS] {
        let Self { ts, cpu, writer, event } = self;
        let (kind, sent) = match event {
            CallEvent::Transaction(sent) => (if sent.reply { REPLY } else { CALL }, *sent),
            CallEvent::Received(number) => (RECEIVED, Sent { number: *number, ..NOBODY }),
        };
        let Sent { number, node, to, what, .. } = sent;
        let body = [
            *ts as u32,
            (*ts >> 32) as u32,
            cpu << 8 | kind,
            writer.pid,
            writer.tid,
            number,
            node,
            to.pid,
            to.tid,
            what.flags,
            what.code,
        ];
        let mut words = [0; WORDS];
        words[0] = check(place, &body);
        words[1..].copy_from_slice(&body);
        words
    }

    /// The record with these words at this place; `None` if there is none.
    pub(super) fn decode(place: u32, words: [u32; WORDS]) -> Option<Self> {
        let [sum, body @ ..] = words;
        if check(place, &body) != sum {
            return None;
        }
        let [low, high, kind_and_cpu, pid, tid, number, node, to_pid, to_tid, flags, code] = body;
        let to = TaskId { pid: to_pid, tid: to_tid };
        let sent = |reply| {
            CallEvent::Transaction(Sent { number, node, to, reply, what: CodeAndFlags { flags, code } })
        };
        let event = match kind_and_cpu & 0xff {
            CALL => sent(false),
            REPLY => sent(true),
            RECEIVED => CallEvent::Received(number),
            _ => return None,
        };
        let ts = u64::from(high) << 32 | u64::from(low);
        Some(Self { ts, cpu: kind_and_cpu >> 8, writer: TaskId { pid, tid }, event })
    }
}

/// Fields that an event does not have.
const NOBODY: Sent = Sent {
    number: 0,
    node: 0,
    to: TaskId { pid: 0, tid: 0 },
    reply: false,
    what: CodeAndFlags { flags: 0, code: 0 },
};

/// Sum over a record and its place. Each step is reversible, so that one changed word always changes the 64-bit sum.
fn check(place: u32, body: &[u32; WORDS - 1]) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let sum = body
        .iter()
        .fold(u64::from(place) ^ ODD, |sum, word| (sum ^ u64::from(*word)).wrapping_mul(ODD).rotate_left(29));
    (sum >> 32) as u32 ^ sum as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(rng: &mut fastrand::Rng) -> Record {
        let sent = Sent {
            number: rng.u32(..),
            node: rng.u32(..),
            to: TaskId { pid: rng.u32(..), tid: rng.u32(..) },
            reply: rng.bool(),
            what: CodeAndFlags { flags: rng.u32(..), code: rng.u32(..) },
        };
        let event = if rng.bool() { CallEvent::Transaction(sent) } else { CallEvent::Received(sent.number) };
        let writer = TaskId { pid: rng.u32(..), tid: rng.u32(..) };
        Record { ts: rng.u64(..), cpu: rng.u32(..1 << 24), writer, event }
    }

    #[test]
    fn a_record_comes_back_from_its_own_place_only() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let (record, place) = (any(&mut rng), rng.u32(..));
            let words = record.encode(place);
            assert_eq!(Record::decode(place, words), Some(record));
            for other in [place.wrapping_add(1), place.wrapping_add(8192), rng.u32(..)] {
                let found = Record::decode(other, words);
                assert!(other == place || found.is_none(), "{words:x?} at {other} instead of {place}");
            }
        }
    }

    #[test]
    fn damage_and_mixtures_are_refused() {
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..10_000 {
            let place = rng.u32(..);
            let words = any(&mut rng).encode(place);
            let mut damaged = words;
            damaged[rng.usize(..WORDS)] ^= 1 << rng.u32(..32);
            assert_eq!(Record::decode(place, damaged), None, "{words:x?} as {damaged:x?}");
            // Half of it is of the record that was there a round before.
            let before = any(&mut rng).encode(place.wrapping_sub(8192));
            let mut mixed = words;
            let cut = rng.usize(1..WORDS - 1);
            mixed[cut..].copy_from_slice(&before[cut..]);
            // Two events without the same fields may have the same end.
            assert!(mixed == words || Record::decode(place, mixed).is_none(), "{mixed:x?}");
            assert_eq!(Record::decode(place, [0; WORDS]), None, "untouched memory");
        }
    }

    #[test]
    fn whatever_else_is_there_is_no_panic() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..100_000 {
            let place = rng.u32(..);
            let mut words: [u32; WORDS] = std::array::from_fn(|_| rng.u32(..));
            Record::decode(place, words);
            // With a right check, as only a hostile process writes it.
            let [_, body @ ..] = words;
            words[0] = check(place, &body);
            if let Some(record) = Record::decode(place, words) {
                assert!(!record.event.to_string().contains('\n'), "{record:?}");
            }
        }
    }
}
