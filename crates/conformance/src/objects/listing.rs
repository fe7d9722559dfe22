//! Contract section 8: accepted object lists, and bytes that the driver must not change.

use crate::payload_calls::{expect_refusal, refused};
use crate::prelude::*;

const SIZE: u64 = size_of::<FlatBinderObject>() as u64;

/// A node of the caller.
fn node(n: u64) -> FlatBinderObject {
    flat_object(object::BINDER, 0x5000 + n, n)
}

pub(super) fn obj_01_objects_are_whole_and_in_order(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let two = || Draft::of(&node(1)).object(&node(2)).bytes(&[0; 64]);
    let fine = pair.deliver(&two())?;
    expect("offsets delivered", fine.offsets_size, 16)?;
    expect("the offsets", pair.server.lent(fine.offsets, 16)?, [0, SIZE].as_bytes().to_vec())?;
    pair.conclude(&fine)?;
    for at in [4, 8, 100] {
        let object = Draft::with(&vec![0; at]).object(&node(3)).bytes(&[0; 3]);
        pair.conclude(&pair.deliver(&object)?)?;
    }
    for (what, draft, c) in [
        ("an object at offset 2", Draft::with(&[0; 2]).object(&node(1)).bytes(&[0; 6]), "EINVAL"),
        ("an object of an unknown type", Draft::of(&flat_object(0x1234_5678, 1, 1)), "EINVAL"),
        ("an object cut short", Draft::of(&node(1)).cut(4), "EINVAL"),
        ("a second object cut short", two().cut(64 + 8), "EINVAL"),
        ("an object behind the data", two().listing(&[0, 4096]), "EFAULT"),
        ("an object far behind the data", two().listing(&[!7]), "EFAULT"),
        ("objects that overlap", two().listing(&[0, SIZE - 8]), "EFAULT"),
        ("an object listed twice", two().listing(&[0, 0]), "EFAULT"),
        ("objects listed backwards", two().listing(&[SIZE, 0]), "EFAULT"),
    ] {
        pair.refused(kit, what, &draft, c, None)?;
    }
    let (object, offsets) = (node(1), [0u64]);
    let data = raw(object.as_bytes(), &offsets, 8);
    let nowhere = TransactionData { buffer: 8, ..data };
    let unreadable = |what, data, c| raw_refused(kit, what, &pair, data, (c, None));
    unreadable("unreadable offsets", TransactionData { offsets: 8, ..data }, "EFAULT")?;
    unreadable("unreadable data", TransactionData { offsets_size: 0, ..nowhere }, "EFAULT")?;
    unreadable("an unreadable object", nowhere, "EINVAL")?;
    pair.server.expect_silence("of calls that were refused")
}

/// A command of a call with this data and this many bytes of offsets.
fn raw(data: &[u8], offsets: &[u64], offsets_size: u64) -> TransactionData {
    TransactionData {
        data_size: data.len() as u64,
        offsets_size,
        buffer: data.as_ptr() as u64,
        offsets: offsets.as_ptr() as u64,
        ..TransactionData::default()
    }
}

/// A call with this raw command must be refused.
fn raw_refused(
    kit: &Kit,
    what: &str,
    Pair { client, handle, .. }: &Pair,
    data: TransactionData,
    errnos: (&str, Option<&str>),
) -> Verdict {
    client.write_raw(bc::TRANSACTION, &TransactionData { target: handle.0.into(), ..data })?;
    expect_refusal(kit, what, client, errnos)
}

pub(super) fn obj_02_sizes_are_multiples_of_8(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    for offsets_size in [1, 4, 12] {
        let what = format!("{offsets_size} bytes of offsets");
        let data = raw(zeroes(64), &[0; 8], offsets_size);
        raw_refused(kit, &what, &pair, data, ("EINVAL", Some("EINVAL")))?;
    }
    for room in [1, 4, 12] {
        let what = format!("{room} bytes of room for scattered buffers");
        pair.refused(kit, &what, &Draft::with(&[0; 8]).room(room), "EINVAL", Some("EINVAL"))?;
    }
    let both = Draft::with(zeroes(default_map_size())).room(12);
    pair.refused(kit, "an odd room and more data than fits", &both, "ENOSPC", Some("EINVAL"))?;
    pair.conclude(&pair.deliver(&Draft::with(&[0; 8]).room(16))?)
}

pub(super) fn obj_20_the_rest_is_copied(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let before: Vec<u8> = (0..20).collect();
    let after: Vec<u8> = (100..117).collect();
    let draft = Draft::with(&before)
        .bytes(node(1).as_bytes())
        .object(&node(2))
        .bytes(&after)
        .bytes(handle_object(pair.handle).as_bytes());
    let call = pair.deliver(&draft)?;
    let got = pair.server.bytes(&call)?;
    let listed = 20 + SIZE as usize..20 + 2 * SIZE as usize;
    expect("bytes before the listed object", &got[..listed.start], &draft.payload().data[..listed.start])?;
    expect("bytes behind it", &got[listed.end..], &draft.payload().data[listed.end..])?;
    let translated: FlatBinderObject = pair.server.arrived(&call, listed.start as u64)?;
    expect("the type of the listed object", translated.kind, object::HANDLE)?;
    // The unlisted node was not exported.
    expect("the handle of the listed node", translated.binder, 1)?;
    pair.conclude(&call)?;
    let unknown = ("EINVAL", Some("ENOENT"));
    refused(kit, "calling a second handle", &pair.server, Handle(2), &Draft::default(), unknown)
}
