//! Copies a payload from a call slot into the receiving area.
//! Facts: contract BUF-01, BUF-07, OBJ-15 to OBJ-18.

use abi::layout::TransactionData;

use super::active_thread::ActiveThread;
use super::arena::{Arena, Arriving};
use super::channel::Channel;
use super::placements::Lent;
use crate::shm::Corrupt;
use crate::shm::call_slot::{Call, LARGEST, PayloadRange, Request, Shape};

/// Smallest payload, in bytes, that is copied without the lock: releasing it costs more than a smaller copy.
const LARGE: usize = 16 << 10;

/// The message that a payload belongs to.
#[derive(Clone, Copy)]
pub(super) enum SlotPayload<'c> {
    Request(&'c Request),
    Reply(Call, Shape),
}

impl SlotPayload<'_> {
    fn shape(self) -> Shape {
        match self {
            Self::Request(request) => request.header.shape,
            Self::Reply(_, shape) => shape,
        }
    }

    fn range(self) -> PayloadRange {
        match self {
            Self::Request(request) => request.payload_range(),
            Self::Reply(call, shape) => call.reply_range(shape.sent()),
        }
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

impl ActiveThread<'_> {
    /// Copies a payload and returns the layout of its parts. A large one is copied without the lock. `flags`:
    /// of the transaction. `pin`: of the node that a call is for.
    pub(super) fn receive(
        &mut self,
        channel: &Channel,
        payload: SlotPayload<'_>,
        flags: u32,
        pin: Option<u32>,
    ) -> Result<TransactionData, ReceiveError> {
        let process = self.process;
        let arriving = Arriving::new(payload.shape());
        let layout = arriving.layout;
        let arena = process.arena().ok_or(ReceiveError::NoArea)?;
        let offset = self.state.placements.place(&arena.lease(), layout.end, None);
        let offset = offset.ok_or(ReceiveError::NoRoom)?;
        if !self.state.placements.has_plenty() {
            self.show_room(arena);
        }
        let memory = channel.call_slots.memory();
        let range = payload.range();
        let copy = || {
            arena.take_in(memory, range, offset, &arriving);
            arena.settle(offset, &arriving)
        };
        let copied = if range.len >= LARGE { self.unlocked(|_| copy()) } else { copy() };
        if let Err(corrupt) = copied {
            self.free_placed(arena, offset);
            return Err(ReceiveError::Corrupt(corrupt));
        }
        self.state.placements.lend(offset, Lent::of(flags, pin));
        let buffer = arena.base() + offset;
        Ok(TransactionData {
            data_size: layout.data_size,
            offsets_size: layout.offsets_size,
            buffer,
            offsets: buffer + layout.offsets,
            ..TransactionData::default()
        })
    }

    /// Frees a placed buffer.
    #[inline]
    pub(super) fn free_placed(&mut self, arena: &Arena, offset: u64) {
        self.state.placements.free(&arena.lease(), offset);
        if self.process.bells.room() < LARGEST as u32 {
            self.show_room(arena);
        }
    }

    /// Publishes the free room where it is less than the largest payload of a call slot.
    #[cold]
    fn show_room(&mut self, arena: &Arena) {
        let room = self.state.placements.room(&arena.lease());
        if self.process.bells.room() != room {
            self.process.bells.set_room(room);
        }
    }
}
