//! Receives a payload from a call slot into the receiving area.
//! Facts: contract BUF-01, BUF-07, OBJ-15 to OBJ-18.

use abi::layout::TransactionData;

use super::active_thread::ActiveThread;
use super::arena::Arriving;
use super::channel::Channel;
use super::core::slot_call::{SlotCall, SlotTicket};
use super::placements::Lent;
use super::{Process, State};
use crate::shm::Corrupt;
use crate::shm::call_slot::{LARGEST, PayloadRange, ReplyHeader, Shape};
use crate::shm::lease::Tag;

/// Smallest payload, in bytes, that is copied without the lock: releasing it costs more than a smaller copy.
const LARGE: usize = 16 << 10;

/// A payload in a call slot, by the message that it belongs to.
#[derive(Clone, Copy)]
pub(super) enum Incoming<'c> {
    Request(&'c SlotCall),
    Reply(&'c SlotTicket, &'c ReplyHeader),
}

impl Incoming<'_> {
    fn channel(&self) -> &Channel {
        match self {
            Self::Request(call) => &call.channel,
            Self::Reply(ticket, _) => &ticket.channel,
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Request(call) => call.request.header.shape,
            Self::Reply(_, header) => header.shape,
        }
    }

    fn range(&self) -> PayloadRange {
        match self {
            Self::Request(call) => call.request.payload_range(),
            Self::Reply(ticket, header) => ticket.call.reply_range(header.shape.sent()),
        }
    }

    fn tag(&self) -> Tag {
        match self {
            Self::Request(call) => call.node.tag,
            Self::Reply(..) => Tag::default(),
        }
    }

    fn lent(&self) -> Lent {
        match self {
            Self::Request(call) => Lent::of(call.request.header.flags, Some(call.node.pin)),
            Self::Reply(_, header) => Lent::of(header.flags, None),
        }
    }

    /// Copies the payload into the receiving area and returns the layout of its parts. A large one is copied
    /// without the lock.
    pub(super) fn receive(self, thread: &mut ActiveThread<'_>) -> Result<TransactionData, ReceiveError> {
        let process = thread.process;
        let arriving = Arriving::new(self.shape());
        let layout = arriving.layout;
        let arena = process.arena().ok_or(ReceiveError::NoArea)?;
        let offset = thread.state.placements.place(&arena.lease(), layout.end, self.tag());
        let offset = offset.ok_or(ReceiveError::NoRoom)?;
        if !thread.state.placements.has_plenty() {
            thread.state.show_room(process);
        }
        let (memory, range) = (self.channel().call_slots.memory(), self.range());
        let copy = || {
            arena.take_in(memory, range, offset, &arriving);
            arena.settle(offset, &arriving)
        };
        let copied = if range.len >= LARGE { thread.unlocked(|_| copy()) } else { copy() };
        if let Err(corrupt) = copied {
            thread.state.free_placed(process, offset);
            return Err(ReceiveError::Corrupt(corrupt));
        }
        thread.state.placements.lend(offset, self.lent());
        let buffer = arena.base() + offset;
        Ok(TransactionData {
            data_size: layout.data_size,
            offsets_size: layout.offsets_size,
            buffer,
            offsets: buffer + layout.offsets,
            ..TransactionData::default()
        })
    }
}

/// Reason for not receiving a payload.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReceiveError {
    /// The receiving area was given up (contract OPN-10).
    NoArea,
    /// The receiving area is full.
    NoRoom,
    /// The payload is invalid.
    Corrupt(Corrupt),
}

impl State {
    /// Frees a placed buffer.
    pub(super) fn free_placed(&mut self, process: &Process, offset: u64) {
        let Some(arena) = process.arena.get() else { return };
        self.placements.free(&arena.lease(), offset);
        if process.bells.room() < LARGEST as u32 {
            self.show_room(process);
        }
    }

    /// Publishes the free room where it is less than the largest payload of a call slot.
    fn show_room(&mut self, process: &Process) {
        let Some(arena) = process.arena() else { return };
        let room = self.placements.room(&arena.lease());
        if process.bells.room() != room {
            process.bells.set_room(room);
        }
    }
}
