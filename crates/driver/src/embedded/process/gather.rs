//! Room: the sender's half of a transaction with everything in it: bytes into the outbox, and the
//! descriptors that its objects name.
//! Not here: judging it, which the broker does (`broker::core`); sending it (`transact`).
//! Facts: contract OBJ-01, OBJ-09, OBJ-15, OBJ-19; `protocol::Transact`.
//!
//! Addresses in a command are only followed inside the payload that the caller vouches for; anything
//! else is read by the kernel, which answers `EFAULT` where a stray address would crash.

use std::io;
use std::os::fd::OwnedFd;

use abi::Payload;
use abi::codes::object;
use abi::layout::{BufferObject, FdArrayObject, FdObject, TransactionData};
use sys::own_memory;
use sys::sealed_memory::SealedMemory;
use zerocopy::{FromBytes, IntoBytes};

use crate::embedded::protocol::{MAX_FDS, OUTBOX_SIZE, Transact};

/// Errno of an address that cannot be read.
const EFAULT: i32 = 14;
const EBADF: i32 = 9;
const EMFILE: i32 = 24;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;

/// What is rounded up where parts follow one another.
pub(super) const fn round_up(len: u64) -> Option<u64> {
    match len.checked_add(7) {
        Some(sum) => Some(sum & !7),
        None => None,
    }
}

/// Bytes of the caller's that may be read where they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vouched<'p> {
    payload: Payload<'p>,
    /// The buffer behind the one that was wanted last: they are most often wanted in their order, and whole.
    next: usize,
}

impl<'p> Vouched<'p> {
    #[inline]
    pub(super) fn new(payload: Payload<'p>) -> Self {
        Self { payload, next: 0 }
    }

    /// The data that a command points to.
    #[inline]
    pub(super) fn data(&self, data: &TransactionData) -> Option<&'p [u8]> {
        part(self.payload.data, data.buffer, data.data_size)
    }

    /// The offsets that a command points to.
    #[inline]
    pub(super) fn offsets(&self, data: &TransactionData) -> Option<&'p [u8]> {
        part(self.payload.offsets.as_bytes(), data.offsets, data.offsets_size)
    }

    /// All that PTR objects may point to.
    pub(super) fn buffers(&self) -> &'p [&'p [u8]] {
        self.payload.buffers
    }

    /// The bytes that a PTR object points to, by their address and length.
    #[inline]
    pub(super) fn buffer(&mut self, address: u64, len: u64) -> Option<&'p [u8]> {
        match self.payload.buffers.get(self.next) {
            Some(bytes) if bytes.as_ptr() as u64 == address && bytes.len() as u64 == len => {
                self.next += 1;
                Some(bytes)
            }
            _ if len == 0 => Some(&[]),
            _ => self.find_buffer(address, len),
        }
    }

    fn find_buffer(&mut self, address: u64, len: u64) -> Option<&'p [u8]> {
        let buffers = self.payload.buffers;
        for index in (self.next..buffers.len()).chain(0..self.next.min(buffers.len())) {
            if let Some(bytes) = part(buffers[index], address, len) {
                self.next = index + 1;
                return Some(bytes);
            }
        }
        None
    }

    /// The bytes at an address, if they lie in any part.
    fn find(&mut self, address: u64, len: u64) -> Option<&'p [u8]> {
        part(self.payload.data, address, len)
            .or_else(|| part(self.payload.offsets.as_bytes(), address, len))
            .or_else(|| self.buffer(address, len))
    }

    /// Reads the bytes at an address, if need be through the kernel.
    ///
    /// # Errors
    /// `EFAULT`.
    pub(super) fn copy(&mut self, address: u64, into: &mut [u8]) -> io::Result<()> {
        match self.find(address, into.len() as u64) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(())
            }
            None => own_memory::read(address, into),
        }
    }
}

/// The part of `bytes` that lies at an address.
#[inline]
fn part(bytes: &[u8], address: u64, len: u64) -> Option<&[u8]> {
    let at = address.checked_sub(bytes.as_ptr() as u64)?;
    bytes.get(usize::try_from(at).ok()?..)?.get(..usize::try_from(len).ok()?)
}

/// Copies `len` bytes from an address of the caller's to `offset` of the outbox.
fn copy(
    outbox: &SealedMemory,
    offset: u64,
    address: u64,
    len: u64,
    vouched: &mut Vouched<'_>,
) -> Result<(), i32> {
    if offset.checked_add(len).is_none_or(|end| end > OUTBOX_SIZE as u64) {
        return Err(ENOSPC);
    }
    if let Some(part) = vouched.find(address, len) {
        outbox.copy_in(offset as usize, part);
        return Ok(());
    }
    let mut buffer = [0; 4096];
    let mut done = 0;
    while done < len {
        let part = &mut buffer[..(len - done).min(4096) as usize];
        own_memory::read(address.wrapping_add(done), part).map_err(|_| EFAULT)?;
        outbox.copy_in((offset + done) as usize, part);
        done += part.len() as u64;
    }
    Ok(())
}

/// A walk over the objects of one transaction.
struct Walk<'w> {
    outbox: &'w SealedMemory,
    vouched: Vouched<'w>,
    data_size: u64,
    /// Where the next gathered buffer goes.
    next: u64,
    most: u64,
    /// For each object: where its bytes are and how many, if it is a gathered buffer.
    buffers: Vec<Option<(u64, u64)>>,
    descriptors: Vec<OwnedFd>,
}

impl Walk<'_> {
    fn peek<T: FromBytes + IntoBytes>(&self, at: u64) -> Option<T> {
        let mut value = T::new_zeroed();
        if at.checked_add(size_of::<T>() as u64)? > self.data_size {
            return None;
        }
        self.outbox.copy_out(at as usize, value.as_mut_bytes());
        Some(value)
    }

    fn descriptor(&mut self, number: u32) -> Result<(), i32> {
        if self.descriptors.len() == MAX_FDS {
            return Err(EMFILE);
        }
        let number = i32::try_from(number).map_err(|_| EBADF)?;
        let copy =
            sys::descriptor::duplicate(number).map_err(|error| error.raw_os_error().unwrap_or(EBADF))?;
        self.descriptors.push(copy);
        Ok(())
    }

    /// One object; `Ok(false)` for one that the broker will not accept, at which both stop.
    fn object(&mut self, at: u64) -> Result<bool, i32> {
        let Some(kind) = self.peek::<u32>(at) else { return Ok(false) };
        let mut place = None;
        match kind {
            object::FD => {
                let Some(fd) = self.peek::<FdObject>(at) else { return Ok(false) };
                self.descriptor(fd.fd as u32)?;
            }
            object::PTR => {
                let Some(buffer) = self.peek::<BufferObject>(at) else { return Ok(false) };
                let Some(rounded) = round_up(buffer.length) else { return Ok(false) };
                if rounded > self.most {
                    return Ok(false);
                }
                copy(self.outbox, self.next, buffer.buffer, buffer.length, &mut self.vouched)?;
                place = Some((self.next, buffer.length));
                self.next += rounded;
                self.most -= rounded;
            }
            object::FDA => {
                let Some(array) = self.peek::<FdArrayObject>(at) else { return Ok(false) };
                return self.array(array);
            }
            _ => {}
        }
        self.buffers.push(place);
        Ok(true)
    }

    fn array(&mut self, array: FdArrayObject) -> Result<bool, i32> {
        let parent = usize::try_from(array.parent).ok().and_then(|index| *self.buffers.get(index)?);
        let Some((start, len)) = parent else { return Ok(false) };
        let end = array.num_fds.checked_mul(4).and_then(|bytes| bytes.checked_add(array.parent_offset));
        if end.is_none_or(|end| end > len) || !array.parent_offset.is_multiple_of(4) {
            return Ok(false);
        }
        for index in 0..array.num_fds {
            let mut number = [0; 4];
            self.outbox.copy_out((start + array.parent_offset + index * 4) as usize, &mut number);
            self.descriptor(u32::from_ne_bytes(number))?;
        }
        self.buffers.push(None);
        Ok(true)
    }
}

/// Fills the outbox and `transact` from a command. Returns the descriptors to send along.
pub(super) fn gather(
    outbox: &SealedMemory,
    data: &TransactionData,
    buffers_size: Option<u64>,
    payload: Payload<'_>,
    transact: &mut Transact,
) -> Vec<OwnedFd> {
    transact.data_size = data.data_size;
    transact.offsets_size = data.offsets_size;
    transact.buffers_size = buffers_size.unwrap_or(0);
    let mut vouched = Vouched::new(payload);
    let mut parts = || -> Result<(u64, u64), i32> {
        copy(outbox, 0, data.buffer, data.data_size, &mut vouched)
            .map_err(|errno| if errno == EFAULT && begins_with_an_object(data) { EINVAL } else { errno })?;
        let offsets_at = round_up(data.data_size).ok_or(ENOSPC)?;
        copy(outbox, offsets_at, data.offsets, data.offsets_size, &mut vouched)?;
        let next = round_up(data.offsets_size).and_then(|len| offsets_at.checked_add(len)).ok_or(ENOSPC)?;
        Ok((offsets_at, next))
    };
    let (offsets_at, next) = match parts() {
        Ok(places) => places,
        Err(errno) => {
            transact.data_fault = errno;
            return Vec::new();
        }
    };
    let mut walk = Walk {
        outbox,
        vouched,
        data_size: data.data_size,
        next,
        most: transact.buffers_size.min(OUTBOX_SIZE as u64),
        buffers: Vec::new(),
        descriptors: Vec::new(),
    };
    for index in 0..data.offsets_size / 8 {
        let mut at = [0; 8];
        outbox.copy_out((offsets_at + index * 8) as usize, &mut at);
        match walk.object(u64::from_ne_bytes(at)) {
            Ok(true) => {}
            Ok(false) => break,
            Err(errno) => {
                (transact.fault_object, transact.fault_errno) = (index as u32, errno);
                break;
            }
        }
    }
    transact.gathered = walk.next - next;
    walk.descriptors
}

/// Whether the first object is at the very start. The kernel looks at an object before it copies what
/// is in front of it, and takes one that it cannot read for one of no type (contract OBJ-01).
fn begins_with_an_object(data: &TransactionData) -> bool {
    let mut first = [0; 8];
    data.offsets_size >= 8 && own_memory::read(data.offsets, &mut first).is_ok() && first == [0; 8]
}
