//! Translation of scattered buffers, and of the arrays of descriptors inside them.
//! Not here: their rules (`embedded::payload`), the other objects (`translate`).
//! Facts: contract OBJ-15 to OBJ-19.

use super::Core;
use super::payload_copy::{Route, Sending};
use super::payload_rewrite::PayloadRewrite;
use super::refusal::{Refusal, reported};
use crate::payload::scatter::{self, FoundObject, View, Walk};
use sys::errno::{EFAULT, EINVAL};

/// A PTR object: its bytes are gathered already; writes its address into it and its parent.
pub(super) fn send_scattered(
    payload: &mut PayloadRewrite<'_>,
    walk: &mut Walk,
    found: FoundObject,
    fault: Option<i32>,
) -> Result<(), Refusal> {
    let pointer = walk.pointer(payload, found.at).map_err(Refusal::failed)?;
    if let Some(errno) = fault {
        return Err(Refusal::failed(reported(errno)));
    }
    if walk.cursor() + pointer.buffer.length > payload.len() {
        return Err(Refusal::failed(EFAULT));
    }
    let base = payload.address;
    walk.place(payload, pointer, base).map_err(Refusal::failed)
}

impl Core {
    /// An FDA object: sends each descriptor in its parent's bytes.
    pub(super) fn send_fds(
        &mut self,
        (payload, walk): (&mut PayloadRewrite<'_>, &mut Walk),
        found: FoundObject,
        sending: &mut Sending<'_>,
        route: &Route,
        fault: Option<i32>,
    ) -> Result<(), Refusal> {
        let (parent, array) = walk.fd_array(payload, found).map_err(Refusal::failed)?;
        let sent = payload.object(parent.at).map_or(0, |object| payload.sent64(object, 8));
        if array.num_fds > 0 && !sent.is_multiple_of(4) {
            return Err(Refusal::failed(EINVAL));
        }
        let first = scatter::inside(&parent.buffer, payload.address, array.parent_offset);
        for number in 0..array.num_fds {
            self.send_fd(payload, sending, route, fault, first + number * 4)?;
        }
        Ok(())
    }
}
