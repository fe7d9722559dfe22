//! Tests of scattered buffers through call slots, from the command at one end to the pointers at the other.
//! Not here: all rules (`conformance`, the model in `tests/`).

use abi::codes::object;
use abi::layout::{BufferObject, FdObject, FlatBinderObject};
use abi::{Commands, Delivery, Payload, Return, TransactionFlags};
use zerocopy::{FromBytes, IntoBytes};

use super::{call_of, header, reply_of, there_and_back};
use crate::EmbeddedConnection;
use crate::fuzz::stage::{Stage, drain, read, wait_for, write};
use crate::payload::scatter::Layout;
use crate::payload::shape::{MOST_ELEMENTS, ShapeError};
use crate::shm::Corrupt;
use crate::shm::call_slot::{CALL_SLOTS, CLOSED, CallSlots, LARGEST, Shape, Source};
use crate::shm::doorbell::Doorbells;
use driver::connection::{Connection, Exchange};

/// A vector as HIDL sends it: a head that points to the elements. The head is not at offset 0, where it could
/// not be a parent (contract OBJ-18).
pub(super) struct Vector {
    data: Vec<u8>,
    head: [u64; 2],
    pub(super) elements: Vec<u8>,
}

const OFFSETS: [u64; 2] = [8, 48];

/// Most elements that call slots carry packed.
const PACKED_MOST: usize = MOST_ELEMENTS as usize;

fn pointer(buffer: u64, length: u64, parent: Option<(u64, u64)>) -> BufferObject {
    let flags = if parent.is_some() { object::BUFFER_FLAG_HAS_PARENT } else { 0 };
    let (parent, parent_offset) = parent.unwrap_or_default();
    BufferObject { kind: object::PTR, flags, buffer, length, parent, parent_offset }
}

impl Vector {
    pub(super) fn new(len: usize) -> Box<Self> {
        let elements = (0..len).map(|at| (at * 7 + at / 251) as u8).collect();
        // Boxed before anything points to it, so that it does not move.
        let mut made = Box::new(Self { data: vec![0x55; 8], head: [0xdead, len as u64], elements });
        let head = pointer(made.head.as_ptr() as u64, 16, None);
        let elements = pointer(made.elements.as_ptr() as u64, len as u64, Some((0, 0)));
        made.data.extend_from_slice(head.as_bytes());
        made.data.extend_from_slice(elements.as_bytes());
        made
    }

    /// Adds data at the end: call slots then carry it unpacked, and unaligned ends occur.
    fn and_more(mut self: Box<Self>) -> Box<Self> {
        self.data.push(9);
        self
    }

    fn buffers_size(&self) -> u64 {
        16 + (self.elements.len() as u64).next_multiple_of(8)
    }

    /// Passes the payload of a command, and the part of it that the caller vouches for, to `then`.
    pub(super) fn with<T>(&self, vouched: Vouch, then: impl FnOnce(Payload<'_>, Payload<'_>) -> T) -> T {
        let buffers: [&[u8]; 2] = [self.head.as_bytes(), &self.elements];
        let backwards = [buffers[1], buffers[0]];
        let command = Payload {
            data: &self.data,
            offsets: &OFFSETS,
            buffers_size: Some(self.buffers_size()),
            buffers: &buffers,
        };
        let vouched = match vouched {
            Vouch::All => command,
            Vouch::Backwards => Payload { buffers: &backwards, ..command },
            Vouch::OneBuffer => Payload { buffers: &buffers[1..], ..command },
            Vouch::NoData => Payload { data: &[], ..command },
            Vouch::Nothing => Payload::default(),
        };
        then(command, vouched)
    }

    /// Writes a command that carries the vector.
    fn send(
        &self,
        connection: &EmbeddedConnection,
        vouch: Vouch,
        fill: impl FnOnce(&mut Commands, Payload<'_>),
    ) {
        self.with(vouch, |command, vouched| {
            let mut commands = Commands::default();
            fill(&mut commands, command);
            let mut exchange = Exchange::new(commands.as_bytes(), &mut []).with_payload(vouched);
            connection.write_read_uninterrupted(&mut exchange).expect("a sane command");
            assert!(exchange.all_written());
        });
    }

    /// Asserts that the vector arrived and points to its own location.
    fn check(&self, connection: &EmbeddedConnection, delivery: &Delivery) {
        let lent = |address, len| connection.lent(address, len).expect("lent");
        let data = lent(delivery.buffer.0, delivery.data_size);
        assert_eq!((data.len(), data[..8].to_vec()), (self.data.len(), vec![0x55; 8]));
        assert_eq!(
            (lent(delivery.offsets, delivery.offsets_size), &data[88..]),
            (OFFSETS.as_bytes(), &self.data[88..])
        );
        let objects = [8, 48].map(|at| BufferObject::read_from_prefix(&data[at..]).expect("whole").0);
        let [head, elements] = objects.map(|object| lent(object.buffer, object.length));
        assert_eq!(head, [objects[1].buffer, self.elements.len() as u64].as_bytes(), "the head");
        assert!(elements == self.elements, "the elements");
        assert_eq!(objects[0].buffer, delivery.offsets + 16, "behind the offsets");
        assert_eq!(objects[1].buffer, objects[0].buffer + 16);
    }
}

/// The parts that a caller still has at hand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Vouch {
    All,
    Backwards,
    OneBuffer,
    NoData,
    Nothing,
}

const VOUCHES: [Vouch; 5] = [Vouch::All, Vouch::Backwards, Vouch::OneBuffer, Vouch::NoData, Vouch::Nothing];

/// Number of requests to the broker for which the connection's threads have waited.
fn requests(connection: &EmbeddedConnection) -> u32 {
    let mut state = connection.process_for_tests().state.lock();
    state.core.slots().into_iter().map(|slot| state.core.thread(slot).seq).sum()
}

#[test]
fn scattered_buffers_go_there_and_back_without_the_broker() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    let (victim, other) = (&pair.victim, &pair.other);
    // The first call opens the channel, although only scattered buffers are sent.
    let vector = Vector::new(3);
    vector.send(victim, Vouch::All, |c, payload| {
        c.transaction(pair.to_other, 5, TransactionFlags::CALL, payload);
    });
    let first = call_of(other);
    vector.send(other, Vouch::All, |c, payload| c.reply(TransactionFlags::default(), payload));
    write(other, |c| c.free_buffer(first.buffer));
    let reply = reply_of(victim);
    write(victim, |c| c.free_buffer(reply.buffer));
    drain(other);
    let before = [requests(victim), requests(other)];
    for size in [0, 1, 4, 300, 5000, PACKED_MOST, PACKED_MOST + 1, 65_536, LARGEST - 8 - 88 - 16 - 16] {
        for (vouch, more) in VOUCHES.into_iter().flat_map(|vouch| [(vouch, false), (vouch, true)]) {
            let vector = Vector::new(size);
            let vector = if more { vector.and_more() } else { vector };
            vector.send(victim, vouch, |c, payload| {
                c.transaction(pair.to_other, 5, TransactionFlags::CALL, payload);
            });
            let call = call_of(other);
            vector.check(other, &call);
            vector.send(other, vouch, |c, payload| c.reply(TransactionFlags::default(), payload));
            write(other, |c| c.free_buffer(call.buffer));
            let reply = reply_of(victim);
            vector.check(victim, &reply);
            write(victim, |c| c.free_buffer(reply.buffer));
            drain(other);
        }
    }
    assert_eq!([requests(victim), requests(other)], before, "nobody asked the broker");
    // Control: the counter does see requests.
    let longer = Vector::new(LARGEST - 88 - 16 - 16).and_more();
    longer.send(victim, Vouch::All, |c, payload| {
        c.transaction(pair.to_other, 5, TransactionFlags::CALL, payload);
    });
    longer.check(other, &call_of(other));
    assert_eq!(requests(victim), before[0] + 1, "one byte too many for a call slot");
}

#[test]
fn what_breaks_a_rule_is_refused_and_the_call_slot_stays() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    let head = [0u64; 2];
    let child = |parent, offset| pointer(head.as_ptr() as u64, 8, Some((parent, offset)));
    let bad: [(&str, BufferObject, i32); 5] = [
        ("a parent that comes later", child(1, 0), 22),
        ("a place not wholly in its parent", child(0, 9), 22),
        ("longer than was asked for", pointer(head.as_ptr() as u64, 17, None), 22),
        ("nothing at that address", pointer(8, 8, None), 14),
        ("no such object", BufferObject { kind: 77, ..child(0, 0) }, 22),
    ];
    for (what, second, errno) in bad {
        let mut data = vec![0; 8];
        data.extend_from_slice(pointer(head.as_ptr() as u64, 16, None).as_bytes());
        data.extend_from_slice(second.as_bytes());
        let payload =
            Payload { data: &data, offsets: &OFFSETS, buffers_size: Some(32), buffers: &[head.as_bytes()] };
        let mut commands = Commands::default();
        commands.transaction(pair.to_other, 5, TransactionFlags::CALL, payload);
        let mut exchange = Exchange::new(commands.as_bytes(), &mut []).with_payload(payload);
        pair.victim.write_read_uninterrupted(&mut exchange).expect("a refusal is no error");
        let got = read(&pair.victim);
        assert!(got.iter().any(|item| matches!(item, Return::FailedReply)), "{what}: {got:?}");
        assert_eq!(pair.victim.extended_error().expect("told").param, -errno, "{what}");
    }
    let gates = pair
        .other
        .take_channels()
        .into_iter()
        .map(|[call_slots, _]| CallSlots::new(call_slots).expect("room").gate());
    assert_eq!(gates.collect::<Vec<_>>(), [0, 0]);
}

/// A payload as published by a hostile sender.
struct Raw {
    shape: Shape,
    bytes: Vec<u8>,
}

impl Raw {
    /// A payload of these objects, with `scattered` units of scattered bytes.
    fn of(objects: &[&[u8]], scattered: u16) -> Self {
        let (mut bytes, mut offsets) = (vec![0; 8], Vec::new());
        for object in objects {
            offsets.push(bytes.len() as u64);
            bytes.extend_from_slice(object);
        }
        let layout = Layout::of(bytes.len() as u64, objects.len() as u64 * 8, 0).expect("small");
        let end = layout.scattered + u64::from(scattered) * 8;
        let shape = Shape::of(&layout, end).expect("small");
        bytes.extend_from_slice(offsets.as_bytes());
        bytes.resize(shape.len(), 3);
        Self { shape, bytes }
    }
}

impl Source for Raw {
    fn shape(&self) -> Result<Shape, ShapeError> {
        Ok(self.shape)
    }

    fn parts(&self, mut give: impl FnMut(usize, &[u8])) {
        give(0, &self.bytes);
    }
}

#[test]
fn a_peer_that_sends_what_no_library_would_loses_its_channel_and_nothing_else() {
    let first = pointer(0, 16, None);
    let second = |parent| pointer(0, 8, Some(parent));
    let fd = FdObject { kind: object::FD, ..Default::default() };
    let node = FlatBinderObject { kind: object::BINDER, binder: 1, ..Default::default() };
    let both = |second: BufferObject| Raw::of(&[first.as_bytes(), second.as_bytes()], 3);
    let mut out_of_order = both(second((0, 0)));
    let at = out_of_order.shape.layout().offsets as usize;
    out_of_order.bytes[at + 8..at + 16].copy_from_slice(&8u64.to_ne_bytes());
    let mut without_data = Raw::of(&[first.as_bytes()], 2);
    let layout = Layout::of(0, 8, 16).expect("small");
    without_data.shape = Shape::of(&layout, layout.end).expect("small");
    without_data.bytes.truncate(without_data.shape.len());
    let cases = [
        ("a descriptor", Raw::of(&[fd.as_bytes()], 0)),
        ("a node", Raw::of(&[node.as_bytes()], 0)),
        ("more bytes than came", Raw::of(&[first.as_bytes()], 1)),
        ("a length without end", Raw::of(&[pointer(0, u64::MAX, None).as_bytes()], 2)),
        ("a parent that comes later", both(second((1, 0)))),
        ("a parent that is none", both(second((9, 0)))),
        ("a pointer that leaves its parent", both(second((0, 9)))),
        ("a pointer far away", both(second((0, u64::MAX - 7)))),
        ("an object twice", out_of_order),
        ("an object cut short", Raw::of(&[&first.as_bytes()[..20]], 2)),
        ("objects without data", without_data),
        ("buffers without objects", Raw::of(&[], 2)),
    ];
    let stage = Stage::new();
    for (number, (what, raw)) in cases.iter().enumerate() {
        let pair = stage.pair(number as u32);
        there_and_back(&pair);
        let mut reasons = Vec::new();
        for [call_slots, bells] in pair.other.take_channels() {
            let (call_slots, bells) =
                (CallSlots::new(call_slots).expect("room"), Doorbells::new(bells).expect("room"));
            let call = call_slots.publish(CALL_SLOTS - 1, &header(), raw).expect("idle");
            (0..2).for_each(|bit| bells.post(bit));
            pair.victim.poll_readable(0).expect("looks");
            let got = read(&pair.victim);
            assert!(!got.iter().any(|item| matches!(item, Return::Transaction(_))), "{what}: {got:?}");
            reasons.extend((call_slots.gate() & CLOSED != 0).then(|| call_slots.reason()));
            call_slots.release(call);
        }
        assert_eq!(reasons, [Corrupt::Objects.code()], "{what}");
        // Later calls go through the broker.
        write(&pair.other, |c| {
            c.transaction(pair.to_victim, 6, TransactionFlags::ONEWAY, Payload::default());
        });
        let call = call_of(&pair.victim);
        assert_eq!(call.code, 6, "{what}");
        let vector = Vector::new(40);
        vector.send(&pair.other, Vouch::All, |c, payload| {
            c.transaction(pair.to_victim, 7, TransactionFlags::CALL, payload);
        });
        let call = wait_for(&pair.victim, |item| match item {
            Return::Transaction(call) => Some(call),
            _ => None,
        });
        vector.check(&pair.victim, &call);
    }
}
