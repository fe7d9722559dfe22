//! Room: a payload on its way into a lane: whether it may go there, and where its bytes are.
//! Not here: the way through the broker (`gather`), the lane (`channel::lane`), the rules that objects
//! keep (`embedded::objects`).
//! Facts: contract OBJ-01, OBJ-02, OBJ-15 to OBJ-18.
//!
//! Scattered buffers are the only objects that a lane carries: nobody but the two ends need know of
//! them. Whatever else is listed, and whatever breaks a rule, goes through the broker, which refuses it
//! as the kernel would. The receiver checks all of it again.

use abi::Payload;
use abi::layout::{BufferObject, TransactionData};

use super::gather::Vouched;
use crate::embedded::channel::Corrupt;
use crate::embedded::channel::lane::{LARGEST, Shape, Source, behind_head};
use crate::embedded::objects::{ALIGN, FEW, Layout, PAIR, Piece, STRUCTURE, Vector, View, Walk, few};

/// A payload that a lane carries.
#[derive(Debug)]
pub(super) struct Outgoing<'p> {
    shape: Shape,
    bytes: Bytes<'p>,
}

#[derive(Debug)]
enum Bytes<'p> {
    /// Data and nothing else. As in the next two, the caller has them, and vouches for that.
    Plain(&'p [u8]),
    /// What is sent of a packed payload, in its order.
    Packed { head: &'p [u8], second: &'p [u8; 8], elements: &'p [u8] },
    /// Data, offsets, the first few buffers, where each was found, and where the others are.
    Lent { data: &'p [u8], offsets: &'p [u8], first: [&'p [u8]; FEW], others: &'p [&'p [u8]] },
    /// They were somewhere else; laid out as they are sent.
    Copied(Vec<u8>),
}

/// What a command points to, if a lane carries it. Nothing is copied or allocated if the caller vouches
/// for all of it.
#[inline]
pub(super) fn outgoing<'p>(
    data: &TransactionData,
    buffers_size: Option<u64>,
    payload: &Payload<'p>,
) -> Option<Outgoing<'p>> {
    if payload.vector
        && let Some(vector) = told(data, buffers_size, payload)
    {
        return Some(vector);
    }
    match plain(data, buffers_size, payload) {
        Some(bytes) => Some(Outgoing { shape: Shape::plain(bytes.len()).ok()?, bytes: Bytes::Plain(bytes) }),
        None => elsewhere(data, buffers_size, *payload),
    }
}

/// The bytes of a payload that is nothing else, and small enough for a lane, if the caller vouches for just these.
#[inline]
pub(super) fn plain<'p>(
    data: &TransactionData,
    buffers_size: Option<u64>,
    payload: &Payload<'p>,
) -> Option<&'p [u8]> {
    let bytes = payload.data;
    let same = data.buffer == bytes.as_ptr() as u64 && data.data_size == bytes.len() as u64;
    (same && data.offsets_size == 0 && buffers_size.is_none() && bytes.len() <= LARGEST).then_some(bytes)
}

/// Not just the bytes that the caller vouches for.
#[inline(never)]
fn elsewhere<'p>(
    data: &TransactionData,
    buffers_size: Option<u64>,
    payload: Payload<'p>,
) -> Option<Outgoing<'p>> {
    let layout = Layout::of(data.data_size, data.offsets_size, buffers_size.unwrap_or(0))?;
    if layout.end > LARGEST as u64 || !layout.is_aligned() {
        return None;
    }
    let vouched = Vouched::new(payload);
    match vouched.data(data) {
        Some(bytes) if data.offsets_size == 0 => {
            Some(Outgoing { shape: Shape::plain(bytes.len()).ok()?, bytes: Bytes::Plain(bytes) })
        }
        Some(bytes) => match packed(data, bytes, &layout, vouched) {
            Some(outgoing) => Some(outgoing),
            None => match lent(data, bytes, layout, vouched) {
                Lent::All(outgoing) => Some(outgoing),
                Lent::InPart => copied(data, layout, vouched),
                Lent::Unfit => None,
            },
        },
        None => copied(data, layout, vouched),
    }
}

/// A small payload that ends with a vector, as the caller says. If it does not, the receiver gets another
/// than the command described: no harm to anybody else, as it makes the objects by itself.
#[inline]
fn told<'p>(
    data: &TransactionData,
    buffers_size: Option<u64>,
    payload: &Payload<'p>,
) -> Option<Outgoing<'p>> {
    let &[structure, elements] = payload.buffers else { return None };
    let (bytes, room) = (payload.data, elements.len().next_multiple_of(ALIGN as usize) as u64 + STRUCTURE);
    let same = data.buffer == bytes.as_ptr() as u64 && data.data_size == bytes.len() as u64;
    if !same || data.offsets_size != 2 * ALIGN || buffers_size != Some(room) {
        return None;
    }
    let vector = Vector { head: bytes.len().checked_sub(PAIR)?, elements: elements.len() as u64 };
    let second = structure.as_array::<{ STRUCTURE as usize }>()?.last_chunk()?;
    let shape = Shape::packed(vector).filter(|_| vector.is_sound())?;
    Some(Outgoing { shape, bytes: Bytes::Packed { head: bytes.get(..vector.head)?, second, elements } })
}

/// A small payload that ends with a vector. `None`: it is another, or some of it is elsewhere.
#[inline(never)]
fn packed<'p>(
    data: &TransactionData,
    bytes: &'p [u8],
    layout: &Layout,
    mut vouched: Vouched<'p>,
) -> Option<Outgoing<'p>> {
    let (vector, [structure, elements]) = Vector::of(layout, bytes, vouched.offsets(data)?)?;
    let shape = Shape::packed(vector)?;
    let second = vouched.buffer(structure, STRUCTURE)?.last_chunk()?;
    let elements = vouched.buffer(elements, vector.elements)?;
    let head = &bytes[..vector.head];
    Some(Outgoing { shape, bytes: Bytes::Packed { head, second, elements } })
}

/// What came of looking at objects where the caller has them.
enum Lent<'p> {
    All(Outgoing<'p>),
    /// Some of the bytes are elsewhere.
    InPart,
    /// Nothing for a lane.
    Unfit,
}

#[inline]
fn lent<'p>(data: &TransactionData, bytes: &'p [u8], layout: Layout, mut vouched: Vouched<'p>) -> Lent<'p> {
    let Some(offsets) = vouched.offsets(data) else { return Lent::InPart };
    let mut first = [&[][..]; FEW];
    let mut pieces = [Piece::default(); FEW];
    let end = match few(&layout, bytes, offsets, &mut pieces) {
        Some(end) => {
            for (place, piece) in first.iter_mut().zip(&pieces).take(offsets.len() / ALIGN as usize) {
                let Some(bytes) = vouched.buffer(piece.buffer, piece.length) else { return Lent::InPart };
                *place = bytes;
            }
            end
        }
        None => match find(Draft { layout, data: bytes, offsets }, &mut vouched, &mut first) {
            Ok(end) => end,
            Err(lent) => return lent,
        },
    };
    match Shape::of(&layout, end) {
        Ok(shape) => Lent::All(Outgoing {
            shape,
            bytes: Bytes::Lent { data: bytes, offsets, first, others: vouched.buffers() },
        }),
        Err(_) => Lent::Unfit,
    }
}

/// Finds each object's bytes, the first of them for good; returns where the last buffer ends.
fn find<'p>(
    mut draft: Draft<'_>,
    vouched: &mut Vouched<'p>,
    first: &mut [&'p [u8]; FEW],
) -> Result<u64, Lent<'p>> {
    let mut walk = Walk::new(&draft.layout);
    while let Some(buffer) = step(&mut walk, &mut draft).map_err(|NoLane| Lent::Unfit)? {
        let bytes = vouched.buffer(buffer.buffer, buffer.length).ok_or(Lent::InPart)?;
        if let Some(place) = first.get_mut(walk.count() as usize - 1) {
            *place = bytes;
        }
    }
    Ok(walk.cursor())
}

fn copied<'p>(data: &TransactionData, layout: Layout, mut vouched: Vouched<'p>) -> Option<Outgoing<'p>> {
    let mut bytes = vec![0; layout.end as usize];
    let (head, buffers) = bytes.split_at_mut(layout.scattered as usize);
    let (text, offsets) = head.split_at_mut(layout.offsets as usize);
    let text = &mut text[..data.data_size as usize];
    vouched.copy(data.buffer, text).ok()?;
    vouched.copy(data.offsets, offsets).ok()?;
    let mut draft = Draft { layout, data: text, offsets };
    let mut walk = Walk::new(&layout);
    loop {
        let at = (walk.cursor() - layout.scattered) as usize;
        let Some(buffer) = step(&mut walk, &mut draft).ok()? else { break };
        vouched.copy(buffer.buffer, &mut buffers[at..at + buffer.length as usize]).ok()?;
    }
    let shape = if data.offsets_size == 0 {
        Shape::plain(data.data_size as usize)
    } else {
        Shape::of(&layout, walk.cursor())
    };
    let shape = shape.ok()?;
    bytes.truncate(shape.len());
    Some(Outgoing { shape, bytes: Bytes::Copied(bytes) })
}

/// Not for a lane.
struct NoLane;

/// The next object's buffer, if the object keeps the rules and is one.
fn step(walk: &mut Walk, draft: &mut Draft<'_>) -> Result<Option<BufferObject>, NoLane> {
    let Some(pointer) = walk.next_pointer(draft) else { return Ok(None) };
    let pointer = pointer.map_err(|_| NoLane)?;
    walk.place(draft, pointer, 0).map_err(|_| NoLane)?;
    Ok(Some(pointer.buffer))
}

/// Data and offsets as they are sent: the receiver rewrites its own.
struct Draft<'d> {
    layout: Layout,
    data: &'d [u8],
    offsets: &'d [u8],
}

impl View for Draft<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    fn get<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let (part, at) = match at.checked_sub(self.layout.offsets) {
            Some(at) => (self.offsets, at),
            None => (self.data, at),
        };
        part.get(at as usize..)?.first_chunk().copied()
    }

    fn put(&mut self, _at: u64, _bytes: &[u8]) -> Option<()> {
        Some(())
    }
}

impl Source for Outgoing<'_> {
    #[inline]
    fn shape(&self) -> Result<Shape, Corrupt> {
        Ok(self.shape)
    }

    #[inline]
    fn parts(&self, mut give: impl FnMut(usize, &[u8])) {
        match &self.bytes {
            Bytes::Plain(bytes) => give(0, bytes),
            _ => self.several_parts(give),
        }
    }
}

impl Outgoing<'_> {
    #[inline(never)]
    fn several_parts(&self, mut give: impl FnMut(usize, &[u8])) {
        let (data, offsets, first, others) = match &self.bytes {
            Bytes::Plain(bytes) => return give(0, bytes),
            Bytes::Copied(bytes) => return give(0, bytes),
            Bytes::Packed { head, second, elements } => {
                let behind = behind_head(head.len());
                give(0, head);
                give(behind + second.len(), *second);
                return give(behind + STRUCTURE as usize, elements);
            }
            Bytes::Lent { data, offsets, first, others } => (*data, *offsets, first, *others),
        };
        give(0, data);
        if offsets.is_empty() {
            return;
        }
        let layout = self.shape.layout();
        give(layout.offsets as usize, offsets);
        let mut at = layout.scattered as usize;
        let mut give = |bytes: &[u8]| {
            give(at, bytes);
            at += bytes.len().next_multiple_of(ALIGN as usize);
        };
        let objects = usize::from(self.shape.objects);
        first.iter().take(objects).for_each(|bytes| give(bytes));
        if objects > FEW {
            rest(Draft { layout, data, offsets }, objects, others, give);
        }
    }
}

/// The buffers behind the first few, found again in the same bytes.
#[cold]
fn rest(draft: Draft<'_>, objects: usize, buffers: &[&[u8]], mut give: impl FnMut(&[u8])) {
    let mut vouched = Vouched::new(Payload { buffers, ..Payload::default() });
    for index in FEW..objects {
        let object = draft.offset(index as u64).and_then(|at| draft.pointer(at));
        let bytes = object.and_then(|object| vouched.buffer(object.buffer, object.length));
        give(bytes.unwrap_or_default());
    }
}
