//! Room: any bytes as records, as the ring that they come in, and as the objects of a payload.

use std::sync::Arc;

use sys::sealed_memory::SealedMemory;

use super::scattered;
use super::source::Source;
use crate::embedded::channel::ring::{self, Consumer, Producer};
use crate::embedded::protocol::codec::Message;
use crate::embedded::protocol::{Item, RECORD_SIZE, Request};
use crate::embedded::wire;

/// Decodes an input in every way, reads it out of a ring, and fixes it up as payloads.
///
/// # Panics
/// If what was decoded does not come back, a ring never ends, or a pointer leads out of its payload.
pub fn run(input: &[u8]) {
    if let Ok(item) = Item::decode(input) {
        assert_eq!(Item::decode(&item.encode()), Ok(item), "an item comes back");
    }
    if let Ok(request) = Request::decode(input) {
        assert_eq!(Request::decode(&request.encode()), Ok(request), "a request comes back");
    }
    // Garbage is refused, or understood; nothing else is to be seen.
    let _ = (wire::Hello::decode(input), wire::Reception::decode(input), wire::unframe(input));
    let mut words = vec![u64::from(input.first().copied().unwrap_or(0) % 28)];
    let mut source = Source::new(input);
    words.extend((1..RECORD_SIZE / 8).map(|_| source.word()));
    let record: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    if let Ok(item) = Item::decode(&record) {
        assert_eq!(Item::decode(&item.encode()), Ok(item), "an item comes back");
    }
    if let Ok(request) = Request::decode(&record) {
        assert_eq!(Request::decode(&request.encode()), Ok(request), "a request comes back");
    }
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
            // A count that makes no sense is refused.
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
