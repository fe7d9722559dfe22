//! Parcels byte by byte, as libhwbinder writes them. Addresses are compared apart.
//! Facts: worked example of HIDL's `sendVec`, libhwbinder's and libhidl's sources; see `writer`.

use std::fs::File;

use super::*;
use crate::runtime::node::Nodes;
use crate::runtime::serve::{Serve, Transaction};
use crate::runtime::target::Binder;
use crate::scheduling::NodeOptions;

const BENCHMARK: &str = "android.hardware.tests.libhwbinder@1.0::IBenchmark";

/// A payload as the driver is given it.
struct Sent {
    data: Vec<u8>,
    offsets: Vec<u64>,
    buffers_size: u64,
    buffers: Vec<Vec<u8>>,
    addresses: Vec<u64>,
}

fn sent(parcel: HwParcel<'_>) -> Sent {
    parcel.with_payload(|payload| Sent {
        data: payload.data.to_vec(),
        offsets: payload.offsets.to_vec(),
        buffers_size: payload.buffers_size.expect("always scatter-gather"),
        buffers: payload.buffers.iter().map(|buffer| buffer.to_vec()).collect(),
        addresses: payload.buffers.iter().map(|buffer| buffer.as_ptr() as u64).collect(),
    })
}

impl Sent {
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(*self.data[at..].first_chunk().expect("inside"))
    }

    /// The payload with zeros for each PTR's address, which must be that of the buffer named.
    fn masked(&self) -> Vec<u8> {
        let mut data = self.data.clone();
        let ptrs = self.offsets.iter().map(|offset| *offset as usize);
        let ptrs = ptrs.filter(|at| data[*at..*at + 4] == *b"\x85*tp").collect::<Vec<_>>();
        assert_eq!(ptrs.len(), self.addresses.len(), "one buffer for each PTR");
        for (at, address) in ptrs.into_iter().zip(&self.addresses) {
            assert_eq!(self.u64(at + 8), *address);
            data[at + 8..at + 16].fill(0);
        }
        data
    }
}

/// A PTR object whose address is masked.
fn ptr(flags: u8, length: u8, parent: u8, parent_offset: u8) -> Vec<u8> {
    let mut object = vec![0x85, 0x2a, 0x74, 0x70, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for value in [length, parent, parent_offset] {
        object.extend(u64::from(value).to_le_bytes());
    }
    object
}

/// The whole request and reply of `sendVec(vec<uint8_t>) generates (vec<uint8_t>)`.
#[test]
fn the_benchmark_s_call() {
    let bytes = [0u8, 1, 2, 3, 4, 5, 6, 7];
    let mut request = HwParcel::new();
    request.write_header(BENCHMARK);
    request.write_vec(&bytes);
    let request = sent(request);
    let want = [BENCHMARK.as_bytes(), &[0, 0], &ptr(0, 16, 0, 0), &ptr(1, 8, 0, 0)].concat();
    assert_eq!((request.data.len(), request.masked()), (132, want));
    assert_eq!((&request.offsets[..], request.buffers_size), (&[52, 92][..], 24));
    assert_eq!(request.addresses[1], bytes.as_ptr() as u64, "the caller's own bytes, not a copy");
    let pointer = request.addresses[1].to_le_bytes();
    assert_eq!(request.buffers[0], [&pointer[..], &[8, 0, 0, 0, 1, 0, 0, 0]].concat());
    assert_eq!(request.buffers[1], bytes);

    let mut reply = HwParcel::new();
    reply.write_no_exception();
    reply.write_vec(&bytes);
    let reply = sent(reply);
    let want = [&[0; 4][..], &ptr(0, 16, 0, 0), &ptr(1, 8, 0, 0)].concat();
    assert_eq!((reply.data.len(), reply.masked()), (84, want));
    assert_eq!((&reply.offsets[..], reply.buffers_size), (&[4, 44][..], 24));
}

/// Without buffers the form of the command is the same.
#[test]
fn scalars_keep_their_size() {
    let mut parcel = HwParcel::new();
    parcel.write_bool(true);
    parcel.write_i8(-1);
    parcel.write_i16(-2);
    parcel.write_i32(-3);
    parcel.write_i64(-4);
    parcel.write_f32(1.0);
    let parcel = sent(parcel);
    let want = [
        &[1, 0, 0, 0][..],
        &[0xff, 0, 0, 0],
        &[0xfe, 0xff, 0, 0],
        &[0xfd, 0xff, 0xff, 0xff],
        &[0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0x80, 0x3f],
    ];
    assert_eq!((parcel.data, parcel.buffers_size), (want.concat(), 0));
}

#[test]
fn an_empty_vector_is_listed_with_an_address() {
    let mut parcel = HwParcel::new();
    parcel.write_vec::<i32>(&[]);
    let parcel = sent(parcel);
    assert_eq!(parcel.masked(), [ptr(0, 16, 0, 0), ptr(1, 0, 0, 0)].concat());
    assert_ne!(parcel.addresses[1], 0);
    assert_eq!(parcel.buffers_size, 16);
}

/// Length without its NUL, child with it.
#[test]
fn strings_have_a_nul() {
    for (text, rounded) in [("", 8), ("abc", 8), ("abcdefgh", 16), ("ab\0cd", 8)] {
        let kept = text.split('\0').next().expect("one");
        let mut parcel = HwParcel::new();
        parcel.write_str(text);
        let parcel = sent(parcel);
        let len = kept.len() as u8;
        assert_eq!(parcel.masked(), [ptr(0, 16, 0, 0), ptr(1, len + 1, 0, 0)].concat(), "{text:?}");
        assert_eq!(parcel.buffers[0][8..], [len, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(parcel.buffers[1], [kept.as_bytes(), b"\0"].concat());
        assert_eq!(parcel.buffers_size, 16 + rounded);
    }
}

/// The vector, its array, then each string's bytes with the array as parent.
#[test]
fn a_vector_of_strings_is_three_deep() {
    let mut parcel = HwParcel::new();
    parcel.write_i32(7);
    parcel.write_str_vec(&["a", "bc"]);
    let parcel = sent(parcel);
    let objects = [ptr(0, 16, 0, 0), ptr(1, 32, 0, 0), ptr(1, 2, 1, 0), ptr(1, 3, 1, 16)].concat();
    assert_eq!(parcel.masked(), [&[7, 0, 0, 0], &objects[..]].concat());
    assert_eq!(parcel.offsets, [4, 44, 84, 124]);
    assert_eq!(parcel.buffers_size, 16 + 32 + 8 + 8);
    let string = |address: u64, len| [&address.to_le_bytes()[..], &[len, 0, 0, 0, 1, 0, 0, 0]].concat();
    let want = [string(parcel.addresses[2], 1), string(parcel.addresses[3], 2)].concat();
    assert_eq!(parcel.buffers[1], want, "pointers are filled in after the last write");
}

/// Size, `native_handle`, descriptors; embedded ones point to it from their structure.
#[test]
fn handles_carry_an_array_of_descriptors() {
    let fda = |fds: u8, parent: u8| {
        let mut object = vec![0x85, 0x61, 0x64, 0x66, 0, 0, 0, 0];
        for value in [fds, parent, 12] {
            object.extend(u64::from(value).to_le_bytes());
        }
        object
    };
    let file = || File::open("/dev/null").expect("/dev/null");
    let mut parcel = HwParcel::new();
    parcel.write_handle(Some(NativeHandle { fds: vec![file().into()], ints: vec![-1, 5] }));
    let parcel = sent(parcel);
    assert_eq!(parcel.masked(), [&[24, 0, 0, 0, 0, 0, 0, 0], &ptr(0, 24, 0, 0)[..], &fda(1, 0)].concat());
    assert_eq!(parcel.offsets, [8, 48]);
    let words: Vec<i32> =
        parcel.buffers[0].as_chunks().0.iter().map(|word| i32::from_le_bytes(*word)).collect();
    assert_eq!((&words[..3], &words[4..]), (&[12, 1, 2][..], &[-1, 5][..]));
    assert!(words[3] > 2, "a descriptor of this process");

    let mut parcel = HwParcel::new();
    parcel.write_handle(None);
    assert_eq!(parcel.data(), [0; 8]);
    let part = parcel.write_struct(&[0; 24]);
    parcel.embed_handle(part, 8, Some(NativeHandle::default()));
    let parcel = sent(parcel);
    let objects = [&ptr(0, 24, 0, 0)[..], &[12, 0, 0, 0, 0, 0, 0, 0], &ptr(1, 12, 0, 8), &fda(0, 1)].concat();
    assert_eq!(parcel.masked(), [&[0; 8], &objects[..]].concat());
    assert_eq!(
        parcel.buffers[0][8..],
        [&parcel.addresses[1].to_le_bytes()[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat()
    );
}

struct Nothing;

impl Serve for Nothing {
    fn serve(&self, _call: Transaction<'_>) {}
}

/// Flags 900; no stability word; null is not listed.
#[test]
fn interfaces_are_objects_without_stability() {
    let node = Nodes::new().publish(Box::new(Nothing), NodeOptions::HWBINDER.flags());
    let object = HwBinder::from(Binder::Local(node.clone()));
    let mut parcel = HwParcel::new();
    parcel.write_nullable_binder(None);
    parcel.write_nullable_binder(Some(&object));
    let mut want = vec![0x85, 0x2a, 0x62, 0x73, 0, 9, 0, 0];
    want.extend(node.ptr().0.to_le_bytes());
    want.extend(node.cookie().0.to_le_bytes());
    let null = [&[0x85, 0x2a, 0x62, 0x73][..], &[0; 20]].concat();
    let parcel = sent(parcel);
    assert_eq!((parcel.data, parcel.offsets), ([null, want].concat(), vec![24]));
}

/// A failure: its kind and what it says, without libbinder's further words.
#[test]
fn exceptions_end_with_their_message() {
    use crate::status::Status;
    let Status::Exception(exception) = Status::illegal_argument("no") else { panic!("an exception") };
    let mut parcel = HwParcel::new();
    parcel.write_exception(&exception);
    let want = [0xfd, 0xff, 0xff, 0xff, 2, 0, 0, 0, b'n', 0, b'o', 0, 0, 0, 0, 0];
    assert_eq!(parcel.data(), want);
    assert_eq!(parcel.sealed_reader().read_status(), Err(Status::Exception(exception)));
}

/// What borrows nothing any more says the same: for calls within a process.
#[test]
fn an_owned_parcel_has_the_same_content() {
    let bytes = vec![7u8; 13];
    let mut parcel = HwParcel::new();
    parcel.write_i32(1);
    parcel.write_handle(Some(NativeHandle { fds: Vec::new(), ints: vec![5] }));
    parcel.write_vec(&bytes);
    let part = parcel.write_struct(&[0; 40]);
    parcel.embed_str(part, 0, "text");
    parcel.embed_vec(part, 24, &bytes);
    let number = 9u64;
    parcel.write_plain_struct(&number);
    let owned = parcel.into_owned();
    let buffers: Vec<Vec<u8>> = owned.buffers().map(<[u8]>::to_vec).collect();
    assert_eq!(buffers.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16, 13, 40, 5, 13, 8]);
    drop(bytes);
    let mut reader = owned.sealed_reader();
    assert_eq!(reader.read_i32(), Ok(1));
    assert_eq!(reader.read_handle().expect("a handle").expect("not null").ints, [5]);
    assert_eq!(reader.read_bytes(), Ok(&[7; 13][..]));
    let part = reader.read_struct(40).expect("a structure");
    assert_eq!(reader.embedded_str(part, 0), Ok("text"));
    assert_eq!(reader.embedded_structs(part, 24, 1).expect("bytes").bytes(), [7; 13]);
    assert_eq!(reader.read_struct(8).expect("a number").field(0), Ok(number));
}

/// A parcel dropped leaves its memory, and nothing in it, to the next.
#[test]
fn memory_is_used_again() {
    let bytes = vec![1u8; 100];
    let mut first = HwParcel::new();
    first.write_vec(&bytes);
    first.write_str("x");
    let (at, capacity) = (first.data().as_ptr(), first.bytes_mut().capacity());
    drop(first);
    drop(bytes);
    let mut second = HwParcel::new();
    assert_eq!((second.data(), second.offsets(), second.buffers_size()), (&[][..], &[][..], 0));
    assert_eq!(second.buffers().count(), 0);
    assert_eq!((second.bytes_mut().as_ptr(), second.bytes_mut().capacity()), (at, capacity));
}
