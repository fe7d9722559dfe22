//! The entry of the fuzz target for HIDL parcels: takes any bytes and panics where the reader breaks a guarantee.
//! This crate's tests run it on bytes from a seed. Not part of a shipped binary.
//!
//! Random bytes rarely pass a first check, so an input is a program: values to write, how to corrupt the delivered
//! payload, and values to read. An uncorrupted payload must read as it was written.

use zerocopy::IntoBytes;

use crate::hwbinder::delivered::{Delivered, deliver};
use crate::hwbinder::parcel::{HwParcel, NativeHandle};
use crate::hwbinder::reader::Reader;
use crate::status_code::StatusCode;

/// The rest of an input; past its end it yields zeros.
struct Source<'b>(&'b [u8]);

impl<'b> Source<'b> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    fn bytes(&mut self, most: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// One value of a payload.
#[derive(Clone, Copy)]
enum Value<'b> {
    Scalar(u8),
    Bytes(&'b [u8]),
    Text(&'b str),
    Texts(&'b [u8]),
    Handle(&'b [u8]),
    NoHandle,
    NoBinder,
    Header,
    /// A structure with a vector, a string and a handle in it.
    Nested(&'b [u8]),
}

const INTERFACE: &str = "a@1.0::IA";
/// Bytes of the structure, and where the three stand in it.
const NESTED: usize = 56;
const PLACES: [usize; 3] = [8, 24, 40];

fn value<'b>(source: &mut Source<'b>) -> Value<'b> {
    let kind = source.byte();
    let len = usize::from(source.byte() % 40);
    match kind % 9 {
        0 => Value::Scalar(source.byte()),
        1 => Value::Bytes(source.bytes(len)),
        2 => Value::Text(str::from_utf8(source.bytes(len)).unwrap_or_default()),
        3 => Value::Texts(source.bytes(len % 6)),
        4 => Value::Handle(source.bytes(len % 6)),
        5 => Value::NoHandle,
        6 => Value::NoBinder,
        7 => Value::Header,
        _ => Value::Nested(source.bytes(len)),
    }
}

fn handle(ints: &[u8]) -> NativeHandle {
    NativeHandle { fds: Vec::new(), ints: ints.iter().map(|int| i32::from(*int)).collect() }
}

/// Texts of these lengths.
fn texts(lens: &[u8]) -> Vec<String> {
    lens.iter().map(|len| "x".repeat(usize::from(*len))).collect()
}

fn write<'b>(parcel: &mut HwParcel<'b>, value: Value<'b>) {
    match value {
        Value::Scalar(scalar) => parcel.write_u8(scalar),
        Value::Bytes(bytes) => parcel.write_vec(bytes),
        Value::Text(text) => parcel.write_str(text),
        Value::Texts(lens) => parcel.write_str_vec(&texts(lens)),
        Value::Handle(ints) => parcel.write_handle(Some(handle(ints))),
        Value::NoHandle => parcel.write_handle(None),
        Value::NoBinder => parcel.write_nullable_binder(None),
        Value::Header => parcel.write_header(INTERFACE),
        Value::Nested(bytes) => {
            let part = parcel.write_struct(&[0; NESTED]);
            parcel.embed_vec(part, PLACES[0], bytes);
            parcel.embed_str_vec(part, PLACES[1], &texts(bytes));
            parcel.embed_handle(part, PLACES[2], Some(handle(bytes)));
        }
    }
}

/// Reads a value as one that was written so. Whether it was the same.
fn read(reader: &mut Reader<'_>, value: Value<'_>) -> Result<bool, StatusCode> {
    let same_handle = |found: Option<NativeHandle>, ints: &[u8]| {
        found.is_some_and(|found| found.fds.is_empty() && found.ints == handle(ints).ints)
    };
    Ok(match value {
        Value::Scalar(scalar) => reader.read_u8()? == scalar,
        Value::Bytes(bytes) => reader.read_bytes()? == bytes,
        Value::Text(text) => reader.read_str()? == text.split('\0').next().unwrap_or_default(),
        Value::Texts(lens) => reader.read_str_vec()? == texts(lens),
        Value::Handle(ints) => same_handle(reader.read_handle()?, ints),
        Value::NoHandle => reader.read_handle()?.is_none(),
        Value::NoBinder => reader.read_nullable_binder()?.is_none(),
        Value::Header => reader.read_header(&[INTERFACE])? == INTERFACE,
        Value::Nested(bytes) => {
            let seen = reader.read_struct(NESTED)?;
            let vec = reader.embedded_structs(seen, PLACES[0], 1)?;
            let strings = reader.embedded_str_vec(seen, PLACES[1])?;
            let found = reader.embedded_handle(seen, PLACES[2])?;
            vec.bytes() == bytes && strings == texts(bytes) && same_handle(found, bytes)
        }
    })
}

/// Reads that no written value asks for.
fn read_astray(reader: &mut Reader<'_>, step: u8) {
    let before = reader.position();
    let failed = match step % 10 {
        0 => reader.read_u64().is_err(),
        1 => reader.read_c_str().is_err(),
        2 => reader.read_vec::<u64>().is_err(),
        3 => reader.read_vec::<[u8; 32]>().is_err(),
        4 => reader.read_string16().is_err(),
        5 => reader.read_binder().is_err(),
        6 => reader.read_struct(usize::from(step)).is_err(),
        7 => reader.read_structs(usize::from(step)).is_err(),
        8 => {
            let mut ahead = *reader;
            let _ = ahead.read_status();
            false
        }
        _ => reader.read_u8().is_err(),
    };
    assert!(!failed || reader.position() == before, "a failed read moves nothing");
}

/// Changes a few words of what was delivered, or cuts it short. Whether anything was done.
fn spoil(delivered: &mut Delivered, source: &mut Source<'_>) -> bool {
    let times = source.byte() % 4;
    for _ in 0..times {
        let (what, at, byte) = (source.byte(), source.byte(), source.byte());
        let place = |len: usize| usize::from(at) * len / 256;
        let bytes = match what % 4 {
            0 => &mut delivered.data[..],
            1 => delivered.area.as_mut_bytes(),
            2 => delivered.offsets.as_mut_bytes(),
            _ => {
                delivered.data.truncate(place(delivered.data.len()));
                continue;
            }
        };
        let len = bytes.len();
        if let Some(spoilt) = bytes.get_mut(place(len)) {
            *spoilt ^= byte;
        }
    }
    times > 0
}

/// Writes, delivers, perhaps spoils, and reads.
pub fn run(input: &[u8]) {
    let mut source = Source(input);
    let count = usize::from(source.byte() % 8);
    let values: Vec<Value<'_>> = (0..count).map(|_| value(&mut source)).collect();
    let mut delivered = deliver(|parcel| values.iter().for_each(|value| write(parcel, *value)));
    let spoilt = spoil(&mut delivered, &mut source);
    let mut reader = delivered.reader();
    for value in &values {
        let mut ahead = reader;
        match read(&mut ahead, *value) {
            Ok(same) => {
                assert!(same || spoilt, "read otherwise than written");
                reader = ahead;
            }
            Err(status) => {
                assert!(spoilt, "what was written cannot be read: {status}");
                read_astray(&mut reader, source.byte());
            }
        }
        assert!(reader.remaining() <= delivered.data.len());
    }
    assert!(spoilt || reader.remaining() == 0, "all of it was read");
    for _ in 0..64 {
        read_astray(&mut reader, source.byte());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64) -> Vec<u8> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..2 * rng.usize(..256)).map(|_| rng.u8(..)).collect()
    }

    #[test]
    fn any_payload_is_read_or_refused() {
        (0..20_000).for_each(|seed| run(&noise(seed)));
    }

    /// Each value alone, unspoilt.
    #[test]
    fn each_kind_of_value_is_read_as_written() {
        for kind in 0..9 {
            for len in [0, 1, 5, 39] {
                run(&[&[1, kind, len][..], &[7; 39]].concat()[..3 + usize::from(len)]);
            }
        }
    }
}
