//! Copies a transaction's payload from the sender's private copy into a buffer of the receiver.
//! Not here: translation of objects (`translate`).
//! Facts: contract BUF-01, OBJ-02, OBJ-21, OBJ-22, OPN-09. The order of checks follows the C driver: space first,
//! then the bytes.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use abi::codes::tf;

use super::Core;
use super::arena::Arena;
use super::buffer::{Buffer, Held};
use super::host::Host;
use super::node::NodeKey;
use super::payload_rewrite::PayloadRewrite;
use super::refusal::{Refusal, reported};
use crate::payload::scatter::{ALIGN, Layout};
use crate::rpc::protocol::{Link, ProcId, Transact};
use sys::errno::{EFAULT, EINVAL, ENOSPC, EOPNOTSUPP, ESRCH};

/// A transaction in progress.
#[derive(Debug)]
pub(super) struct Sending<'a> {
    pub(super) id: u32,
    pub(super) from: Link,
    pub(super) transact: &'a Transact,
    /// The core's private copy of the payload.
    pub(super) bytes: &'a [u8],
    /// Descriptors that no object has taken yet.
    pub(super) fds: VecDeque<OwnedFd>,
}

/// Destination of a payload, with the destination's properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) to: ProcId,
    /// The called node; `None` for a reply.
    pub(super) target: Option<NodeKey>,
    pub(super) oneway: bool,
    pub(super) accepts_fds: bool,
    pub(super) security_context: bool,
}

impl Route {
    /// The route of a reply to a call with these flags.
    pub(super) fn of_reply(to: ProcId, call_flags: u32) -> Self {
        let accepts_fds = call_flags & tf::ACCEPT_FDS != 0;
        Self { to, target: None, oneway: false, accepts_fds, security_context: false }
    }
}

/// Result of a payload copy: the buffer in the receiver's area.
#[derive(Clone, Copy, Debug)]
pub(super) struct PayloadCopy {
    pub(super) offset: u64,
    pub(super) fds: u32,
    pub(super) suspect: bool,
    /// Bytes behind the offsets.
    pub(super) extra_size: u64,
    pub(super) security_context: Option<u64>,
}

/// Offsets of a buffer's parts, from its start.
#[derive(Clone, Copy, Debug)]
struct Plan {
    layout: Layout,
    secctx: u64,
    total: u64,
}

impl Plan {
    /// `None` if the sum overflows.
    fn of(transact: &Transact, secctx: usize) -> Option<Self> {
        let layout = Layout::of(transact.data_size, transact.offsets_size, transact.buffers_size)?;
        let at = layout.end.checked_next_multiple_of(ALIGN)?;
        let total = at.checked_add((secctx as u64).checked_next_multiple_of(ALIGN)?)?;
        Some(Self { layout, secctx: at, total })
    }

    /// Bytes behind the offsets.
    fn extra(&self) -> u64 {
        self.total - self.layout.scattered
    }
}

impl Core {
    /// Allocates a buffer in the receiver's area and fills it. On failure nothing remains.
    pub(super) fn copy_payload(
        &mut self,
        sending: &mut Sending<'_>,
        route: &Route,
        host: &mut impl Host,
    ) -> Result<PayloadCopy, Refusal> {
        let secctx = self.security_context(sending.from.proc, route)?;
        let pid = self.procs.get(&sending.from.proc).map_or(0, |sender| sender.client.pid);
        let receiver = self.procs.get(&route.to).ok_or(Refusal::dead(0))?;
        let base = receiver.base().ok_or(Refusal::dead(ESRCH))?;
        let plan = Plan::of(sending.transact, secctx.len()).ok_or(Refusal::failed(EINVAL))?;
        let alloc = |arena: &mut Arena| arena.alloc(plan.total, route.oneway, pid);
        let taken = self.with_arena(route.to, host, alloc).and_then(Result::ok);
        let taken = taken.ok_or(Refusal::failed(ENOSPC))?;

        let mut held = Vec::new();
        let address = base.wrapping_add(taken.offset);
        match self.fill(sending, route, (taken.offset, address), plan.layout, &mut held, host) {
            Ok(fds) => {
                let security_context = (!secctx.is_empty()).then(|| taken.offset + plan.secctx);
                if let Some(at) = security_context {
                    host.write(route.to, at, &secctx);
                }
                let copy = PayloadCopy {
                    offset: taken.offset,
                    fds: fds.len() as u32,
                    suspect: taken.suspect,
                    extra_size: plan.extra(),
                    security_context,
                };
                self.keep(sending, route, &copy, held, fds);
                Ok(copy)
            }
            Err(refusal) => {
                self.let_go(route.to, None, &held, host);
                self.with_arena(route.to, host, |arena| arena.free(taken.offset));
                Err(refusal)
            }
        }
    }

    /// Bytes that the payload needs behind its offsets, and whether the receiver has room; `None` if it can never be
    /// placed there.
    pub(super) fn room(
        &mut self,
        from: ProcId,
        transact: &Transact,
        route: &Route,
        host: &mut impl Host,
    ) -> Option<(u64, bool)> {
        self.procs.get(&route.to)?.base()?;
        let plan = Plan::of(transact, self.security_context(from, route).ok()?.len())?;
        let fits = self.with_arena(route.to, host, |arena| arena.fits(plan.total, route.oneway))?;
        Some((plan.extra(), fits))
    }

    /// NUL-terminated security context; empty if the node did not ask for it.
    fn security_context(&self, from: ProcId, route: &Route) -> Result<Vec<u8>, Refusal> {
        if !route.security_context {
            return Ok(Vec::new());
        }
        let known = self.procs.get(&from).and_then(|sender| sender.client.security_context.as_deref());
        let mut text = known.ok_or(Refusal::failed(EOPNOTSUPP))?.to_vec();
        if text.last() != Some(&0) {
            text.push(0);
        }
        Ok(text)
    }

    /// Writes data, offsets and scattered buffers; returns the descriptors that travel with them.
    fn fill(
        &mut self,
        sending: &mut Sending<'_>,
        route: &Route,
        (offset, address): (u64, u64),
        layout: Layout,
        held: &mut Vec<Held>,
        host: &mut impl Host,
    ) -> Result<Vec<OwnedFd>, Refusal> {
        let transact = sending.transact;
        if transact.data_fault != 0 {
            return Err(Refusal::failed(reported(transact.data_fault)));
        }
        if !layout.is_aligned() {
            return Err(Refusal::failed(EINVAL));
        }
        // The plan's lengths fit the area, so they fit a usize.
        let bytes = sending.bytes;
        let data = bytes.get(..transact.data_size as usize).ok_or(Refusal::failed(EFAULT))?;
        if transact.offsets_size == 0 {
            host.write(route.to, offset, data);
            return Ok(Vec::new());
        }
        if (bytes.len() as u64) < layout.scattered {
            return Err(Refusal::failed(EFAULT));
        }
        let mut payload = PayloadRewrite::new(bytes, layout, address, transact);
        self.translate(&mut payload, sending, route, held, host)?;
        host.write(route.to, offset, payload.data());
        host.write(route.to, offset + layout.offsets, payload.behind_data());
        Ok(payload.into_fds())
    }

    fn keep(
        &mut self,
        sending: &Sending<'_>,
        route: &Route,
        copy: &PayloadCopy,
        held: Vec<Held>,
        fds: Vec<OwnedFd>,
    ) {
        let transact = sending.transact;
        let Some(receiver) = self.procs.get_mut(&route.to) else { return };
        receiver.pinned_fds += fds.len();
        let buffer = Buffer {
            transaction: sending.id,
            data_size: transact.data_size,
            offsets_size: transact.offsets_size,
            extra: copy.extra_size,
            target: route.target,
            oneway: route.oneway,
            clear: transact.flags & tf::CLEAR_BUF != 0,
            waiting: false,
            held,
            fds,
        };
        receiver.buffers.insert(copy.offset, buffer);
        self.buffer_of.insert(sending.id, (route.to, copy.offset));
    }
}
