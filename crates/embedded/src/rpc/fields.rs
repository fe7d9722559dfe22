//! Binary form of each value in the messages.
//! Not here: the form of a whole message (`codec`).

use abi::layout::{ExtendedError, FlatBinderObject, NodeInfoForRef};

use super::codec::{Field, Malformed, Reader, Writer};
use super::objects::{LINEAGE_MAX, Lineage, Link, ProcId, RETURNS_MAX, Returns, Sched, ThreadKey};
use super::protocol::{Delivery, Transact};

/// Structures as their fields in order.
macro_rules! structures {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Field for $name {
            fn put(&self, to: &mut Writer) {
                $(self.$field.put(to);)*
            }
            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self { $($field: Field::take(from)?),* })
            }
        }
    )*};
}
structures! {
    ThreadKey { slot, generation }
    Sched { policy, priority, nice }
    Link { proc, thread }
    ExtendedError { id, command, param }
    FlatBinderObject { kind, flags, binder, cookie }
    NodeInfoForRef { handle, strong_count, weak_count, reserved1, reserved2, reserved3 }
    Transact {
        kind, code, flags, data_size, offsets_size, buffers_size, gathered, fault_object, fault_errno,
        data_fault, frees, out_of_turn, sched, lineage
    }
    Delivery {
        transaction, to_thread, from, ptr, cookie, node_flags, code, flags, sender_pid, sender_euid, buffer,
        data_size, offsets_size, extra_size, security_context, fds, sched, lineage
    }
}

impl Field for ProcId {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Field::take(from).map(Self)
    }
}

impl Field for Lineage {
    // A link is two words here: process, then slot and generation.
    fn put(&self, to: &mut Writer) {
        (self.links().len() as u64).put(to);
        for link in self.links() {
            link.proc.put(to);
            to.put(u64::from(link.thread.slot) << 32 | u64::from(link.thread.generation));
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = usize::try_from(from.take()?).map_err(|_| Malformed)?;
        if len > LINEAGE_MAX {
            return Err(Malformed);
        }
        let mut links = [Link { proc: ProcId(0), thread: ThreadKey::NOBODY }; LINEAGE_MAX];
        for link in &mut links[..len] {
            link.proc = Field::take(from)?;
            let word = from.take()?;
            link.thread = ThreadKey { slot: (word >> 32) as u32, generation: word as u32 };
        }
        Self::from_links(&links[..len]).ok_or(Malformed)
    }
}

impl Field for Returns {
    fn put(&self, to: &mut Writer) {
        (self.as_slice().len() as u64).put(to);
        for (word, payload) in self.as_slice() {
            word.put(to);
            payload.put(to);
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = from.take()?;
        if len > RETURNS_MAX as u64 {
            return Err(Malformed);
        }
        let mut returns = Self::default();
        for _ in 0..len {
            let word = Field::take(from)?;
            returns.push(word, Field::take(from)?);
        }
        Ok(returns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::Message;
    use super::super::protocol::{Item, Request, TransactKind};
    use super::*;

    fn long_lineage() -> Lineage {
        (0..20).fold(Lineage::EMPTY, |chain, n| {
            chain.behind(Link { proc: ProcId(n), thread: ThreadKey { slot: n + 1, generation: n + 2 } })
        })
    }

    #[test]
    fn the_longest_messages_come_back_as_they_went() {
        let thread = ThreadKey { slot: 3, generation: 9 };
        let transact = Transact {
            kind: TransactKind::SlotReply { channel: 1, call_slot: 2, thread, call_flags: 0x10 },
            code: u32::MAX,
            flags: 0x10,
            data_size: u64::MAX,
            offsets_size: 8,
            buffers_size: 16,
            gathered: 16,
            fault_object: u32::MAX,
            fault_errno: -7,
            data_fault: 14,
            frees: Some(u64::MAX - 7),
            out_of_turn: true,
            sched: Sched { policy: 1, priority: 99, nice: -20 },
            lineage: long_lineage(),
        };
        let request = Request::Transact { transact };
        assert_eq!(Request::decode(&request.encode()), Ok(request));
        let delivery = Delivery {
            transaction: 1,
            to_thread: Some(thread),
            from: Link { proc: ProcId(4), thread },
            ptr: u64::MAX,
            cookie: 1,
            node_flags: 0x813,
            code: 5,
            flags: 0x11,
            sender_pid: 77,
            sender_euid: 0,
            buffer: 8,
            data_size: 64,
            offsets_size: 8,
            extra_size: 16,
            security_context: Some(72),
            fds: 2,
            sched: Sched { policy: 0, priority: 19, nice: 19 },
            lineage: long_lineage(),
        };
        let item = Item::Deliver { delivery };
        assert_eq!(Item::decode(&item.encode()), Ok(item));
        let mut returns = Returns::default();
        while returns.push(u32::MAX, [1, 2]) {}
        let item = Item::Answer {
            thread,
            seq: 1,
            errno: 22,
            outcome: 3,
            sender_stops: true,
            transaction: 4,
            error: ExtendedError { id: 1, command: 2, param: -22 },
            words: [1, 2, 3, 4],
            returns,
        };
        assert_eq!(Item::decode(&item.encode()), Ok(item));
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        assert_eq!(Request::decode(&[]), Err(Malformed));
        assert_eq!(Request::decode(&99u64.to_ne_bytes()), Err(Malformed));
        let mut bytes = Request::FreeBuffer { offset: 8 }.encode();
        assert!(Request::decode(&bytes[..15]).is_err(), "cut inside a field");
        bytes = Request::SpamDetection { enable: true }.encode();
        bytes[8] = 2;
        assert_eq!(Request::decode(&bytes), Err(Malformed), "neither true nor false");
    }

    #[test]
    fn a_chain_too_long_keeps_its_nearest() {
        let chain = long_lineage();
        assert_eq!(chain.links().len(), LINEAGE_MAX);
        assert_eq!(chain.links()[0].proc, ProcId(19));
        assert_eq!(chain.find(ProcId(4)), Some(ThreadKey { slot: 5, generation: 6 }));
        assert_eq!(chain.find(ProcId(3)), None);
    }
}
