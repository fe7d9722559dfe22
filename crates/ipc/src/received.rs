//! Room: one delivered buffer, lent by the driver until dropped.
//! Not here: reading values out of it (`binder::reader`, `hwbinder::reader`).
//! Facts: contract BUF-05, BUF-06, OBJ-11, OBJ-13, OW-02, TX-04.

use std::cell::OnceCell;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use abi::codes::object;
use abi::layout::{BufferObject, FlatBinderObject};
use abi::{BufferAddress, Cookie, Delivery, Handle, NodePtr};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::ProtocolError;
use crate::runtime::Runtime;
use crate::status_code::StatusCode;
use crate::target::Binder;
use crate::thread::ThreadState;

/// One delivered transaction's or reply's bytes, the driver's until dropped.
///
/// Dropping *queues* `BC_FREE_BUFFER`; the thread's next exchange carries it (`thread` says when
/// that is). Do not hold one across a wait: a oneway buffer still out delays the node's next oneway,
/// and the receiving area is small. The file descriptors that came with it are closed at the drop;
/// readers duplicate those they keep. Stays on the thread that received it.
pub struct Received<'t> {
    pub(crate) runtime: &'t dyn Runtime,
    pub(crate) thread: Rc<ThreadState>,
    data: &'t [u8],
    /// Offsets; or, if `bare`, structure and elements of a vector at the end that came without its objects.
    tail: &'t [u8],
    extra: OnceCell<Box<Extra>>,
    buffer: BufferAddress,
    /// Bytes of buffers behind PTR objects.
    scattered: u64,
    /// Nothing in it keeps anybody's object or file: its return may wait.
    plain: bool,
    bare: bool,
}

/// What few deliveries have; apart, as deliveries are handed from function to function.
#[derive(Default)]
struct Extra {
    fds: Vec<(u64, OwnedFd)>,
    /// Data and offsets with the objects that were left out, for whoever asks.
    data: Vec<u8>,
    offsets: [u64; 2],
}

/// What a delivery consists of, for readers whose values the reply may be made of. It is the
/// driver's until the buffer's `BC_FREE_BUFFER`, which goes out behind the reply: whoever holds one
/// keeps it no longer than the [`Received`] it is from, or than the reply that is written with it.
#[derive(Clone, Copy)]
pub(crate) struct Lent<'t> {
    pub(crate) runtime: &'t dyn Runtime,
    pub(crate) data: &'t [u8],
    pub(crate) offsets: &'t [u8],
    pub(crate) vector: &'t [u8],
}

/// The objects of a vector that came without them.
pub(crate) fn objects_of(vector: &[u8]) -> [BufferObject; 2] {
    let structure = vector.as_ptr() as u64;
    let length = (vector.len() as u64).saturating_sub(STRUCTURE);
    BufferObject::of_vector([structure, structure + STRUCTURE], length, 0)
}

/// Bytes of a vector's structure.
const STRUCTURE: u64 = 16;

/// The object that a `flat_binder_object` of a delivery names.
pub(crate) fn translated(runtime: &dyn Runtime, flat: &FlatBinderObject) -> Result<Binder, StatusCode> {
    match flat.kind {
        object::BINDER => {
            let node = runtime.shared().nodes.find(NodePtr(flat.binder), Cookie(flat.cookie));
            node.map(Binder::Local).ok_or(StatusCode::DEAD_OBJECT)
        }
        object::HANDLE => {
            let handle = Handle(flat.binder as u32);
            Ok(Binder::Remote(runtime.shared().proxies.proxy(runtime.hold(), handle)))
        }
        _ => Err(StatusCode::BAD_TYPE),
    }
}

impl<'t> Received<'t> {
    /// Takes over a delivery: whatever comes of it, its buffer goes back.
    #[inline]
    pub(crate) fn adopt(
        runtime: &'t dyn Runtime,
        thread: Rc<ThreadState>,
        delivery: &Delivery,
    ) -> Result<Self, ProtocolError> {
        let Delivery { buffer, data_size, offsets, offsets_size, .. } = *delivery;
        let vector = thread.vector.take();
        let parts = match vector {
            Some(elements) => with_vector(runtime, (buffer.0, data_size), elements),
            None if offsets_size == 0 => runtime.lent(buffer.0, data_size).map(|data| [data, &[]]),
            None => with_offsets(runtime, (buffer.0, data_size), (offsets, offsets_size)),
        };
        let Some([data, tail]) = parts else {
            thread.queue_free(buffer, data_size, false);
            return Err(ProtocolError::OutsideMap { address: buffer.0, len: data_size });
        };
        let (extra, bare) = (OnceCell::new(), vector.is_some());
        let mut received =
            Self { runtime, thread, data, tail, extra, buffer, scattered: 0, plain: true, bare };
        if !bare && !tail.is_empty() {
            received.take_objects();
        }
        Ok(received)
    }

    /// Takes over every descriptor that came along, so that none outlives the buffer unread, and
    /// looks what else there is.
    fn take_objects(&mut self) {
        for offset in object_offsets(self.tail) {
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
                        self.extra.get_or_init(Box::default);
                        if let Some(extra) = self.extra.get_mut() {
                            extra.fds.push((offset, fd));
                        }
                    }
                }
                _ => self.plain = false,
            }
        }
    }

    /// The bytes and what reads them, for as long as the driver leaves them here; see [`Lent`].
    #[inline]
    pub(crate) fn lent(&self) -> Lent<'t> {
        let (offsets, vector): (&[u8], &[u8]) = if self.bare { (&[], self.tail) } else { (self.tail, &[]) };
        Lent { runtime: self.runtime, data: self.data, offsets, vector }
    }

    /// The payload.
    #[must_use]
    #[inline]
    pub fn data(&self) -> &[u8] {
        if self.bare { &self.whole().data } else { self.data }
    }

    /// Where in the payload each object stands, as the driver stored it (8 bytes each).
    #[must_use]
    pub fn offsets(&self) -> &[u8] {
        if self.bare { self.whole().offsets.as_bytes() } else { self.tail }
    }

    /// Few want it: HIDL's reader needs no objects, and others' payloads end with no vector.
    #[cold]
    fn whole(&self) -> &Extra {
        self.extra.get_or_init(|| {
            let at = self.data.len() as u64;
            let data = [self.data, objects_of(self.tail).as_bytes()].concat();
            let offsets = [at, at + size_of::<BufferObject>() as u64];
            Box::new(Extra { fds: Vec::new(), data, offsets })
        })
    }

    /// The descriptor that came with the object at `offset`.
    #[must_use]
    pub fn fd(&self, offset: u64) -> Option<BorrowedFd<'_>> {
        self.extra.get()?.fds.iter().find(|(at, _)| *at == offset).map(|(_, fd)| fd.as_fd())
    }
}

/// Data and a vector without its objects.
#[inline]
fn with_vector(runtime: &dyn Runtime, (data, size): (u64, u64), elements: u64) -> Option<[&[u8]; 2]> {
    let rounded = size.checked_next_multiple_of(8)?;
    let whole = runtime.lent(data, rounded.checked_add(elements.checked_add(STRUCTURE)?)?)?;
    let (data, vector) = whole.split_at_checked(rounded as usize)?;
    Some([data.get(..size as usize)?, vector])
}

/// Data and offsets, each by its address and length. Drivers put the offsets behind the data.
#[inline(never)]
fn with_offsets(
    runtime: &dyn Runtime,
    (data, data_size): (u64, u64),
    (offsets, offsets_size): (u64, u64),
) -> Option<[&[u8]; 2]> {
    let rounded = data_size.checked_next_multiple_of(8)?;
    if data.checked_add(rounded) != Some(offsets) {
        return Some([runtime.lent(data, data_size)?, runtime.lent(offsets, offsets_size)?]);
    }
    let (head, offsets) =
        runtime.lent(data, rounded.checked_add(offsets_size)?)?.split_at_checked(rounded as usize)?;
    Some([head.get(..data_size as usize)?, offsets])
}

/// The positions in an offsets array.
pub(crate) fn object_offsets(offsets: &[u8]) -> impl Iterator<Item = u64> + '_ {
    offsets.chunks_exact(8).filter_map(|chunk| Some(u64::from_ne_bytes(*chunk.first_chunk()?)))
}

impl Drop for Received<'_> {
    #[inline]
    fn drop(&mut self) {
        let bytes = (self.data.len() + self.tail.len()) as u64;
        // A length that no driver delivers must not overflow the count either.
        self.thread.queue_free(self.buffer, bytes.saturating_add(self.scattered), self.plain);
        self.runtime.settle(&self.thread);
    }
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("buffer", &self.buffer)
            .field("data_size", &self.data().len())
            .field("objects", &(self.offsets().len() / 8))
            .finish_non_exhaustive()
    }
}
