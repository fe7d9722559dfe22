//! Room: a transaction's bytes: from the sender's private copy into a buffer of the receiver.
//! Not here: what happens to objects (`translate`).
//! Facts: contract BUF-01, OBJ-02, OBJ-21, OBJ-22, OPN-09. The order of the checks is the C driver's:
//! room first, then the bytes.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use abi::codes::tf;

use super::Core;
use super::buffer::{Buffer, Held};
use super::image::Image;
use super::node::NodeKey;
use super::outside::Outside;
use super::refusal::{EFAULT, EINVAL, ENOSPC, EOPNOTSUPP, ESRCH, Refusal, reported};
use crate::embedded::objects::{ALIGN, Layout};
use crate::embedded::protocol::{Link, ProcId, Transact};

/// What is to be carried.
#[derive(Debug)]
pub(super) struct Parcel<'a> {
    pub(super) id: u32,
    pub(super) from: Link,
    pub(super) transact: &'a Transact,
    pub(super) bytes: &'a [u8],
    pub(super) fds: VecDeque<OwnedFd>,
}

/// Where it goes, and what it may be there.
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
    /// Of a reply to a call with these flags.
    pub(super) fn of_reply(to: ProcId, call_flags: u32) -> Self {
        let accepts_fds = call_flags & tf::ACCEPT_FDS != 0;
        Self { to, target: None, oneway: false, accepts_fds, security_context: false }
    }
}

/// A transaction that lies in the receiver's area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cargo {
    pub(super) offset: u64,
    pub(super) fds: u32,
    pub(super) suspect: bool,
    /// Bytes behind the offsets.
    pub(super) extra_size: u64,
    pub(super) security_context: Option<u64>,
}

/// Where the parts of a buffer begin, from its start.
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
    /// Makes a buffer in the receiver's area and fills it. If it fails nothing is left of it.
    pub(super) fn carry(
        &mut self,
        mut parcel: Parcel<'_>,
        route: &Route,
        outside: &mut impl Outside,
    ) -> Result<Cargo, Refusal> {
        let secctx = self.security_context(parcel.from.proc, route)?;
        let pid = self.procs.get(&parcel.from.proc).map_or(0, |sender| sender.client.pid);
        let receiver = self.procs.get_mut(&route.to).ok_or(Refusal::dead(0))?;
        let base = receiver.base().ok_or(Refusal::dead(ESRCH))?;
        let plan = Plan::of(parcel.transact, secctx.len()).ok_or(Refusal::failed(EINVAL))?;
        let taken = receiver.arena.alloc(plan.total, route.oneway, pid);
        let taken = taken.map_err(|_| Refusal::failed(ENOSPC))?;

        let mut held = Vec::new();
        let address = base.wrapping_add(taken.offset);
        match self.fill(&mut parcel, route, (taken.offset, address), plan.layout, &mut held, outside) {
            Ok(fds) => {
                let security_context = (!secctx.is_empty()).then(|| taken.offset + plan.secctx);
                if let Some(at) = security_context {
                    outside.write(route.to, at, &secctx);
                }
                let cargo = Cargo {
                    offset: taken.offset,
                    fds: fds.len() as u32,
                    suspect: taken.suspect,
                    extra_size: plan.extra(),
                    security_context,
                };
                self.keep(&parcel, route, &cargo, held, fds);
                Ok(cargo)
            }
            Err(refusal) => {
                self.let_go(route.to, None, &held, outside);
                if let Some(receiver) = self.procs.get_mut(&route.to) {
                    receiver.arena.free(taken.offset);
                }
                Err(refusal)
            }
        }
    }

    /// How many bytes it takes behind its offsets, and whether there is room for it; `None` if it cannot
    /// lie there at all.
    pub(super) fn room(&self, from: ProcId, transact: &Transact, route: &Route) -> Option<(u64, bool)> {
        let receiver = self.procs.get(&route.to)?;
        receiver.base()?;
        let plan = Plan::of(transact, self.security_context(from, route).ok()?.len())?;
        Some((plan.extra(), receiver.arena.fits(plan.total, route.oneway)))
    }

    /// The NUL-terminated text that the node asked for; empty if it did not.
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

    /// Writes data, offsets and scattered buffers; the descriptors that go with them.
    fn fill(
        &mut self,
        parcel: &mut Parcel<'_>,
        route: &Route,
        (offset, address): (u64, u64),
        layout: Layout,
        held: &mut Vec<Held>,
        outside: &mut impl Outside,
    ) -> Result<Vec<OwnedFd>, Refusal> {
        let transact = parcel.transact;
        if transact.data_fault != 0 {
            return Err(Refusal::failed(reported(transact.data_fault)));
        }
        if !layout.is_aligned() {
            return Err(Refusal::failed(EINVAL));
        }
        // The plan's lengths fit the area, so they fit a usize.
        let bytes = parcel.bytes;
        let data = bytes.get(..transact.data_size as usize).ok_or(Refusal::failed(EFAULT))?;
        if transact.offsets_size == 0 {
            outside.write(route.to, offset, data);
            return Ok(Vec::new());
        }
        if (bytes.len() as u64) < layout.scattered {
            return Err(Refusal::failed(EFAULT));
        }
        let mut image = Image::new(bytes, layout, address, transact);
        self.translate(&mut image, parcel, route, held, outside)?;
        outside.write(route.to, offset, image.data());
        outside.write(route.to, offset + layout.offsets, image.behind_data());
        Ok(image.into_fds())
    }

    fn keep(
        &mut self,
        parcel: &Parcel<'_>,
        route: &Route,
        cargo: &Cargo,
        held: Vec<Held>,
        fds: Vec<OwnedFd>,
    ) {
        let transact = parcel.transact;
        let Some(receiver) = self.procs.get_mut(&route.to) else { return };
        receiver.pinned_fds += fds.len();
        let buffer = Buffer {
            transaction: parcel.id,
            data_size: transact.data_size,
            offsets_size: transact.offsets_size,
            extra: cargo.extra_size,
            target: route.target,
            oneway: route.oneway,
            clear: transact.flags & tf::CLEAR_BUF != 0,
            waiting: false,
            held,
            fds,
        };
        receiver.buffers.insert(cargo.offset, buffer);
        self.buffer_of.insert(parcel.id, (route.to, cargo.offset));
    }
}
