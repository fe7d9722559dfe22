//! Parcels byte by byte, as other implementations write them.
//! Facts: captures and sources of libbinder, libgbinder and rsbinder; see `writer`.

use super::*;
use crate::binder::Status;
use crate::binder::manager::codes::LookupReply;
use crate::runtime::node::Nodes;
use crate::runtime::serve::{Serve, Transaction};
use crate::runtime::target::Binder;
use crate::scheduling::NodeOptions;
use crate::status_code::StatusCode;

struct Nothing;

impl Serve for Nothing {
    fn serve(&self, _call: Transaction<'_>) {}
}

fn bytes(write: impl FnOnce(&mut Parcel)) -> Vec<u8> {
    let mut parcel = Parcel::new();
    write(&mut parcel);
    parcel.data().to_vec()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The whole request and reply of `byte[] sendVec(in byte[])`, Android 13 and later.
#[test]
fn the_benchmark_s_call() {
    let request = bytes(|parcel| {
        parcel.write_header("android.tests.binder.IBenchmark");
        parcel.write_byte_slice(&[0, 1, 2, 3, 4, 5, 6, 7]);
    });
    let mut want = vec![0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff, 0x54, 0x53, 0x59, 0x53, 0x1f, 0, 0, 0];
    want.extend(utf16("android.tests.binder.IBenchmark\0"));
    want.extend([8, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((request.len(), &request), (92, &want));

    let reply = bytes(|parcel| {
        parcel.write_no_exception();
        parcel.write_byte_slice(&[0, 1, 2, 3, 4, 5, 6, 7]);
    });
    assert_eq!(reply, [0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7]);
}

/// Android 16's answer to `checkService2`, 52 bytes with one object at 0x14.
#[test]
fn the_service_union_of_16() {
    let nodes = Nodes::new();
    let node = nodes.publish(Box::new(Nothing), NodeOptions::default().flags());
    let (ptr, cookie) = (node.ptr().0.to_le_bytes(), node.cookie().0.to_le_bytes());
    let mut parcel = Parcel::new();
    parcel.write_no_exception();
    LookupReply::Union.write(&mut parcel, Some(&(Binder::Local(node), Stability::System)));
    let words: [u32; 7] = [0, 1, 0, 1, 36, 0x7362_2a85, 0x113];
    let mut want: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    want[20..24].copy_from_slice(&[0x85, 0x2a, 0x62, 0x73]);
    want.extend(ptr.into_iter().chain(cookie).chain([0x0c, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!((parcel.data(), parcel.offsets()), (&want[..], &[0x14][..]));
    assert_eq!(parcel.data().len(), 52);
}

#[test]
fn strings() {
    for (text, want) in [
        ("", &[0, 0, 0, 0, 0, 0, 0, 0][..]),
        ("a", &[1, 0, 0, 0, b'a', 0, 0, 0]),
        ("ab", &[2, 0, 0, 0, b'a', 0, b'b', 0, 0, 0, 0, 0]),
        ("ä", &[1, 0, 0, 0, 0xe4, 0, 0, 0]),
        ("😀", &[2, 0, 0, 0, 0x3d, 0xd8, 0, 0xde, 0, 0, 0, 0]),
    ] {
        assert_eq!(bytes(|parcel| parcel.write_str(text)), want, "{text:?}");
    }
    assert_eq!(bytes(|parcel| parcel.write_nullable_str(None)), [0xff; 4]);
    assert_eq!(bytes(|parcel| parcel.write_string8(Some("abc"))), [3, 0, 0, 0, b'a', b'b', b'c', 0]);
    assert_eq!(bytes(|parcel| parcel.write_string8(Some("abcd")))[4..], [b'a', b'b', b'c', b'd', 0, 0, 0, 0]);
}

#[test]
fn scalars_take_a_word_and_are_not_aligned_to_eight() {
    let got = bytes(|parcel| {
        parcel.write_bool(true);
        parcel.write_i64(-2);
        parcel.write_i8(-1);
        parcel.write_char(0xffff);
        parcel.write_f32(1.0);
        parcel.write_f64(1.0);
    });
    let want = [
        &[1, 0, 0, 0][..],
        &(-2i64).to_le_bytes(),
        &[0xff; 4],
        &[0xff, 0xff, 0, 0],
        &1f32.to_le_bytes(),
        &1f64.to_le_bytes(),
    ];
    assert_eq!(got, want.concat());
}

#[test]
fn arrays() {
    assert_eq!(bytes(|parcel| parcel.write_byte_slice(&[1, 2, 3])), [3, 0, 0, 0, 1, 2, 3, 0]);
    assert_eq!(bytes(|parcel| parcel.write_byte_slice(&[])), [0; 4]);
    assert_eq!(bytes(|parcel| parcel.write_nullable_byte_slice(None)), [0xff; 4]);
    assert_eq!(
        bytes(|parcel| parcel.write_slice(&[true], |parcel, value| parcel.write_bool(*value))),
        [1, 0, 0, 0, 1, 0, 0, 0]
    );
    assert_eq!(bytes(|parcel| parcel.write_packed::<i64>(&[1])), [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn sized_bodies_count_their_own_length_word() {
    assert_eq!(bytes(|parcel| parcel.write_sized(|fields| fields.write_i32(7))), [8, 0, 0, 0, 7, 0, 0, 0]);
}

/// The word behind a binder, and what a null one looks like, per release.
#[test]
fn binders_end_in_their_release_s_word() {
    for (release, word) in [
        (Release::Android9, &[][..]),
        (Release::Android10, &[]),
        (Release::Android11, &[0x0c, 0, 0, 0]),
        (Release::Android12, &[1, 0, 0, 0x0c]),
        (Release::Android13, &[0x0c, 0, 0, 0]),
        (Release::Android16, &[0x0c, 0, 0, 0]),
    ] {
        let nodes = Nodes::new();
        let binder = Binder::Local(nodes.publish(Box::new(Nothing), NodeOptions::default().flags()));
        let mut parcel = Parcel::for_release(release);
        parcel.write_binder(&binder);
        assert_eq!(&parcel.data()[24..], word, "{release}");
        assert_eq!(parcel.offsets(), [0], "{release}");
        assert_eq!(parcel.reader().read_binder(), Ok(binder.clone()), "{release}");

        let mut weak = Parcel::for_release(release);
        weak.write_weak_binder(&binder);
        let (kind, rest) = ([0x85, 0x2a, 0x62, 0x77], &parcel.data()[4..24]);
        assert_eq!((weak.data(), weak.offsets()), (&[&kind, rest].concat()[..], &[0][..]), "{release}");
        assert_eq!(weak.reader().read_binder(), Err(StatusCode::BAD_TYPE), "{release}");

        let mut parcel = Parcel::for_release(release);
        parcel.write_nullable_binder(None);
        let null = [&[0x85, 0x2a, 0x62, 0x73, 0x13][..], &[0; 19]].concat();
        assert_eq!(&parcel.data()[..24], null, "{release}");
        assert!(parcel.offsets().is_empty(), "{release}");
        assert_eq!(parcel.reader().read_nullable_binder(), Ok(None), "{release}");
    }
}

#[test]
fn exceptions() {
    let Status::Exception(thrown) = Status::service_specific(9, "a") else { panic!("an exception") };
    let words = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(bytes(|parcel| parcel.write_exception(&thrown)), words(&[-8, 1, 0x61, 0, 9]));
    let mut old = Parcel::for_release(Release::Android8);
    old.write_exception(&thrown);
    assert_eq!(old.data(), words(&[-8, 1, 0x61, 9]));
}

/// Dropping a parcel keeps its memory for the thread's next, and nothing of its content.
#[test]
fn parcels_are_recycled_empty() {
    let mut parcel = Parcel::new();
    parcel.write_byte_slice(&[1; 1000]);
    let at = parcel.data().as_ptr();
    drop(parcel);
    let again = Parcel::new();
    assert!(again.data().is_empty() && again.offsets().is_empty());
    assert_eq!(again.data().as_ptr(), at, "the same memory");
}
