//! Compressed blocks of a trace: where they are, and the content of those that were used last.
//! Not here: unpacking one (`inflate`).
//!
//! Streams that are merged by time may need blocks in any order. What does not stay in memory is unpacked again, as often
//! as traces of real recorders need it and no more: a short file can name blocks of any size in the worst order.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use super::index::{Block, PLAIN};

/// Total of the contents that are kept, in bytes.
const MOST_KEPT: usize = 96 << 20;
/// Cost of keeping a block, beside its content.
const OF_EACH: usize = 128;
/// How many times the content of all blocks may be unpacked after the first pass.
const MOST_TIMES: u64 = 16;

/// Blocks, by number.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    known: Vec<Block>,
    kept: HashMap<u32, (u64, Arc<[u8]>)>,
    /// When each kept block was used last.
    order: BTreeMap<u64, u32>,
    uses: u64,
    bytes: usize,
    /// Bytes that may still be unpacked.
    allowed: u64,
}

impl Blocks {
    /// Notes a block that has this many bytes of content; returns its number.
    pub(super) fn note(&mut self, block: Block, content: usize) -> Option<u32> {
        let number = u32::try_from(self.known.len()).ok().filter(|number| *number < PLAIN)?;
        self.known.push(block);
        self.allowed = self.allowed.saturating_add(MOST_TIMES * content as u64);
        Some(number)
    }

    /// Content of a block; `unpack` makes it.
    ///
    /// # Errors
    /// Those of `unpack`, and `OutOfMemory` if blocks were needed in too bad an order.
    pub(super) fn content(
        &mut self,
        number: u32,
        unpack: impl FnOnce(Block) -> io::Result<Vec<u8>>,
    ) -> io::Result<Arc<[u8]>> {
        self.uses += 1;
        if let Some((used, content)) = self.kept.get_mut(&number) {
            self.order.remove(used);
            self.order.insert(self.uses, number);
            *used = self.uses;
            return Ok(Arc::clone(content));
        }
        if self.allowed == 0 {
            let why = "its compressed packets are in an order that no recorder writes";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        let block = *self.known.get(number as usize).ok_or(io::ErrorKind::NotFound)?;
        let content: Arc<[u8]> = unpack(block)?.into();
        self.allowed = self.allowed.saturating_sub(content.len() as u64);
        self.bytes += content.len() + OF_EACH;
        while self.bytes > MOST_KEPT
            && let Some((_, oldest)) = self.order.pop_first()
        {
            let gone = self.kept.remove(&oldest).map_or(0, |(_, content)| content.len() + OF_EACH);
            self.bytes = self.bytes.saturating_sub(gone);
        }
        self.order.insert(self.uses, number);
        self.kept.insert(number, (self.uses, Arc::clone(&content)));
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::Form;
    use super::*;

    #[test]
    fn blocks_in_the_worst_order_are_unpacked_a_limited_number_of_times() {
        let mut blocks = Blocks::default();
        let size = MOST_KEPT / 4;
        let block = Block { at: 0, len: 1, form: Form::Zlib };
        let numbers: Vec<u32> = (0..5).map(|_| blocks.note(block, size).expect("room")).collect();
        let mut unpacked = 0;
        let mut refused = None;
        for number in numbers.iter().cycle().take(1000) {
            let content = blocks.content(*number, |_| {
                unpacked += 1;
                Ok(vec![0; size])
            });
            refused = refused.or(content.err());
        }
        assert_eq!(unpacked, 5 * MOST_TIMES);
        assert!(refused.expect("in the end").to_string().contains("order"));
    }

    #[test]
    fn what_was_used_last_is_kept() {
        let mut blocks = Blocks::default();
        let block = Block { at: 0, len: 1, form: Form::Zlib };
        for _ in 0..100 {
            blocks.note(block, 10);
        }
        let mut unpacked = 0;
        for round in 0..3 {
            for number in 0..100 {
                let content = blocks.content(number, |_| {
                    unpacked += 1;
                    Ok(vec![7; 10])
                });
                assert_eq!(content.expect("unpacked").len(), 10, "round {round}");
            }
        }
        assert_eq!(unpacked, 100);
    }
}
