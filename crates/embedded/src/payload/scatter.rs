//! Positions of a payload's objects, and the rules of scattered buffers, for sender, broker and receiver.
//! Not here: translation of nodes, handles and descriptors (`broker::core`), the owner of the bytes ([`View`]).
//! Facts: contract BUF-01, OBJ-01, OBJ-15 to OBJ-18; `binder_get_object`, `binder_validate_ptr`,
//! `binder_validate_fixup`, `binder_fixup_parent`, Linux 7.2. An offset of 0 means "no object" in the C
//! driver, so a buffer that stands there can never be a parent.
//!
//! Refusals are errnos. With several faults, the C driver's order of checks decides. `packed` accepts most payloads
//! faster, and never refuses one.

use abi::codes::object;
use abi::layout::{BufferObject, FdArrayObject, FdObject, FlatBinderObject};
use sys::errno::{EFAULT, EINVAL};
use zerocopy::FromBytes;

/// Alignment of the parts of a payload, in bytes.
pub(crate) const ALIGN: u64 = 8;

/// Bytes of a pointer in a parent.
pub(crate) const POINTER: u64 = 8;

pub(crate) const BUFFER_SIZE: usize = size_of::<BufferObject>();
const FD_ARRAY_SIZE: usize = size_of::<FdArrayObject>();

/// Offsets of a payload's parts, from its start; each part is rounded up to [`ALIGN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes of data, at the start.
    pub(crate) data_size: u64,
    pub(crate) offsets: u64,
    pub(crate) offsets_size: u64,
    pub(crate) scattered: u64,
    /// End of the space for scattered buffers; not rounded.
    pub(crate) end: u64,
}

impl Layout {
    /// `None` if the sum overflows.
    pub(crate) fn of(data_size: u64, offsets_size: u64, buffers_size: u64) -> Option<Self> {
        let offsets = data_size.checked_next_multiple_of(ALIGN)?;
        let scattered = offsets.checked_add(offsets_size.checked_next_multiple_of(ALIGN)?)?;
        let end = scattered.checked_add(buffers_size)?;
        Some(Self { data_size, offsets, offsets_size, scattered, end })
    }

    /// Whether the sizes are valid (contract OBJ-02).
    pub(crate) fn is_aligned(&self) -> bool {
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
        object::FDA => FD_ARRAY_SIZE,
        object::PTR => BUFFER_SIZE,
        _ => return None,
    })
}

/// An object that lies completely and aligned in the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundObject {
    pub(crate) kind: u32,
    pub(crate) at: u64,
    pub(crate) size: u64,
}

/// Access to a payload that no other process can change.
pub(crate) trait View {
    fn layout(&self) -> &Layout;

    /// Reads bytes of data or offsets; `None` if any is missing.
    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]>;

    /// Rewrites bytes; `None` if any is missing. A view that only checks the rules writes nothing.
    fn put(&mut self, at: u64, bytes: &[u8]) -> Option<()>;

    /// The offset of the object with this index.
    fn offset(&self, index: u64) -> Option<u64> {
        let at = self.layout().offsets.checked_add(index.checked_mul(8)?)?;
        (at < self.layout().scattered).then(|| self.get(at).map(u64::from_ne_bytes)).flatten()
    }

    /// The object at this offset of the data.
    fn object(&self, offset: u64) -> Option<FoundObject> {
        let size = self.layout().data_size;
        if offset >= size || !offset.is_multiple_of(4) || size - offset < 4 {
            return None;
        }
        let kind = u32::from_ne_bytes(self.get(offset)?);
        let needed = size_of_kind(kind)? as u64;
        (needed <= size - offset).then_some(FoundObject { kind, at: offset, size: needed })
    }

    /// The PTR object at this offset of the data.
    fn pointer(&self, offset: u64) -> Option<BufferObject> {
        let last = self.layout().data_size.checked_sub(BUFFER_SIZE as u64)?;
        if offset > last || !offset.is_multiple_of(4) {
            return None;
        }
        let buffer = BufferObject::read_from_bytes(&self.get::<BUFFER_SIZE>(offset)?).ok()?;
        (buffer.kind == object::PTR).then_some(buffer)
    }
}

/// A PTR object and its offset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pointer {
    pub(crate) at: u64,
    pub(crate) buffer: BufferObject,
}

/// A walk over the objects of a payload, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    index: u64,
    /// End of the last object.
    end: u64,
    /// Offset of the next scattered buffer.
    cursor: u64,
    /// The buffer object that may be fixed up next (0 for none), and the lowest permitted offset (contract OBJ-17,
    /// OBJ-18).
    last_object: u64,
    last_min: u64,
    /// The buffer that was placed last, in its present state, and its index: usually the next one's parent.
    placed: Option<(u64, Pointer)>,
}

impl Walk {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { index: 0, end: 0, cursor: layout.scattered, last_object: 0, last_min: 0, placed: None }
    }

    /// Objects seen so far.
    pub(crate) fn count(&self) -> u64 {
        self.index
    }

    /// Offset of the next scattered buffer.
    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next object; `None` behind the last (contract OBJ-01).
    pub(crate) fn next(&mut self, view: &impl View) -> Option<Result<FoundObject, i32>> {
        let offset = match self.next_offset(view)? {
            Ok(offset) => offset,
            Err(errno) => return Some(Err(errno)),
        };
        let Some(found) = view.object(offset) else { return Some(Err(EINVAL)) };
        self.end = offset + found.size;
        Some(Ok(found))
    }

    /// The next object, which must be a PTR object with room for its buffer.
    pub(crate) fn next_pointer(&mut self, view: &impl View) -> Option<Result<Pointer, i32>> {
        let at = match self.next_offset(view)? {
            Ok(offset) => offset,
            Err(errno) => return Some(Err(errno)),
        };
        self.end = at + BUFFER_SIZE as u64;
        Some(self.pointer(view, at))
    }

    fn next_offset(&mut self, view: &impl View) -> Option<Result<u64, i32>> {
        let offset = view.offset(self.index)?;
        self.index += 1;
        Some(if offset < self.end || offset > view.layout().data_size { Err(EFAULT) } else { Ok(offset) })
    }

    /// The PTR object at a given offset, if there is room for its buffer.
    pub(crate) fn pointer(&self, view: &impl View, at: u64) -> Result<Pointer, i32> {
        let buffer = view.pointer(at).ok_or(EINVAL)?;
        if buffer.length > view.layout().end - self.cursor { Err(EINVAL) } else { Ok(Pointer { at, buffer }) }
    }

    /// Places the buffer of the last object, and writes its address into the object and its parent; `base` is the
    /// payload's address.
    pub(crate) fn place(&mut self, view: &mut impl View, pointer: Pointer, base: u64) -> Result<(), i32> {
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
    fn fix_parent(
        &self,
        view: &mut impl View,
        child: &BufferObject,
        address: u64,
        base: u64,
    ) -> Result<(), i32> {
        let parent = self.parent(view, child.parent)?;
        if !self.may_fix(view, parent.at, child.parent_offset)
            || !child.parent_offset.is_multiple_of(4)
            || parent.buffer.length < POINTER
            || child.parent_offset > parent.buffer.length - POINTER
        {
            return Err(EINVAL);
        }
        view.put(inside(&parent.buffer, base, child.parent_offset), &address.to_ne_bytes()).ok_or(EFAULT)
    }

    /// The PTR object with this index, before the last one.
    fn parent(&self, view: &impl View, index: u64) -> Result<Pointer, i32> {
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

    /// Whether a fix-up is allowed there: in the last buffer or one of its ancestors, at ascending offsets. The
    /// ancestor becomes the last buffer, so all climbs of a payload together take at most as many steps as it has
    /// objects.
    fn may_fix(&self, view: &impl View, parent_at: u64, offset: u64) -> bool {
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

    /// Parent and fields of an FDA object whose descriptors lie in its parent (contract OBJ-19). They count as fixed
    /// up.
    pub(crate) fn fd_array(
        &mut self,
        view: &impl View,
        found: FoundObject,
    ) -> Result<(Pointer, FdArrayObject), i32> {
        let bytes = view.get::<FD_ARRAY_SIZE>(found.at).ok_or(EINVAL)?;
        let array: FdArrayObject = zerocopy::transmute!(bytes);
        let FdArrayObject { num_fds, parent_offset, .. } = array;
        let parent = self.parent(view, array.parent)?;
        let len = num_fds.checked_mul(4).filter(|len| *len <= parent.buffer.length).ok_or(EINVAL)?;
        let fits = parent_offset <= parent.buffer.length - len && parent_offset.is_multiple_of(4);
        if !self.may_fix(view, parent.at, parent_offset) || (num_fds > 0 && !fits) {
            return Err(EINVAL);
        }
        self.fixed(parent.at, parent_offset.saturating_add(len));
        Ok((parent, array))
    }

    /// Records that the buffer at `at` was fixed up to `min`.
    fn fixed(&mut self, at: u64, min: u64) {
        (self.last_object, self.last_min) = (at, min);
    }
}

/// Offset in the payload of a byte of a placed scattered buffer.
pub(crate) fn inside(buffer: &BufferObject, base: u64, offset: u64) -> u64 {
    buffer.buffer.wrapping_sub(base).wrapping_add(offset)
}
