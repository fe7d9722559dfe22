//! One delivered buffer, given back to the driver when dropped.
//! Not here: reading values from it (`binder::reader`, `hwbinder::reader`).
//! Facts: contract BUF-05, BUF-06, OBJ-11, OBJ-13, OW-02, TX-04.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use abi::codes::object;
use abi::layout::BufferObject;
use abi::{BufferAddress, Delivery};
use zerocopy::FromBytes;

use crate::error::ProtocolError;
use crate::runtime::Runtime;
use crate::runtime::thread::ThreadState;

/// The bytes of one delivered transaction or reply, in the receiving area.
///
/// Dropping *queues* `BC_FREE_BUFFER`; the thread's next exchange carries it (`thread` says when
/// that is). Do not hold one across a wait: a oneway buffer still out delays the node's next oneway,
/// and the receiving area is small. The file descriptors that came with it are closed at the drop;
/// readers duplicate those they keep. Stays on the thread that received it.
pub struct Received<'t> {
    pub(crate) runtime: &'t dyn Runtime,
    pub(crate) thread: Rc<ThreadState>,
    data: &'t [u8],
    offsets: &'t [u8],
    buffer: BufferAddress,
    fds: Vec<(u64, OwnedFd)>,
    /// Bytes of buffers behind PTR objects.
    scattered: u64,
    /// It holds no object and no file, so giving it back may wait.
    plain: bool,
}

/// The payload of a delivery, for readers whose values may become part of the reply. It is valid until the
/// buffer's `BC_FREE_BUFFER`, which is written behind the reply: do not keep one longer than its
/// [`Received`] or than the reply written with it.
#[derive(Clone, Copy)]
pub(crate) struct Lent<'t> {
    pub(crate) runtime: &'t dyn Runtime,
    pub(crate) data: &'t [u8],
    pub(crate) offsets: &'t [u8],
}

impl<'t> Received<'t> {
    /// Takes over a delivery; its buffer is given back also on error.
    pub(crate) fn adopt(
        runtime: &'t dyn Runtime,
        thread: Rc<ThreadState>,
        delivery: &Delivery,
    ) -> Result<Self, ProtocolError> {
        let Delivery { buffer, data_size, offsets, offsets_size, .. } = *delivery;
        let parts = match offsets_size {
            0 => runtime.lent(buffer.0, data_size).map(|data| (data, &[][..])),
            _ => with_offsets(runtime, (buffer.0, data_size), (offsets, offsets_size)),
        };
        let Some((data, offsets)) = parts else {
            thread.queue_free(buffer, data_size, false);
            return Err(ProtocolError::OutsideMap { address: buffer.0, len: data_size });
        };
        let mut received =
            Self { runtime, thread, data, offsets, buffer, fds: Vec::new(), scattered: 0, plain: true };
        if !received.offsets.is_empty() {
            received.take_objects();
        }
        Ok(received)
    }

    /// Takes over the delivered descriptors, so that unread ones are closed, and classifies the objects.
    fn take_objects(&mut self) {
        for offset in object_offsets(self.offsets) {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let object = self.data.get(start..).unwrap_or_default();
            if let Ok((BufferObject { kind: object::PTR, length, .. }, _)) =
                BufferObject::read_from_prefix(object)
            {
                self.scattered = self.scattered.saturating_add(length);
                continue;
            }
            match object.first_chunk().map(|kind| u32::from_ne_bytes(*kind)) {
                // Cut short, as no driver delivers it.
                Some(object::PTR) => {}
                Some(object::FD) => {
                    self.plain = false;
                    if let Some(fd) = self.runtime.take_fd(self.buffer.0 + offset) {
                        self.fds.push((offset, fd));
                    }
                }
                _ => self.plain = false,
            }
        }
    }

    /// The bytes and what reads them, for as long as the driver leaves them here; see [`Lent`].
    pub(crate) fn lent(&self) -> Lent<'t> {
        Lent { runtime: self.runtime, data: self.data, offsets: self.offsets }
    }

    /// The payload.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.data
    }

    /// Where in the payload each object stands, as the driver stored it (8 bytes each).
    #[must_use]
    pub fn offsets(&self) -> &[u8] {
        self.offsets
    }

    /// The descriptor that came with the object at `offset`.
    #[must_use]
    pub fn fd(&self, offset: u64) -> Option<BorrowedFd<'_>> {
        let place = self.fds.binary_search_by_key(&offset, |(at, _)| *at).ok()?;
        self.fds.get(place).map(|(_, fd)| fd.as_fd())
    }
}

/// Data and offsets, each by its address and length. Drivers put the offsets behind the data, so that most often one
/// look at the receiving area finds both.
fn with_offsets(
    runtime: &dyn Runtime,
    (data, data_size): (u64, u64),
    (offsets, offsets_size): (u64, u64),
) -> Option<(&[u8], &[u8])> {
    let rounded = data_size.checked_next_multiple_of(8)?;
    if data.checked_add(rounded) != Some(offsets) {
        return Some((runtime.lent(data, data_size)?, runtime.lent(offsets, offsets_size)?));
    }
    let (head, offsets) =
        runtime.lent(data, rounded.checked_add(offsets_size)?)?.split_at_checked(rounded as usize)?;
    Some((head.get(..data_size as usize)?, offsets))
}

/// The positions in an offsets array.
pub(crate) fn object_offsets(offsets: &[u8]) -> impl Iterator<Item = u64> + '_ {
    offsets.chunks_exact(8).filter_map(|chunk| Some(u64::from_ne_bytes(*chunk.first_chunk()?)))
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        let bytes = (self.data.len() + self.offsets.len()) as u64;
        // A length that no driver delivers must not overflow the count either.
        self.thread.queue_free(self.buffer, bytes.saturating_add(self.scattered), self.plain);
        self.runtime.settle(&self.thread);
    }
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("buffer", &self.buffer)
            .field("data_size", &self.data.len())
            .field("objects", &(self.offsets.len() / 8))
            .finish_non_exhaustive()
    }
}
