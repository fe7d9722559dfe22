//! Room: the objects of a transaction: found by its offsets, checked, rewritten for the receiver.
//! Not here: the bytes (`image`), scattered buffers and what points into them (`scatter`).
//! Facts: contract section 8. Where several things are wrong the C driver's order decides.
//!
//! A descriptor's field becomes its index among the descriptors that travel with the transaction;
//! the receiving thread puts the number of its own in its place.

use abi::codes::object;

use super::Core;
use super::buffer::Held;
use super::carry::{Parcel, Route};
use super::image::Image;
use super::node::Hold;
use super::outside::Outside;
use super::proc::PINNED_FDS_MAX;
use super::refusal::{EBADF, EINVAL, EMFILE, EPERM, Refusal, reported};
use super::scatter::send_scattered;
use crate::embedded::objects::{Found, View, Walk};
use crate::embedded::protocol::MAX_FDS;

impl Core {
    /// Rewrites all objects; `held` gets what they hold, also if one fails.
    pub(super) fn translate(
        &mut self,
        image: &mut Image<'_>,
        parcel: &mut Parcel<'_>,
        route: &Route,
        held: &mut Vec<Held>,
        outside: &mut impl Outside,
    ) -> Result<(), Refusal> {
        let mut walk = Walk::new(image.layout());
        while let Some(found) = walk.next(image) {
            let found = found.map_err(Refusal::failed)?;
            let fault = (parcel.transact.fault_object == (walk.count() - 1) as u32)
                .then_some(parcel.transact.fault_errno)
                .filter(|errno| *errno != 0);
            match found.kind {
                object::BINDER | object::WEAK_BINDER => {
                    held.push(self.send_node(image, found, parcel, route, outside)?);
                }
                object::HANDLE | object::WEAK_HANDLE => {
                    held.push(self.send_handle(image, found, parcel, route, outside)?);
                }
                object::FD => {
                    self.send_fd(image, parcel, route, fault, found.at + 8)?;
                    image.rewrite(found.at + 12, &[0; 4])?;
                }
                object::FDA => self.send_fds((image, &mut walk), found, parcel, route, fault)?,
                _ => send_scattered(image, &mut walk, found, fault)?,
            }
        }
        Ok(())
    }

    /// A node of the sender's becomes a handle of the receiver's (contract OBJ-03 to OBJ-05).
    fn send_node(
        &mut self,
        image: &mut Image<'_>,
        found: Found,
        parcel: &Parcel<'_>,
        route: &Route,
        outside: &mut impl Outside,
    ) -> Result<Held, Refusal> {
        let strong = found.kind == object::BINDER;
        let (ptr, cookie) = (image.field64(found, 8), image.field64(found, 16));
        let flags = image.field32(found, 4);
        let node = self.node_of(parcel.from.proc, ptr, cookie, flags).map_err(Refusal::failed)?;
        let taken = self.take_handle_of(route.to, node, strong, Some(parcel.from.thread), outside);
        self.settle_node(node, outside);
        let handle = taken.map_err(Refusal::failed)?;
        let kind = if strong { object::HANDLE } else { object::WEAK_HANDLE };
        image.put_flat(found, kind, handle.into(), 0)?;
        Ok(Held::Handle { handle, strong })
    }

    /// A handle of the sender's becomes the receiver's node, or another handle for the same node
    /// (contract OBJ-06, OBJ-07).
    fn send_handle(
        &mut self,
        image: &mut Image<'_>,
        found: Found,
        parcel: &Parcel<'_>,
        route: &Route,
        outside: &mut impl Outside,
    ) -> Result<Held, Refusal> {
        let strong = found.kind == object::HANDLE;
        let handle = image.field32(found, 8);
        let sender = self.procs.get(&parcel.from.proc);
        let held = sender.and_then(|p| p.refs.get(handle)).filter(|held| !strong || held.strong > 0);
        let key = held.ok_or(Refusal::failed(EINVAL))?.node;
        let node = self.nodes.get_mut(&key).ok_or(Refusal::failed(EINVAL))?;
        if node.owner == Some(route.to) {
            node.take(strong, Hold::Local);
            let (ptr, cookie) = (node.ptr, node.cookie);
            let kind = if strong { object::BINDER } else { object::WEAK_BINDER };
            image.put_flat(found, kind, ptr, cookie)?;
            return Ok(Held::Node { node: key, strong });
        }
        let handle = self.take_handle_of(route.to, key, strong, None, outside).map_err(Refusal::failed)?;
        image.put_flat(found, found.kind, handle.into(), 0)?;
        Ok(Held::Handle { handle, strong })
    }

    /// A descriptor, whose number stands at `at` (contract OBJ-09, OBJ-10).
    pub(super) fn send_fd(
        &mut self,
        image: &mut Image<'_>,
        parcel: &mut Parcel<'_>,
        route: &Route,
        fault: Option<i32>,
        at: u64,
    ) -> Result<(), Refusal> {
        if !route.accepts_fds {
            return Err(Refusal::failed(EPERM));
        }
        let pinned = self.procs.get(&route.to).map_or(0, |receiver| receiver.pinned_fds);
        if image.fds.len() >= MAX_FDS || pinned + image.fds.len() >= PINNED_FDS_MAX {
            return Err(Refusal::failed(EMFILE));
        }
        // Without a fault the sender has said less than it sent along.
        let missing = Refusal::failed(fault.map_or(EBADF, reported));
        image.rewrite(at, &(image.fds.len() as u32).to_ne_bytes())?;
        image.fds.push(parcel.fds.pop_front().ok_or(missing)?);
        Ok(())
    }
}
