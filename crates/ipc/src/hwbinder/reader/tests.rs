//! Tests of the reader on well-formed and malformed payloads.

use zerocopy::IntoBytes;

use super::*;
use crate::hwbinder::delivered::{Delivered, deliver};
use crate::hwbinder::parcel::NativeHandle;

#[test]
fn what_is_written_is_read() {
    let doubles = [1.5f64, -2.0];
    let delivered = deliver(|parcel| {
        parcel.write_header("a@1.0::IB");
        parcel.write_bool(true);
        parcel.write_i16(-2);
        parcel.write_vec(b"bytes");
        parcel.write_vec(&doubles);
        parcel.write_str("text");
        parcel.write_str_vec(&["", "b", "long enough for two words"]);
        parcel.write_u64(u64::MAX);
        parcel.write_nullable_binder(None);
        parcel.write_handle(None);
        parcel.write_handle(Some(NativeHandle { fds: Vec::new(), ints: vec![3, -4] }));
        parcel.write_i32(42);
    });
    let mut reader = delivered.reader();
    assert_eq!(reader.read_header(&["a@1.1::IB", "a@1.0::IB"]), Ok("a@1.0::IB"));
    assert_eq!(reader.read_bool(), Ok(true));
    assert_eq!(reader.read_i16(), Ok(-2));
    let bytes = reader.read_bytes().expect("bytes");
    assert_eq!(bytes, b"bytes");
    assert!(delivered.area.as_bytes().as_ptr_range().contains(&bytes.as_ptr()), "in place");
    assert_eq!(reader.read_vec::<f64>().expect("doubles"), doubles);
    assert_eq!(reader.read_str(), Ok("text"));
    assert_eq!(reader.read_str_vec(), Ok(vec!["", "b", "long enough for two words"]));
    assert_eq!(reader.read_u64(), Ok(u64::MAX));
    assert_eq!(reader.read_nullable_binder(), Ok(None));
    assert!(reader.read_handle().expect("null").is_none());
    let handle = reader.read_handle().expect("a handle").expect("not null");
    assert_eq!((handle.fds.len(), handle.ints), (0, vec![3, -4]));
    assert_eq!(reader.read_i32(), Ok(42));
    assert_eq!(reader.remaining(), 0);
}

/// Structures within structures: InstanceDebugInfo's shape.
#[test]
fn embedded_values_are_read_in_their_order() {
    let ints = [1i32, 2, 3];
    let delivered = deliver(|parcel| {
        let array = parcel.write_structs(2, 40);
        for index in 0..2 {
            parcel.embed_str(array, 40 * index, "name");
            parcel.set(array, 40 * index + 16, &[7]);
            parcel.embed_vec(array, 40 * index + 24, &ints);
        }
        parcel.write_i32(9);
    });
    let mut reader = delivered.reader();
    let array = reader.read_structs(40).expect("an array");
    assert_eq!(array.bytes().len(), 80);
    for index in 0..2 {
        assert_eq!(reader.embedded_str(array, 40 * index), Ok("name"));
        assert_eq!(array.field::<u8>(40 * index + 16), Ok(7));
        let seen = reader.embedded_structs(array, 40 * index + 24, 4).expect("integers");
        assert_eq!(seen.bytes(), ints.as_bytes());
    }
    assert_eq!(reader.read_i32(), Ok(9));
    assert_eq!(array.field::<u64>(73), Err(StatusCode::BAD_INDEX));
}

/// Both forms in use: listed without bytes, and libhidl's, which is not listed and has no address.
#[test]
fn an_empty_vector_is_read_in_either_form() {
    let listed = deliver(|parcel| {
        parcel.write_vec::<u8>(&[]);
        parcel.write_i32(42);
    });
    let mut unlisted = listed.clone();
    unlisted.offsets.truncate(1);
    unlisted.data[40 + 8..40 + 16].fill(0);
    unlisted.area[0] = 0;
    for delivered in [&listed, &unlisted] {
        let mut reader = delivered.reader();
        assert_eq!(reader.read_bytes(), Ok(&[][..]));
        assert_eq!(reader.read_i32(), Ok(42));
        assert_eq!(delivered.reader().read_vec::<u64>(), Ok(&[][..]));
    }
    // One that has bytes cannot be unlisted: nobody looked at it.
    let mut forged = deliver(|parcel| parcel.write_vec(b"12345678"));
    forged.offsets.truncate(1);
    assert_eq!(forged.reader().read_bytes(), Err(StatusCode::BAD_TYPE));
}

/// Everything that libhwbinder compares, one claim at a time.
#[test]
fn every_claim_of_a_buffer_is_checked() {
    let good = deliver(|parcel| {
        parcel.write_i32(0);
        parcel.write_vec(b"12345678");
    });
    let read = |delivered: &Delivered| {
        let mut reader = delivered.reader();
        reader.read_i32().expect("the word in front");
        let before = reader.position();
        let result = reader.read_bytes().map(<[u8]>::len);
        assert!(result.is_ok() || reader.position() == before, "a failed read moves nothing");
        result
    };
    assert_eq!(read(&good), Ok(8));
    // (object, byte, value): type; flags; address; length; parent; parent_offset.
    let claims = [
        (0, 0, 0),
        (0, 4, 1),
        (0, 8, 1),
        (0, 16, 15),
        (0, 16, 17),
        (1, 0, 0),
        (1, 4, 0),
        (1, 4, 3),
        (1, 8, 0),
        (1, 15, 0xff),
        (1, 16, 7),
        (1, 16, 9),
        (1, 23, 0x80),
        (1, 24, 1),
        (1, 31, 0xff),
        (1, 32, 8),
        (1, 39, 0xff),
    ];
    for (object, at, value) in claims {
        let result = read(&good.with(object, at, value));
        assert!(
            matches!(result, Err(StatusCode::BAD_TYPE | StatusCode::BAD_VALUE)),
            "object {object} byte {at} = {value}: {result:?}"
        );
    }
    let mut count = good.clone();
    count.area[1] = 9;
    assert_eq!(read(&count), Err(StatusCode::BAD_VALUE));
    count.area[1] = 0;
    assert_eq!(read(&count), Err(StatusCode::BAD_VALUE), "empty, but its child is not");
    let mut unlisted = good.clone();
    unlisted.offsets.clear();
    assert_eq!(read(&unlisted), Err(StatusCode::BAD_TYPE));
    let mut beyond = good.clone();
    beyond.area.truncate(2);
    assert_eq!(read(&beyond), Err(StatusCode::BAD_VALUE), "outside the receiving area");
    for len in 4..good.data.len() {
        let mut short = good.clone();
        short.data.truncate(len);
        assert!(read(&short).is_err(), "{len} bytes");
    }
}

#[test]
fn a_string_needs_its_nul_and_its_length() {
    let good = deliver(|parcel| parcel.write_str("abc"));
    assert_eq!(good.reader().read_str(), Ok("abc"));
    let mut no_nul = good.clone();
    no_nul.area[2] = u64::from_le_bytes(*b"abcd\0\0\0\0");
    assert_eq!(no_nul.reader().read_str(), Err(StatusCode::BAD_VALUE));
    let mut no_text = good.clone();
    no_text.area[2] = u64::from_le_bytes(*b"\xff\xff\xff\0\0\0\0\0");
    assert_eq!(no_text.reader().read_str(), Err(StatusCode::BAD_VALUE));
    let mut length = good.clone();
    length.area[1] = 1 << 32 | 4;
    assert_eq!(length.reader().read_str(), Err(StatusCode::BAD_VALUE));
}

/// A handle's numbers mean nothing unless the driver translated just them.
#[test]
fn a_handle_needs_its_array() {
    let good = deliver(|parcel| {
        parcel.write_handle(Some(NativeHandle { fds: Vec::new(), ints: vec![1, 2] }));
    });
    assert!(good.reader().read_handle().is_ok_and(|handle| handle.is_some()));
    // (object, byte, value): type; number; parent; parent_offset.
    for (object, at, value) in [(1, 0, 0), (1, 8, 1), (1, 16, 1), (1, 24, 16), (0, 16, 24)] {
        let bad = good.with(object, at, value);
        assert!(bad.reader().read_handle().is_err(), "object {object} byte {at} = {value}");
    }
    let mut unlisted = good.clone();
    unlisted.offsets.truncate(1);
    assert_eq!(unlisted.reader().read_handle().map(drop), Err(StatusCode::BAD_TYPE));
    for (word, value) in [(0, 13), (0, 12 | 1 << 32), (1, 3)] {
        let mut bad = good.clone();
        bad.area[word] = value;
        assert_eq!(bad.reader().read_handle().map(drop), Err(StatusCode::BAD_VALUE), "{word} = {value}");
    }
}

/// Objects that are passed over, or read twice, are still found by their position.
#[test]
fn positions_name_objects() {
    let delivered = deliver(|parcel| {
        parcel.write_vec(b"first");
        parcel.write_vec(b"second");
    });
    let mut reader = delivered.reader();
    let again = reader;
    assert_eq!(reader.read_bytes(), Ok(&b"first"[..]));
    assert_eq!({ again }.read_bytes(), Ok(&b"first"[..]));
    for _ in 0..20 {
        reader.read_i32().expect("half of an object is a word as well");
    }
    assert_eq!(reader.read_bytes(), Err(StatusCode::NOT_ENOUGH_DATA));
    let mut skipped = again;
    for _ in 0..20 {
        skipped.read_i32().expect("a word");
    }
    assert_eq!(skipped.read_bytes(), Ok(&b"second"[..]), "its objects are the third and fourth");
}

#[test]
fn a_header_is_one_of_the_object_s_interfaces() {
    let delivered = deliver(|parcel| parcel.write_header("a@1.0::IB"));
    for wrong in ["a@1.0::I", "a@1.0::IBB", "", "b"] {
        let mut reader = delivered.reader();
        assert_eq!(reader.read_header(&[wrong]), Err(StatusCode::BAD_TYPE), "{wrong}");
        assert_eq!(reader.position(), 0);
    }
    assert_eq!(delivered.reader().read_c_str(), Ok("a@1.0::IB"));
}
