//! Bytes of a payload made from a step's objects, and its parts that arrived.
//! Not here: the expected result (`reference`).

use abi::codes::object;
use abi::layout::{BufferObject, FlatBinderObject};
use abi::{Delivery, Payload};
use driver::{AnyConnection, Connection};
use zerocopy::{FromBytes, IntoBytes};

use crate::steps::Object;

/// Cookie of a node, chosen so that a wrong one is detected.
pub(crate) fn cookie(ptr: u64) -> u64 {
    if ptr == 0 { 0 } else { ptr + 100 }
}

/// Bytes of a payload.
pub(crate) struct Sent {
    data: Vec<u8>,
    offsets: Vec<u64>,
    buffers: Vec<Vec<u8>>,
    number: u32,
}

impl Sent {
    /// The number twice, then the objects.
    pub(crate) fn new(number: u32, objects: &[Object]) -> Self {
        let mut data = [number, number].as_bytes().to_vec();
        let (mut offsets, mut buffers) = (Vec::new(), Vec::new());
        for (index, object) in objects.iter().enumerate() {
            offsets.push(data.len() as u64);
            match *object {
                Object::Buffer { len, parent } => {
                    let bytes = pattern(number, index, len);
                    data.extend_from_slice(pointer(&bytes, parent).as_bytes());
                    buffers.push(bytes);
                }
                Object::Node { ptr, weak } => {
                    let kind = if weak { object::WEAK_BINDER } else { object::BINDER };
                    data.extend_from_slice(flat(kind, ptr, cookie(ptr)).as_bytes());
                }
                Object::Handle { handle, weak } => {
                    let kind = if weak { object::WEAK_HANDLE } else { object::HANDLE };
                    data.extend_from_slice(flat(kind, handle.into(), 0).as_bytes());
                }
            }
        }
        Self { data, offsets, buffers, number }
    }

    /// The command's transaction data, and the parts that the caller vouches for: all, some, or none.
    pub(crate) fn with<T>(&self, then: impl FnOnce(Payload<'_>, Payload<'_>) -> T) -> T {
        let buffers: Vec<&[u8]> = self.buffers.iter().map(Vec::as_slice).collect();
        let rounded = buffers.iter().map(|buffer| (buffer.len() as u64).next_multiple_of(8));
        let payload = Payload {
            data: &self.data,
            offsets: &self.offsets,
            buffers_size: (!buffers.is_empty()).then(|| rounded.sum()),
            buffers: &buffers,
        };
        let vouched = match self.number % 4 {
            0 | 1 => payload,
            2 => Payload { buffers: &buffers[..buffers.len() / 2], ..payload },
            _ => Payload::default(),
        };
        then(payload, vouched)
    }
}

fn flat(kind: u32, binder: u64, cookie: u64) -> FlatBinderObject {
    FlatBinderObject { kind, binder, cookie, ..FlatBinderObject::default() }
}

fn pointer(bytes: &[u8], parent: Option<(usize, u64)>) -> BufferObject {
    let flags = if parent.is_some() { object::BUFFER_FLAG_HAS_PARENT } else { 0 };
    let (parent, parent_offset) = parent.unwrap_or_default();
    let (buffer, length) = (bytes.as_ptr() as u64, bytes.len() as u64);
    BufferObject { kind: object::PTR, flags, buffer, length, parent: parent as u64, parent_offset }
}

/// Content of a buffer.
fn pattern(number: u32, index: usize, len: u64) -> Vec<u8> {
    (0..len).map(|at| (u64::from(number) * 31 + index as u64 * 7 + at) as u8).collect()
}

/// The number and the objects of a payload, as they lie in the receiver's area.
pub(crate) fn arrived(connection: &AnyConnection, delivery: &Delivery) -> Result<(u32, Vec<Object>), String> {
    let data = connection.lent(delivery.buffer.0, delivery.data_size).ok_or("data outside of the area")?;
    let offsets =
        connection.lent(delivery.offsets, delivery.offsets_size).ok_or("offsets outside of the area")?;
    let (number, rest) = u32::read_from_prefix(data).map_err(|_| "no number")?;
    if u32::read_from_prefix(rest).ok().map(|(again, _)| again) != Some(number) {
        return Err(format!("the bytes are not those that were sent: {data:?}"));
    }
    let (mut objects, mut buffers) = (Vec::new(), Vec::new());
    for offset in offsets.chunks_exact(8) {
        let at = u64::from_ne_bytes(offset.try_into().expect("8 bytes")) as usize;
        let (kind, _) = u32::read_from_prefix(&data[at..]).map_err(|_| "an object cut short")?;
        objects.push(if kind == object::PTR {
            let (buffer, _) =
                BufferObject::read_from_prefix(&data[at..]).map_err(|_| "a buffer cut short")?;
            buffers.push((objects.len(), buffer));
            let parented = buffer.flags & object::BUFFER_FLAG_HAS_PARENT != 0;
            let parent = parented.then_some((buffer.parent as usize, buffer.parent_offset));
            Object::Buffer { len: buffer.length, parent }
        } else {
            flat_arrived(&data[at..])?
        });
    }
    scattered(connection, number, delivery.offsets + delivery.offsets_size, &buffers)?;
    Ok((number, objects))
}

fn flat_arrived(data: &[u8]) -> Result<Object, String> {
    let (object, _) = FlatBinderObject::read_from_prefix(data).map_err(|_| "an object cut short")?;
    let FlatBinderObject { kind, binder, cookie: its, .. } = object;
    let weak = matches!(kind, object::WEAK_BINDER | object::WEAK_HANDLE);
    match kind {
        object::BINDER | object::WEAK_BINDER if its == cookie(binder) => {
            Ok(Object::Node { ptr: binder, weak })
        }
        object::HANDLE | object::WEAK_HANDLE if its == 0 && binder >> 32 == 0 => {
            Ok(Object::Handle { handle: binder as u32, weak })
        }
        _ => Err(format!("{object:?}")),
    }
}

/// Whether buffers follow one another, equal to those sent except for the pointers to their children.
fn scattered(
    connection: &AnyConnection,
    number: u32,
    start: u64,
    buffers: &[(usize, BufferObject)],
) -> Result<(), String> {
    let mut next = start;
    for (index, buffer) in buffers {
        if buffer.buffer != next {
            return Err(format!("not at {next:#x}: {buffer:?}"));
        }
        next += buffer.length.next_multiple_of(8);
        let lent = connection.lent(buffer.buffer, buffer.length).ok_or("a buffer outside of the area")?;
        let mut want = pattern(number, *index, buffer.length);
        for (_, child) in buffers {
            if child.flags & object::BUFFER_FLAG_HAS_PARENT != 0 && child.parent as usize == *index {
                let place = want.get_mut(child.parent_offset as usize..).and_then(<[u8]>::first_chunk_mut);
                *place.ok_or("a pointer outside of its parent")? = child.buffer.to_ne_bytes();
            }
        }
        if lent != want {
            return Err(format!("{buffer:?} holds {lent:?}, not {want:?}"));
        }
    }
    Ok(())
}
