//! Tests of readers on valid values and on hostile bytes.

use super::*;

#[test]
fn values_read_back_in_order() {
    let mut parcel = Parcel::new();
    parcel.write_i32(-7);
    parcel.write_u64(u64::MAX);
    parcel.write_f64(0.5);
    parcel.write_bool(true);
    parcel.write_i8(-3);
    parcel.write_char(0x20ac);
    parcel.write_str("naïve 😀");
    parcel.write_nullable_str(None);
    parcel.write_string8(Some("acht"));
    parcel.write_string8(None);
    parcel.write_byte_slice(b"12345");
    parcel.write_packed::<i32>(&[1, -1]);
    parcel.write_slice(&[true, false], |parcel, value| parcel.write_bool(*value));
    parcel.write_str_slice(&["a", ""]);
    let mut reader = parcel.reader();
    assert_eq!(reader.read_i32(), Ok(-7));
    assert_eq!(reader.read_u64(), Ok(u64::MAX));
    assert_eq!(reader.read_f64(), Ok(0.5));
    assert_eq!(reader.read_bool(), Ok(true));
    assert_eq!(reader.read_i8(), Ok(-3));
    assert_eq!(reader.read_char(), Ok(0x20ac));
    assert_eq!(reader.read_str().as_deref(), Ok("naïve 😀"));
    assert_eq!(reader.read_nullable_str(), Ok(None));
    assert_eq!(reader.read_string8(), Ok(Some("acht".to_owned())));
    assert_eq!(reader.read_string8(), Ok(None));
    assert_eq!(reader.read_byte_slice(), Ok(&b"12345"[..]));
    assert_eq!(reader.read_i32_vec(), Ok(vec![1, -1]));
    assert_eq!(reader.read_vec(Reader::read_bool), Ok(vec![true, false]));
    assert_eq!(reader.read_str_vec(), Ok(vec!["a".to_owned(), String::new()]));
    assert_eq!(reader.remaining(), 0);
    assert_eq!(reader.read_i32(), Err(StatusCode::NOT_ENOUGH_DATA));
}

/// libgbinder writes an empty byte array as null and pads with ones.
#[test]
fn other_writers_habits_are_taken() {
    let mut reader = Reader::of_bytes(&[0xff; 4]);
    assert_eq!(reader.read_byte_slice(), Ok(&[][..]));
    let padded = [1, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 5, 0, 0, 0];
    let mut reader = Reader::of_bytes(&padded);
    assert_eq!(reader.read_byte_slice(), Ok(&[9][..]));
    assert_eq!(reader.read_str().as_deref(), Ok(""));
    assert_eq!(reader.read_i32(), Ok(5));
}

/// A sender of another version has fewer or more fields.
#[test]
fn sized_bodies_end_where_they_say() {
    let mut parcel = Parcel::new();
    parcel.write_sized(|fields| {
        fields.write_i32(1);
        fields.write_i32(2);
    });
    parcel.write_i32(99);
    let mut reader = parcel.reader();
    assert_eq!(reader.read_sized(Reader::read_i32), Ok(1), "a newer sender");
    assert_eq!(reader.read_i32(), Ok(99));
    let mut reader = parcel.reader();
    let third = |fields: &mut Reader<'_>| {
        fields.read_i64()?;
        Ok((fields.remaining(), fields.read_i32()))
    };
    assert_eq!(reader.read_sized(third), Ok((0, Err(StatusCode::NOT_ENOUGH_DATA))), "an older sender");
}

#[test]
fn lengths_that_cannot_be_are_errors_and_move_nothing() {
    let lies: [&[i32]; 6] = [&[1000], &[i32::MAX], &[-2], &[i32::MIN], &[2, 0], &[0x4000_0000, 0, 0]];
    for words in lies {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut reader = Reader::of_bytes(&bytes);
        assert!(reader.read_packed_vec::<i64>().is_err(), "{words:?}");
        assert!(reader.read_nullable_str().is_err(), "{words:?}");
        assert!(reader.read_sized(|_| Ok(())).is_err(), "{words:?}");
        assert_eq!(reader.position(), 0, "{words:?}");
    }
}

#[test]
fn objects_that_nobody_listed_are_refused() {
    let mut flat = [0x85, 0x2a, 0x68, 0x73].to_vec();
    flat.resize(28, 1);
    let mut reader = Reader::of_bytes(&flat);
    assert_eq!(reader.read_nullable_binder(), Err(StatusCode::BAD_TYPE));
    assert_eq!(reader.position(), 0);
    flat[..4].copy_from_slice(&[0x85, 0x2a, 0x64, 0x66]);
    let mut reader = Reader::of_bytes(&flat);
    assert_eq!(reader.read_fd().expect_err("not delivered"), StatusCode::BAD_TYPE);
}

/// One read of every kind; true if it took something.
fn read_one(reader: &mut Reader<'_>, kind: usize) -> bool {
    match kind {
        0 => reader.read_i32().is_ok(),
        1 => reader.read_i64().is_ok(),
        2 => reader.read_nullable_str().is_ok(),
        3 => reader.read_string8().is_ok(),
        4 => reader.read_nullable_byte_slice().is_ok(),
        5 => reader.read_packed_vec::<i64>().is_ok(),
        6 => reader.read_vec(Reader::read_bool).is_ok(),
        7 => reader.read_str_vec().is_ok(),
        8 => reader.read_nullable_binder_as().is_ok(),
        9 => reader.read_fd().is_ok(),
        10 => reader.read_status().is_ok(),
        11 => reader.read_header("a.IB").is_ok(),
        12 => reader.read_sized(|body| body.read_str()).is_ok(),
        _ => reader.read_vec(Reader::read_packed_vec::<f64>).is_ok(),
    }
}

/// A well-formed parcel of every kind of value, and the same with bytes changed, cut or replaced:
/// any sequence of reads ends, without a panic, inside the parcel.
#[test]
fn hostile_bytes_never_panic() {
    let mut parcel = Parcel::new();
    parcel.write_header("a.IB");
    parcel.write_str("text");
    parcel.write_byte_slice(&[1, 2, 3, 4, 5]);
    parcel.write_packed::<i64>(&[1, 2]);
    parcel.write_nullable_binder(None);
    parcel.write_sized(|fields| fields.write_str_slice(&["x", "y"]));
    let good = parcel.data().to_vec();
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..rng.usize(..6) {
            let at = rng.usize(..bytes.len());
            bytes[at] = [0xff, 0, rng.u8(..)][rng.usize(..3)];
        }
        bytes.truncate(rng.usize(..=bytes.len()));
        let release = rng.choice(Release::ALL).expect("not empty");
        let mut reader = Reader { release, ..Reader::of_bytes(&bytes) };
        for _ in 0..40 {
            let before = reader.position();
            let took = read_one(&mut reader, rng.usize(..14));
            assert!(reader.position() <= bytes.len(), "round {round}");
            assert!(!took || reader.position() >= before, "round {round}");
        }
    }
}

/// A length word cannot make a reader work or allocate for more than the parcel could hold.
#[test]
fn a_lying_length_is_found_before_the_first_element() {
    let bytes = [&0x3fff_ffffi32.to_le_bytes()[..], &[0; 64]].concat();
    let mut read = 0;
    let result = Reader::of_bytes(&bytes).read_vec(|element| {
        read += 1;
        element.read_i32()
    });
    assert_eq!((result, read), (Err(StatusCode::NOT_ENOUGH_DATA), 0));
}
