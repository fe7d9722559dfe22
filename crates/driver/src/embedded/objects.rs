//! Room: where a payload's objects stand, and the rules of scattered buffers: one home for both halves
//! of the driver, the broker and the libraries at the two ends of a lane.
//! Not here: what becomes of nodes, handles and descriptors (`broker::core`), whose bytes these are
//! ([`View`]).
//! Facts: contract BUF-01, OBJ-01, OBJ-15 to OBJ-18; `binder_get_object`, `binder_validate_ptr`,
//! `binder_validate_fixup`, `binder_fixup_parent`, Linux 7.2. An offset of 0 means "no object" in the C
//! driver, so a buffer that stands there can never be a parent.
//!
//! Refusals are errnos. Where several things are wrong the C driver's order decides. [`few`] and [`Vector`] are the
//! quick ways for most payloads, which say only yes.

mod few;
mod vector;

use abi::codes::object;
use abi::layout::{BufferObject, FdArrayObject, FdObject, FlatBinderObject};
use zerocopy::FromBytes;

pub(super) use few::{FEW, Piece, few};
pub(super) use vector::{PAIR, STRUCTURE, Vector};

const EFAULT: i32 = 14;
const EINVAL: i32 = 22;

/// What parts of a payload are rounded up to.
pub(super) const ALIGN: u64 = 8;

/// Bytes of a pointer in a parent.
const POINTER: u64 = 8;

const BUFFER_SIZE: usize = size_of::<BufferObject>();

/// Where the parts of a payload begin, from its start; each part is rounded up to [`ALIGN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of data, which are at the start.
    pub(super) data_size: u64,
    pub(super) offsets: u64,
    pub(super) offsets_size: u64,
    pub(super) scattered: u64,
    /// Behind the last scattered buffer that there is room for; not rounded.
    pub(super) end: u64,
}

impl Layout {
    /// `None` if the sum overflows.
    #[inline]
    pub(super) fn of(data_size: u64, offsets_size: u64, buffers_size: u64) -> Option<Self> {
        let offsets = data_size.checked_next_multiple_of(ALIGN)?;
        let scattered = offsets.checked_add(offsets_size.checked_next_multiple_of(ALIGN)?)?;
        let end = scattered.checked_add(buffers_size)?;
        Some(Self { data_size, offsets, offsets_size, scattered, end })
    }

    /// Whether the sizes are ones that a driver takes (contract OBJ-02).
    #[inline]
    pub(super) fn is_aligned(&self) -> bool {
        self.offsets_size.is_multiple_of(ALIGN) && self.end.is_multiple_of(ALIGN)
    }
}

/// Bytes of an object of this type; `None` for a type that no driver knows.
fn size_of_kind(kind: u32) -> Option<usize> {
    Some(match kind {
        object::BINDER | object::WEAK_BINDER | object::HANDLE | object::WEAK_HANDLE => {
            size_of::<FlatBinderObject>()
        }
        object::FD => size_of::<FdObject>(),
        object::FDA => size_of::<FdArrayObject>(),
        object::PTR => BUFFER_SIZE,
        _ => return None,
    })
}

/// An object that lies whole and aligned in the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) kind: u32,
    pub(super) at: u64,
    pub(super) size: u64,
}

/// A payload of which nobody else changes the bytes.
pub(super) trait View {
    fn layout(&self) -> &Layout;

    /// Bytes of data or offsets, if all of them are there.
    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]>;

    /// Rewrites bytes, if all of them are there. Who only asks whether the rules are kept writes nothing.
    fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()>;

    /// The offset of the object with this index.
    #[inline]
    fn offset(&self, index: u64) -> Option<u64> {
        let at = self.layout().offsets.checked_add(index.checked_mul(8)?)?;
        (at < self.layout().scattered).then(|| self.get(at).map(u64::from_ne_bytes)).flatten()
    }

    /// The object at this offset of the data.
    fn object(&self, offset: u64) -> Option<Found> {
        let size = self.layout().data_size;
        if offset >= size || !offset.is_multiple_of(4) || size - offset < 4 {
            return None;
        }
        let kind = u32::from_ne_bytes(self.get(offset)?);
        let needed = size_of_kind(kind)? as u64;
        (needed <= size - offset).then_some(Found { kind, at: offset, size: needed })
    }

    /// The PTR object at this offset of the data.
    #[inline]
    fn pointer(&self, offset: u64) -> Option<BufferObject> {
        let last = self.layout().data_size.checked_sub(BUFFER_SIZE as u64)?;
        if offset > last || !offset.is_multiple_of(4) {
            return None;
        }
        let buffer = BufferObject::read_from_bytes(&self.get::<BUFFER_SIZE>(offset)?).ok()?;
        (buffer.kind == object::PTR).then_some(buffer)
    }
}

/// A PTR object and where it stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pointer {
    pub(super) at: u64,
    pub(super) buffer: BufferObject,
}

/// How far one has come with a payload's objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    index: u64,
    /// Behind the last object.
    end: u64,
    /// Where the next scattered buffer goes.
    cursor: u64,
    /// The buffer object that may be fixed up next, at 0 for none, and from where on (contract OBJ-17,
    /// OBJ-18).
    last_object: u64,
    last_min: u64,
    /// The buffer that was given its place last, as it is now, and its index: most often the next one's
    /// parent.
    placed: Option<(u64, Pointer)>,
}

impl Walk {
    pub(super) fn new(layout: &Layout) -> Self {
        Self { index: 0, end: 0, cursor: layout.scattered, last_object: 0, last_min: 0, placed: None }
    }

    /// How many objects came.
    pub(super) fn count(&self) -> u64 {
        self.index
    }

    /// Where the next scattered buffer goes.
    #[inline]
    pub(super) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next object; `None` behind the last (contract OBJ-01).
    pub(super) fn next(&mut self, view: &impl View) -> Option<Result<Found, i32>> {
        let offset = match self.next_offset(view)? {
            Ok(offset) => offset,
            Err(errno) => return Some(Err(errno)),
        };
        let Some(found) = view.object(offset) else { return Some(Err(EINVAL)) };
        self.end = offset + found.size;
        Some(Ok(found))
    }

    /// The next object, where only PTR objects may come and there must be room for their buffers.
    #[inline]
    pub(super) fn next_pointer(&mut self, view: &impl View) -> Option<Result<Pointer, i32>> {
        let at = match self.next_offset(view)? {
            Ok(offset) => offset,
            Err(errno) => return Some(Err(errno)),
        };
        self.end = at + BUFFER_SIZE as u64;
        Some(self.pointer(view, at))
    }

    #[inline]
    fn next_offset(&mut self, view: &impl View) -> Option<Result<u64, i32>> {
        let offset = view.offset(self.index)?;
        self.index += 1;
        Some(if offset < self.end || offset > view.layout().data_size { Err(EFAULT) } else { Ok(offset) })
    }

    /// The PTR object that stands at an offset that came, if there is room for its buffer.
    #[inline]
    pub(super) fn pointer(&self, view: &impl View, at: u64) -> Result<Pointer, i32> {
        let buffer = view.pointer(at).ok_or(EINVAL)?;
        if buffer.length > view.layout().end - self.cursor { Err(EINVAL) } else { Ok(Pointer { at, buffer }) }
    }

    /// Gives the buffer of the object that came last its place, and it and its parent its address; `base`
    /// is the payload's.
    #[inline]
    pub(super) fn place(&mut self, view: &mut impl View, pointer: Pointer, base: u64) -> Result<(), i32> {
        let Pointer { at, buffer } = pointer;
        let address = base.wrapping_add(self.cursor);
        self.cursor += buffer.length.next_multiple_of(ALIGN);
        if buffer.flags & object::BUFFER_FLAG_HAS_PARENT != 0 {
            self.fix_parent(view, &buffer, address, base)?;
        }
        view.put(at + 8, &address.to_ne_bytes()).ok_or(EFAULT)?;
        self.fixed(at, 0);
        self.placed =
            Some((self.index - 1, Pointer { at, buffer: BufferObject { buffer: address, ..buffer } }));
        Ok(())
    }

    /// Writes a buffer's address into its parent.
    #[inline]
    fn fix_parent(
        &self,
        view: &mut impl View,
        child: &BufferObject,
        address: u64,
        base: u64,
    ) -> Result<(), i32> {
        let parent = self.parent(view, child.parent)?;
        if !self.may_fix(view, parent.at, child.parent_offset)
            || parent.buffer.length < POINTER
            || child.parent_offset > parent.buffer.length - POINTER
        {
            return Err(EINVAL);
        }
        view.put(inside(&parent.buffer, base, child.parent_offset), &address.to_ne_bytes()).ok_or(EFAULT)
    }

    /// The PTR object with this index, before the one that came last.
    #[inline]
    pub(super) fn parent(&self, view: &impl View, index: u64) -> Result<Pointer, i32> {
        if index.saturating_add(1) >= self.index {
            return Err(EINVAL);
        }
        if let Some((placed, pointer)) = self.placed
            && placed == index
        {
            return Ok(pointer);
        }
        let at = view.offset(index).ok_or(EINVAL)?;
        Ok(Pointer { at, buffer: view.pointer(at).ok_or(EINVAL)? })
    }

    /// Whether a fix-up may go there: into the last buffer or one of its ancestors, at offsets that
    /// do not go back. Each ancestor climbed to is the last buffer afterwards, so all climbs of a
    /// payload together are no longer than its objects are many.
    #[inline]
    pub(super) fn may_fix(&self, view: &impl View, parent_at: u64, offset: u64) -> bool {
        let (mut at, mut lowest) = (self.last_object, self.last_min);
        if at == 0 {
            return false;
        }
        while at != parent_at {
            let Some(last) = view.pointer(at) else { return false };
            if last.flags & object::BUFFER_FLAG_HAS_PARENT == 0 {
                return false;
            }
            lowest = last.parent_offset.saturating_add(POINTER);
            let Some(next) = view.offset(last.parent) else { return false };
            at = next;
        }
        offset >= lowest
    }

    /// The buffer at `at` was fixed up as far as `min`.
    #[inline]
    pub(super) fn fixed(&mut self, at: u64, min: u64) {
        (self.last_object, self.last_min) = (at, min);
    }
}

/// Where a byte of a scattered buffer that has its place lies in the payload.
#[inline]
pub(super) fn inside(buffer: &BufferObject, base: u64, offset: u64) -> u64 {
    buffer.buffer.wrapping_sub(base).wrapping_add(offset)
}
