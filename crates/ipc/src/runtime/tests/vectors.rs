//! Room: deliveries that end with a vector without objects, as a driver in user space makes them.

use abi::layout::BufferObject;
use zerocopy::IntoBytes;

use super::*;

#[test]
fn whoever_looks_at_a_payload_finds_the_objects_that_were_left_out() {
    let whole = [&[7; 8][..], [0u64, 4].as_bytes(), b"four"].concat();
    let process = on(vec![
        acquisition(),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(&whole)])).with_vector(4),
        Step::new(&[bc::TRANSACTION], all(&[complete(), reply(&whole)])),
    ]);
    let proxy = proxy(&process);
    let received = || match proxy.transact_payload(7, TransactionFlags::CALL, Payload::default()) {
        Ok(Outcome::Replied { received, .. }) => received,
        other => panic!("{other:?}"),
    };
    let first = received();
    let vector = first.lent().vector;
    assert_eq!(vector, &whole[8..]);
    let address = vector.as_ptr() as u64;
    let objects = BufferObject::of_vector([address, address + 16], 4, 0);
    assert_eq!(first.data(), [&[7; 8][..], objects.as_bytes()].concat());
    assert_eq!(first.offsets(), [8u64, 48].as_bytes());
    // What is said of one delivery is not said of the next.
    let second = received();
    assert_eq!((second.data(), second.offsets(), second.lent().vector), (&whole[..], &[][..], &[][..]));
    // What their end would write is in no step.
    std::mem::forget((first, second));
}

#[test]
fn a_vector_that_is_not_in_the_area_is_no_delivery() {
    let steps =
        vec![Step::new(&[bc::TRANSACTION], all(&[complete(), reply(&[7; 32])])).with_vector(u64::MAX - 20)];
    assert!(matches!(one_call(steps), Err(TransactError::Protocol(ProtocolError::OutsideMap { .. }))));
}
