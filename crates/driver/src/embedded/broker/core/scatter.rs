//! Room: scattered buffers: PTR objects, the pointers to them in their parents, and the arrays of
//! descriptors inside them.
//! Not here: the other objects (`translate`).
//! Facts: contract OBJ-15 to OBJ-19. An offset of 0 means "no object" in the C driver, so a buffer
//! that stands there can never be a parent.

use abi::codes::object;

use super::Core;
use super::carry::{Parcel, Route};
use super::image::{Found, Image, Scattered};
use super::refusal::{EFAULT, EINVAL, Refusal, reported};

const BAD: Refusal = Refusal::failed(EINVAL);

/// Bytes of a pointer in a parent.
const POINTER: u64 = 8;

impl Image<'_> {
    /// A PTR object: its bytes were gathered in this place already; it and its parent get their
    /// address.
    pub(super) fn send_scattered(
        &mut self,
        found: Found,
        index: u64,
        fault: Option<i32>,
    ) -> Result<(), Refusal> {
        let sent = self.scattered(found);
        if sent.length > self.plan.scattered_end - self.cursor {
            return Err(BAD);
        }
        if let Some(errno) = fault {
            return Err(Refusal::failed(reported(errno)));
        }
        if self.cursor + sent.length > self.len() {
            return Err(Refusal::failed(EFAULT));
        }
        let address = self.address.wrapping_add(self.cursor);
        self.cursor += sent.length.next_multiple_of(8);
        if sent.flags & object::BUFFER_FLAG_HAS_PARENT != 0 {
            self.fix_parent(&sent, index, address)?;
        }
        self.put(found.at as u64 + 8, &address.to_ne_bytes())?;
        self.last_object = found.at as u64;
        self.last_min = 0;
        Ok(())
    }

    /// Writes a buffer's address into its parent.
    fn fix_parent(&mut self, child: &Scattered, index: u64, address: u64) -> Result<(), Refusal> {
        let (at, parent) = self.parent(child.parent, index)?;
        if !self.may_fix(at, child.parent_offset)
            || parent.length < POINTER
            || child.parent_offset > parent.length - POINTER
        {
            return Err(BAD);
        }
        self.put(self.inside(&parent, child.parent_offset), &address.to_ne_bytes())
    }

    /// The earlier PTR object with this index, and where it stands.
    fn parent(&self, index: u64, before: u64) -> Result<(u64, Scattered), Refusal> {
        if index >= before {
            return Err(BAD);
        }
        let at = self.offset(index).ok_or(BAD)?;
        let found = self.object(at).filter(|found| found.kind == object::PTR).ok_or(BAD)?;
        Ok((at, self.scattered(found)))
    }

    /// Whether a fix-up may go there: into the last buffer or one of its ancestors, at offsets that
    /// do not go back. Each ancestor climbed to is the last buffer afterwards, so all climbs of a
    /// transaction together are no longer than its objects are many.
    fn may_fix(&self, parent_at: u64, offset: u64) -> bool {
        let (mut at, mut lowest) = (self.last_object, self.last_min);
        if at == 0 {
            return false;
        }
        while at != parent_at {
            let Some(found) = self.object(at).filter(|found| found.kind == object::PTR) else { return false };
            let last = self.scattered(found);
            if last.flags & object::BUFFER_FLAG_HAS_PARENT == 0 {
                return false;
            }
            lowest = last.parent_offset.saturating_add(POINTER);
            let Some(next) = self.offset(last.parent) else { return false };
            at = next;
        }
        offset >= lowest
    }

    /// Where a byte of a scattered buffer that is in place lies in this image.
    fn inside(&self, buffer: &Scattered, offset: u64) -> u64 {
        buffer.buffer.wrapping_sub(self.address).wrapping_add(offset)
    }
}

impl Core {
    /// An FDA object: each descriptor in its parent's bytes.
    pub(super) fn send_fds(
        &mut self,
        image: &mut Image<'_>,
        found: Found,
        index: u64,
        parcel: &mut Parcel<'_>,
        route: &Route,
        fault: Option<i32>,
    ) -> Result<(), Refusal> {
        let (count, offset) = (image.field64(found, 8), image.field64(found, 24));
        let (at, parent) = image.parent(image.field64(found, 16), index)?;
        if !image.may_fix(at, offset) {
            return Err(BAD);
        }
        if count > 0 {
            let len = count.checked_mul(4).filter(|len| *len <= parent.length).ok_or(BAD)?;
            let sent = image.object(at).map_or(0, |parent| image.sent64(parent, 8));
            let place = image.inside(&parent, offset);
            let aligned = place.is_multiple_of(4) && sent.wrapping_add(offset).is_multiple_of(4);
            if offset > parent.length - len || !aligned {
                return Err(BAD);
            }
            for number in 0..count {
                self.send_fd(image, parcel, route, fault, place + number * 4)?;
            }
        }
        image.last_object = at;
        image.last_min = offset.saturating_add(count.saturating_mul(4));
        Ok(())
    }
}
