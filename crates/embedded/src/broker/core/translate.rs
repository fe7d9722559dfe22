//! Translation of a transaction's objects: finds them by the offsets, checks them, rewrites them for the receiver.
//! Not here: the bytes (`payload_rewrite`), scattered buffers and pointers into them (`scatter`).
//! Facts: contract section 8. With several faults, the C driver's order of checks decides.
//!
//! The field of a descriptor becomes an index into the descriptors that travel with the transaction; the receiving
//! thread replaces it with its own descriptor.

use abi::codes::object;

use super::Core;
use super::buffer::Held;
use super::host::Host;
use super::node::Hold;
use super::payload_copy::{Route, Sending};
use super::payload_rewrite::PayloadRewrite;
use super::proc::PINNED_FDS_MAX;
use super::refusal::{Refusal, reported};
use super::scatter::send_scattered;
use crate::payload::scatter::{FoundObject, View, Walk};
use crate::rpc::protocol::MAX_FDS;
use sys::errno::{EBADF, EINVAL, EMFILE, EPERM};

impl Core {
    /// Rewrites all objects. `held` receives the counts that they hold, also on failure.
    pub(super) fn translate(
        &mut self,
        payload: &mut PayloadRewrite<'_>,
        sending: &mut Sending<'_>,
        route: &Route,
        held: &mut Vec<Held>,
        host: &mut impl Host,
    ) -> Result<(), Refusal> {
        let mut walk = Walk::new(payload.layout());
        while let Some(found) = walk.next(payload) {
            let found = found.map_err(Refusal::failed)?;
            let fault = (sending.transact.fault_object == (walk.count() - 1) as u32)
                .then_some(sending.transact.fault_errno)
                .filter(|errno| *errno != 0);
            match found.kind {
                object::BINDER | object::WEAK_BINDER => {
                    held.push(self.send_node(payload, found, sending, route, host)?);
                }
                object::HANDLE | object::WEAK_HANDLE => {
                    held.push(self.send_handle(payload, found, sending, route, host)?);
                }
                object::FD => {
                    self.send_fd(payload, sending, route, fault, found.at + 8)?;
                    payload.rewrite(found.at + 12, &[0; 4])?;
                }
                object::FDA => self.send_fds((payload, &mut walk), found, sending, route, fault)?,
                _ => send_scattered(payload, &mut walk, found, fault)?,
            }
        }
        Ok(())
    }

    /// Translates a node of the sender to a handle of the receiver (contract OBJ-03 to OBJ-05).
    fn send_node(
        &mut self,
        payload: &mut PayloadRewrite<'_>,
        found: FoundObject,
        sending: &Sending<'_>,
        route: &Route,
        host: &mut impl Host,
    ) -> Result<Held, Refusal> {
        let strong = found.kind == object::BINDER;
        let (ptr, cookie) = (payload.field64(found, 8), payload.field64(found, 16));
        let flags = payload.field32(found, 4);
        let node = self.node_of(sending.from.proc, ptr, cookie, flags).map_err(Refusal::failed)?;
        let taken = self.take_handle_of(route.to, node, strong, Some(sending.from.thread), host);
        self.settle_node(node, host);
        let handle = taken.map_err(Refusal::failed)?;
        let kind = if strong { object::HANDLE } else { object::WEAK_HANDLE };
        payload.put_flat(found, kind, handle.into(), 0)?;
        Ok(Held::Handle { handle, strong })
    }

    /// Translates a handle of the sender to the receiver's node, or to another handle of the same node (contract
    /// OBJ-06, OBJ-07).
    fn send_handle(
        &mut self,
        payload: &mut PayloadRewrite<'_>,
        found: FoundObject,
        sending: &Sending<'_>,
        route: &Route,
        host: &mut impl Host,
    ) -> Result<Held, Refusal> {
        let strong = found.kind == object::HANDLE;
        let handle = payload.field32(found, 8);
        let sender = self.procs.get(&sending.from.proc);
        let held = sender.and_then(|p| p.refs.get(handle)).filter(|held| !strong || held.strong > 0);
        let key = held.ok_or(Refusal::failed(EINVAL))?.node;
        let node = self.nodes.get_mut(&key).ok_or(Refusal::failed(EINVAL))?;
        if node.owner == Some(route.to) {
            node.take(strong, Hold::Local);
            let (ptr, cookie) = (node.ptr, node.cookie);
            let kind = if strong { object::BINDER } else { object::WEAK_BINDER };
            payload.put_flat(found, kind, ptr, cookie)?;
            return Ok(Held::Node { node: key, strong });
        }
        let handle = self.take_handle_of(route.to, key, strong, None, host).map_err(Refusal::failed)?;
        payload.put_flat(found, found.kind, handle.into(), 0)?;
        Ok(Held::Handle { handle, strong })
    }

    /// Sends the descriptor whose number is at `at` (contract OBJ-09, OBJ-10).
    pub(super) fn send_fd(
        &mut self,
        payload: &mut PayloadRewrite<'_>,
        sending: &mut Sending<'_>,
        route: &Route,
        fault: Option<i32>,
        at: u64,
    ) -> Result<(), Refusal> {
        if !route.accepts_fds {
            return Err(Refusal::failed(EPERM));
        }
        let pinned = self.procs.get(&route.to).map_or(0, |receiver| receiver.pinned_fds);
        if payload.fds.len() >= MAX_FDS || pinned + payload.fds.len() >= PINNED_FDS_MAX {
            return Err(Refusal::failed(EMFILE));
        }
        // Without a reported fault, the sender must have supplied this descriptor.
        let missing = Refusal::failed(fault.map_or(EBADF, reported));
        payload.rewrite(at, &(payload.fds.len() as u32).to_ne_bytes())?;
        payload.fds.push(sending.fds.pop_front().ok_or(missing)?);
        Ok(())
    }
}
