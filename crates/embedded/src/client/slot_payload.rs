//! Copies a payload from a call slot into the receiving area.
//! Facts: contract BUF-01, BUF-07, OBJ-15 to OBJ-18.

use abi::layout::TransactionData;

use super::active_thread::ActiveThread;
use super::arena::{Arena, Arriving};
use super::channel::Channel;
use super::placements::Lent;
use crate::shm::Corrupt;
use crate::shm::call_slot::{Call, LARGEST, Piece, Request, Shape};

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

    /// The whole payload, if it is complete; `None` for a large one, which arrives in chunks.
    fn whole(self, channel: &Channel) -> Option<Piece> {
        match self {
            Self::Request(request) => channel.call_slots.whole_request(request),
            Self::Reply(call, shape) => channel.call_slots.whole_reply(call, shape.sent()),
        }
    }

    fn chunks(self, channel: &Channel, copy: impl FnMut(Piece)) -> Result<(), Corrupt> {
        let gone = || channel.is_closed();
        match self {
            Self::Request(request) => channel.call_slots.pieces_of_request(request, gone, copy),
            Self::Reply(call, shape) => channel.call_slots.pieces_of_reply(call, shape.sent(), gone, copy),
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
    /// The payload is invalid, or its sender stopped.
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
        let copied = match payload.whole(channel) {
            Some(piece) => {
                arena.take_in(memory, piece, offset, &arriving);
                arena.settle(offset, &arriving)
            }
            None => self.unlocked(|_| {
                payload.chunks(channel, |piece| arena.take_in(memory, piece, offset, &arriving))?;
                arena.settle(offset, &arriving)
            }),
        };
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
