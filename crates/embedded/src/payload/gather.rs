//! Payload encoder for the broker: copies the bytes into the outbox, and collects the descriptors of the objects.
//! Not here: the rules, which the broker applies again (`scatter`, `broker::core`); sending it (`client::send`).
//! Facts: contract OBJ-01, OBJ-09, OBJ-15, OBJ-19; `rpc::protocol::Transact`.

use std::os::fd::OwnedFd;

use abi::Payload;
use abi::codes::object;
use abi::layout::TransactionData;
use sys::errno::{EBADF, EFAULT, EINVAL, EMFILE, ENOSPC};
use sys::sealed_memory::SealedMemory;

use super::scatter::{FoundObject, Layout, View, Walk};
use super::vouched::Vouched;
use crate::program::Caller;
use crate::rpc::protocol::{MAX_FDS, OUTBOX_SIZE, Transact};

/// A payload on its way into the outbox, which has the layout of a receiver's buffer.
struct Outbox<'o> {
    memory: &'o SealedMemory,
    layout: Layout,
    vouched: Vouched<'o>,
    caller: Caller<'o>,
    /// Offset of each object's scattered buffer; of another object without meaning.
    buffers: Vec<u64>,
    descriptors: Vec<OwnedFd>,
}

impl Outbox<'_> {
    /// Copies `len` bytes from an address of the caller to `offset`.
    fn copy(&mut self, offset: u64, address: u64, len: u64) -> Result<(), i32> {
        if offset.checked_add(len).is_none_or(|end| end > OUTBOX_SIZE as u64) {
            return Err(ENOSPC);
        }
        if let Some(part) = self.vouched.find(address, len) {
            self.memory.copy_in(offset as usize, part);
            return Ok(());
        }
        let mut buffer = [0; 4096];
        let mut done = 0;
        while done < len {
            let part = &mut buffer[..(len - done).min(4096) as usize];
            self.caller.read(address.wrapping_add(done), part).map_err(|_| EFAULT)?;
            self.memory.copy_in((offset + done) as usize, part);
            done += part.len() as u64;
        }
        Ok(())
    }

    fn data_and_offsets(&mut self, data: &TransactionData) -> Result<(), i32> {
        self.copy(0, data.buffer, data.data_size).map_err(|errno| {
            if errno == EFAULT && begins_with_an_object(self.caller, data) { EINVAL } else { errno }
        })?;
        self.copy(self.layout.offsets, data.offsets, data.offsets_size)
    }

    fn descriptor(&mut self, at: u64) -> Result<(), i32> {
        if self.descriptors.len() == MAX_FDS {
            return Err(EMFILE);
        }
        let mut number = [0; 4];
        self.memory.copy_out(at as usize, &mut number);
        let number = i32::try_from(u32::from_ne_bytes(number)).map_err(|_| EBADF)?;
        let copy = self.caller.descriptor(number).map_err(|error| error.raw_os_error().unwrap_or(EBADF))?;
        self.descriptors.push(copy);
        Ok(())
    }

    /// Gathers one object; `Ok(false)` for an object that the broker will refuse: both stop there.
    fn add_object(&mut self, walk: &mut Walk, found: FoundObject) -> Result<bool, i32> {
        let start = walk.cursor();
        match found.kind {
            object::FD => self.descriptor(found.at + 8)?,
            object::PTR => {
                let Ok(pointer) = walk.pointer(self, found.at) else { return Ok(false) };
                self.copy(start, pointer.buffer.buffer, pointer.buffer.length)?;
                if walk.place(self, pointer, 0).is_err() {
                    return Ok(false);
                }
            }
            object::FDA => {
                let Ok((_, array)) = walk.fd_array(self, found) else { return Ok(false) };
                let at = self.buffers[array.parent as usize] + array.parent_offset;
                for index in 0..array.num_fds {
                    self.descriptor(at + index * 4)?;
                }
            }
            _ => {}
        }
        self.buffers.push(start);
        Ok(true)
    }
}

/// The payload as sent: only the receiver's copy is rewritten.
impl View for Outbox<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let inside = at.checked_add(N as u64)? <= self.layout.scattered;
        inside.then(|| self.memory.copy_out(at as usize, &mut bytes))?;
        Some(bytes)
    }

    fn put(&mut self, _at: u64, _bytes: &[u8]) -> Option<()> {
        Some(())
    }
}

/// Fills the outbox and `transact` from a command. Returns the descriptors to send.
pub(crate) fn gather(
    memory: &SealedMemory,
    data: &TransactionData,
    buffers_size: Option<u64>,
    vouched: (Payload<'_>, Caller<'_>),
    transact: &mut Transact,
) -> Vec<OwnedFd> {
    transact.data_size = data.data_size;
    transact.offsets_size = data.offsets_size;
    transact.buffers_size = buffers_size.unwrap_or(0);
    let room = transact.buffers_size.min(OUTBOX_SIZE as u64);
    let Some(layout) = Layout::of(data.data_size, data.offsets_size, room) else {
        transact.data_fault = ENOSPC;
        return Vec::new();
    };
    let (payload, caller) = vouched;
    let vouched = Vouched::new(payload, caller);
    let mut outbox = Outbox { memory, layout, vouched, caller, buffers: Vec::new(), descriptors: Vec::new() };
    if let Err(errno) = outbox.data_and_offsets(data) {
        transact.data_fault = errno;
        return Vec::new();
    }
    let mut walk = Walk::new(&layout);
    while let Some(Ok(found)) = walk.next(&outbox) {
        match outbox.add_object(&mut walk, found) {
            Ok(true) => {}
            Ok(false) => break,
            Err(errno) => {
                (transact.fault_object, transact.fault_errno) = ((walk.count() - 1) as u32, errno);
                break;
            }
        }
    }
    transact.gathered = walk.cursor() - layout.scattered;
    outbox.descriptors
}

/// Whether the first object is at offset 0. The kernel reads an object before it copies the data in front of it, and
/// treats an unreadable one as untyped (contract OBJ-01).
fn begins_with_an_object(caller: Caller<'_>, data: &TransactionData) -> bool {
    let mut first = [0; 8];
    data.offsets_size >= 8 && caller.read(data.offsets, &mut first).is_ok() && first == [0; 8]
}
