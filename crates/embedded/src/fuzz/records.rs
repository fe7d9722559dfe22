//! Fuzz entry: any bytes as records, as the ring that contains them, and as objects of a payload.

use std::sync::Arc;

use sys::sealed_memory::SealedMemory;

use super::source::Source;
use super::{requests, scattered};
use crate::rpc::codec::Message;
use crate::rpc::framing;
use crate::rpc::protocol::{Item, RECORD_SIZE, Request};
use crate::shm::ring::{self, Consumer, Producer};

/// Decodes an input in every way, reads it out of a ring, and fixes it up as payloads.
///
/// # Panics
/// If a decoded value does not survive encoding, a ring never ends, or a pointer leaves its payload.
pub fn run(input: &[u8]) {
    for record in [input, &requests::record(&mut Source::new(input))] {
        if let Ok(item) = Item::decode(record) {
            assert_eq!(Item::decode(&item.encode()), Ok(item), "an item comes back");
        }
        if let Ok(request) = Request::decode(record) {
            assert_eq!(Request::decode(&request.encode()), Ok(request), "a request comes back");
        }
    }
    // Invalid bytes are refused or decoded; neither may panic.
    let _ = (framing::Hello::decode(input), framing::Reception::decode(input), framing::unframe(input));
    scribbled_ring(input);
    let mut source = Source::new(input);
    while !source.is_empty() {
        scattered::any(&mut source);
    }
}

fn scribbled_ring(input: &[u8]) {
    let memory = Arc::new(SealedMemory::create(ring::SIZE).expect("memory"));
    let mut consumer: Consumer<_> = Consumer::new(Arc::clone(&memory)).expect("as large as a ring");
    let mut producer: Producer<_> = Producer::new(Arc::clone(&memory)).expect("as large as a ring");
    let mut source = Source::new(input);
    while !source.is_empty() {
        let at = source.word() as usize % ring::SIZE;
        let at = if source.byte() < 128 { [0, 64, 128][at % 3] } else { at };
        let bytes = source.bytes(4);
        memory.copy_in(at.min(ring::SIZE - bytes.len()), bytes);
        let mut record = [0; RECORD_SIZE];
        for _ in 0..source.choose(4) {
            // An invalid count is refused.
            let _ = producer.push(&record);
        }
        let mut read = 0;
        while consumer.pop(&mut record).is_ok_and(|there| there) {
            read += 1;
            assert!(read <= ring::SLOTS, "a ring has an end");
        }
        consumer.take_starved();
    }
}
