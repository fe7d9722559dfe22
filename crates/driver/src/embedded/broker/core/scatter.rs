//! Room: scattered buffers, and the arrays of descriptors inside them.
//! Not here: their rules (`embedded::objects`), the other objects (`translate`).
//! Facts: contract OBJ-15 to OBJ-19.

use super::Core;
use super::carry::{Parcel, Route};
use super::image::Image;
use super::refusal::{EFAULT, EINVAL, Refusal, reported};
use crate::embedded::objects::{self, Found, Pointer, View, Walk};

const BAD: Refusal = Refusal::failed(EINVAL);

/// A PTR object: its bytes were gathered in its place already; it and its parent get their address.
pub(super) fn send_scattered(
    image: &mut Image<'_>,
    walk: &mut Walk,
    found: Found,
    fault: Option<i32>,
) -> Result<(), Refusal> {
    let pointer = walk.pointer(image, found.at).map_err(Refusal::failed)?;
    if let Some(errno) = fault {
        return Err(Refusal::failed(reported(errno)));
    }
    if walk.cursor() + pointer.buffer.length > image.len() {
        return Err(Refusal::failed(EFAULT));
    }
    let base = image.address;
    walk.place(image, pointer, base).map_err(Refusal::failed)
}

impl Core {
    /// An FDA object: each descriptor in its parent's bytes.
    pub(super) fn send_fds(
        &mut self,
        (image, walk): (&mut Image<'_>, &mut Walk),
        found: Found,
        parcel: &mut Parcel<'_>,
        route: &Route,
        fault: Option<i32>,
    ) -> Result<(), Refusal> {
        let (count, offset) = (image.field64(found, 8), image.field64(found, 24));
        let Pointer { at, buffer: parent } =
            walk.parent(image, image.field64(found, 16)).map_err(Refusal::failed)?;
        if !walk.may_fix(image, at, offset) {
            return Err(BAD);
        }
        if count > 0 {
            let len = count.checked_mul(4).filter(|len| *len <= parent.length).ok_or(BAD)?;
            let sent = image.object(at).map_or(0, |parent| image.sent64(parent, 8));
            let place = objects::inside(&parent, image.address, offset);
            let aligned = place.is_multiple_of(4) && sent.wrapping_add(offset).is_multiple_of(4);
            if offset > parent.length - len || !aligned {
                return Err(BAD);
            }
            for number in 0..count {
                self.send_fd(image, parcel, route, fault, place + number * 4)?;
            }
        }
        walk.fixed(at, offset.saturating_add(count.saturating_mul(4)));
        Ok(())
    }
}
