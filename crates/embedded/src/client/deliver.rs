//! Delivers calls and replies of the broker to a reader: fetches their descriptors, updates the thread's
//! stack and appends the return.
//! Not here: the order of deliveries (`read`), calls through call slots (`serve`, `call`).
//! Facts: contract TX-02 to TX-04, OBJ-11 to OBJ-13, OBJ-21; `binder_thread_read`, Linux 7.2.

use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use abi::codes::{br, object, tf};
use abi::layout::{BufferObject, FdArrayObject, FdObject, TransactionData, TransactionDataSecctx};
use zerocopy::IntoBytes;

use super::Process;
use super::core::BrokerReply;
use super::core::thread::{BrokerCall, Frame, Served};
use super::delivered::Buffer;
use super::inherit::Asked;
use super::read::{Next, Reading};
use crate::priority::Restore;
use crate::program::Caller;
use crate::rpc::protocol::{Delivery, Request};
use crate::trace_events::{CodeAndFlags, TaskId};

/// The bytes and offsets of a delivered buffer in the arena.
struct Extent {
    buffer: u64,
    data_size: u64,
    offsets_size: u64,
}

/// The descriptors of a delivery, by object type.
#[derive(Default)]
struct Descriptors {
    objects: Vec<(u64, OwnedFd)>,
    array: Vec<OwnedFd>,
    /// Numbers of those in a supervised program: of FD objects, then of FDA objects.
    installed: [Vec<i32>; 2],
}

impl Descriptors {
    /// Takes a descriptor for its receiver; returns its number there.
    fn take(&mut self, caller: Caller<'_>, fd: OwnedFd, object: Option<u64>) -> io::Result<i32> {
        if let Caller::There(program, thread) = caller {
            let number = program.install(thread, fd.as_fd())?;
            self.installed[usize::from(object.is_none())].push(number);
            return Ok(number);
        }
        let number = fd.as_raw_fd();
        match object {
            Some(at) => self.objects.push((at, fd)),
            None => self.array.push(fd),
        }
        Ok(number)
    }
}

impl Reading<'_, '_, '_> {
    /// Delivers a call or a oneway call: the thread serves it, and the return is appended.
    pub(super) fn deliver_call(&mut self, delivery: &Delivery) -> Next {
        let (process, slot) = (self.thread.process, self.thread.slot);
        let Delivery { transaction, flags, code, .. } = *delivery;
        let extent = Extent {
            buffer: delivery.buffer,
            data_size: delivery.data_size,
            offsets_size: delivery.offsets_size,
        };
        let descriptors = match self.fetch_descriptors(&extent, transaction, delivery.fds) {
            Ok(descriptors) => descriptors,
            Err(error) => {
                // The caller gets the error; this reader continues with other work (contract OBJ-12).
                let errno = error.raw_os_error().unwrap_or(0);
                process.send(&Request::Undeliverable { transaction, errno });
                return Next::More;
            }
        };
        let Some(base) = process.map_base() else {
            // The program gave up the area since (contract OPN-10).
            process.send(&Request::Abandon { transaction });
            return Next::More;
        };
        if let Some(trace) = process.traced() {
            trace.raised(self.thread.who, self.thread.own().before);
        }
        let oneway = flags & tf::ONE_WAY != 0;
        let Delivery { sched: caller, node_flags, .. } = *delivery;
        let restore = self.inherit(Asked { caller, node_flags, oneway });
        if !oneway {
            let call = BrokerCall {
                transaction,
                lineage: delivery.lineage,
                what: CodeAndFlags { flags, code },
                restore,
            };
            self.thread.thread().stack.push(Frame::Serving(Served::Broker(Box::new(call))));
            process.show_serving(slot, self.thread.state.core.thread(slot));
            self.thread.show_depth();
        }
        self.remember_buffer(base, delivery.buffer, descriptors);
        if let Some(trace) = process.traced() {
            trace.call_delivered(delivery, base.wrapping_add(delivery.buffer));
        }
        let data = TransactionData {
            target: delivery.ptr,
            cookie: delivery.cookie,
            code,
            flags,
            sender_pid: delivery.sender_pid as i32,
            sender_euid: delivery.sender_euid,
            ..place(base, &extent)
        };
        match delivery.security_context {
            None => self.put(br::TRANSACTION, data.as_bytes()),
            Some(offset) => {
                let secctx = base.wrapping_add(offset);
                let with = TransactionDataSecctx { transaction_data: data, secctx };
                self.put(br::TRANSACTION_SEC_CTX, with.as_bytes());
            }
        }
        if oneway && let Some(trace) = process.traced() {
            trace.freed(
                transaction,
                TaskId { tid: 0, ..self.thread.who.named() },
                CodeAndFlags { flags, code },
            );
        }
        Next::Stop
    }

    /// Delivers a reply: appends its return.
    pub(super) fn deliver_reply(&mut self, reply: &BrokerReply) -> Next {
        let process = self.thread.process;
        let BrokerReply { buffer, data_size, offsets_size, code, flags, number, .. } = *reply;
        let extent = Extent { buffer, data_size, offsets_size };
        let fetched = self.fetch_descriptors(&extent, number, reply.fds);
        let (Ok(descriptors), Some(base)) = (fetched, process.map_base()) else {
            process.send(&Request::FreeBuffer { offset: buffer });
            self.put(br::FAILED_REPLY, &[]);
            return Next::Stop;
        };
        self.remember_buffer(base, buffer, descriptors);
        if let Some(trace) = process.traced() {
            trace.reply_delivered(reply, base.wrapping_add(buffer));
        }
        let data = TransactionData { code, flags, sender_euid: reply.euid, ..place(base, &extent) };
        self.put(br::REPLY, data.as_bytes());
        if let Some(trace) = process.traced() {
            trace.freed(number, self.thread.who.named(), CodeAndFlags { flags, code });
        }
        Next::Stop
    }

    fn remember_buffer(&mut self, base: u64, offset: u64, descriptors: Descriptors) {
        let Descriptors { objects, array, installed: [_, installed] } = descriptors;
        let buffer = Buffer { offset, descriptors: objects, array, installed };
        self.thread.state.buffers.insert(base.wrapping_add(offset), buffer);
    }

    /// Fetches a delivery's descriptors and writes their local numbers into its objects.
    fn fetch_descriptors(
        &mut self,
        extent: &Extent,
        transaction: u32,
        count: u32,
    ) -> io::Result<Descriptors> {
        if count == 0 {
            return Ok(Descriptors::default());
        }
        let (key, who) = (self.thread.thread().key, self.thread.who);
        self.thread.unlocked(|process| match process.line.fetch(key, &Request::TakeFds { transaction })? {
            (0, all) => {
                let (mut placed, caller) = (Descriptors::default(), process.caller(who));
                let result = process.place_descriptors(extent, all, &mut placed, caller);
                if let (Err(_), Caller::There(program, thread)) = (&result, caller) {
                    placed.installed.iter().flatten().for_each(|number| program.close(thread, *number));
                }
                result.map(|()| placed)
            }
            (errno, _) => Err(io::Error::from_raw_os_error(errno)),
        })
    }

    /// Applies the caller's scheduling to this thread, for the call that it serves.
    pub(super) fn inherit(&mut self, asked: Asked) -> Restore {
        let (process, before) = (self.thread.process, self.thread.own().before);
        process.home.serve(self.thread.who, before, asked, process.trace.as_ref())
    }
}

impl Process {
    /// Writes the receiver's numbers of descriptors into a delivery's objects.
    fn place_descriptors(
        &self,
        extent: &Extent,
        all: Vec<OwnedFd>,
        placed: &mut Descriptors,
        caller: Caller<'_>,
    ) -> io::Result<()> {
        let Some(arena) = self.arena() else { return Ok(()) };
        let base = arena.base();
        let offsets_at = extent.buffer + extent.data_size.next_multiple_of(8);
        let mut all = all.into_iter();
        for index in 0..extent.offsets_size / 8 {
            let Some(at) = arena.peek::<u64>(offsets_at + index * 8) else { break };
            let at = extent.buffer.wrapping_add(at);
            let Some(kind) = arena.peek::<u32>(at) else { continue };
            if kind == object::FD {
                let Some(fd) = all.next() else { break };
                let number = match self.own_numbers.get() {
                    Some(_) => fd.into_raw_fd(),
                    None => placed.take(caller, fd, Some(base + at))?,
                };
                arena.poke(at + std::mem::offset_of!(FdObject, fd) as u64, &(number as u64).to_ne_bytes());
            } else if kind == object::FDA {
                let Some(array) = arena.peek::<FdArrayObject>(at) else { continue };
                let parent = offsets_at.wrapping_add(array.parent.wrapping_mul(8));
                let parent = arena
                    .peek::<u64>(parent)
                    .and_then(|at| arena.peek::<BufferObject>(extent.buffer.wrapping_add(at)));
                let Some(parent) = parent else { continue };
                let start = parent.buffer.wrapping_sub(base).wrapping_add(array.parent_offset);
                for (index, fd) in all.by_ref().take(array.num_fds as usize).enumerate() {
                    let number = placed.take(caller, fd, None)?;
                    arena.poke(start + index as u64 * 4, &number.to_ne_bytes());
                }
            }
        }
        Ok(())
    }
}

/// Computes the addresses of a delivery's parts.
fn place(base: u64, extent: &Extent) -> TransactionData {
    let buffer = base.wrapping_add(extent.buffer);
    TransactionData {
        data_size: extent.data_size,
        offsets_size: extent.offsets_size,
        buffer,
        offsets: buffer + extent.data_size.next_multiple_of(8),
        ..TransactionData::default()
    }
}
