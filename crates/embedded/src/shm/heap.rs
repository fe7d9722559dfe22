//! Test memory: private words and bytes that behave like shared ones.
//! Not here: memory that ships (`sys::sealed_memory`).
//!
//! Under loom the words are loom atomics, limited to those that a model uses. Each copy of bytes is reported
//! to loom, which fails the model if two threads access the same bytes at the same time.

#[cfg(not(loom))]
pub(crate) use plain::HeapMemory;
#[cfg(loom)]
pub(crate) use watched::HeapMemory;

#[cfg(not(loom))]
mod plain {
    use super::super::Memory;
    use sys::sync::{AtomicU32, Ordering};

    /// Shared words; bytes are parts of them.
    #[derive(Debug)]
    pub(crate) struct HeapMemory(Vec<AtomicU32>);

    impl HeapMemory {
        /// Allocates zeroed memory, rounded up to whole words.
        pub(crate) fn new(len: usize) -> Self {
            Self((0..len.div_ceil(4)).map(|_| AtomicU32::new(0)).collect())
        }

        fn byte(&self, at: usize) -> (&AtomicU32, usize) {
            (&self.0[at / 4], at % 4)
        }
    }

    impl Memory for HeapMemory {
        fn len(&self) -> usize {
            self.0.len() * 4
        }

        fn word(&self, offset: usize) -> &AtomicU32 {
            assert!(offset.is_multiple_of(4));
            &self.0[offset / 4]
        }

        fn copy_in(&self, offset: usize, bytes: &[u8]) {
            for (at, &byte) in (offset..).zip(bytes) {
                let (word, index) = self.byte(at);
                let mut all = word.load(Ordering::Relaxed).to_ne_bytes();
                all[index] = byte;
                word.store(u32::from_ne_bytes(all), Ordering::Relaxed);
            }
        }

        fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
            for (at, byte) in (offset..).zip(bytes) {
                let (word, index) = self.byte(at);
                *byte = word.load(Ordering::Relaxed).to_ne_bytes()[index];
            }
        }
    }
}

#[cfg(loom)]
mod watched {
    use super::super::Memory;
    use std::collections::BTreeMap;
    use std::ops::Range;
    use std::sync::Mutex;
    use sys::sync::{AtomicU32, Watched};

    /// The words and byte ranges of one model.
    #[derive(Debug)]
    pub(crate) struct HeapMemory {
        len: usize,
        words: BTreeMap<usize, AtomicU32>,
        areas: Vec<Area>,
    }

    #[derive(Debug)]
    struct Area {
        range: Range<usize>,
        /// Ranges whose accesses are reported to loom.
        watch: Watched,
        /// A lock outside the model: it only holds the bytes.
        bytes: Mutex<Vec<u8>>,
    }

    impl HeapMemory {
        /// Makes memory of a layout's size with these words and byte ranges.
        pub(crate) fn new(
            len: usize,
            words: impl IntoIterator<Item = usize>,
            areas: impl IntoIterator<Item = Range<usize>>,
        ) -> Self {
            let words = words.into_iter().map(|at| (at, AtomicU32::new(0))).collect();
            let area = |range: Range<usize>| Area {
                bytes: Mutex::new(vec![0; range.len()]),
                watch: Watched::default(),
                range,
            };
            Self { len, words, areas: areas.into_iter().map(area).collect() }
        }

        fn areas(&self, range: Range<usize>) -> impl Iterator<Item = (&Area, Range<usize>)> {
            let inside = self.areas.iter().filter(|area| !area.range.is_empty());
            assert!(
                inside.clone().any(|area| area.range.contains(&range.start)),
                "an area that the model lacks"
            );
            inside.filter_map(move |area| {
                let part = area.range.start.max(range.start)..area.range.end.min(range.end);
                (!part.is_empty()).then_some((area, part))
            })
        }
    }

    impl Memory for HeapMemory {
        fn len(&self) -> usize {
            self.len
        }

        fn word(&self, offset: usize) -> &AtomicU32 {
            self.words.get(&offset).unwrap_or_else(|| panic!("a word that the model lacks: {offset}"))
        }

        fn copy_in(&self, offset: usize, bytes: &[u8]) {
            if bytes.is_empty() {
                return;
            }
            for (area, part) in self.areas(offset..offset + bytes.len()) {
                let from = &bytes[part.start - offset..part.end - offset];
                let to = part.start - area.range.start..part.end - area.range.start;
                area.watch.write(|| area.bytes.lock().expect("no panic inside")[to].copy_from_slice(from));
            }
        }

        fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
            if bytes.is_empty() {
                return;
            }
            for (area, part) in self.areas(offset..offset + bytes.len()) {
                let to = &mut bytes[part.start - offset..part.end - offset];
                let from = part.start - area.range.start..part.end - area.range.start;
                area.watch.read(|| to.copy_from_slice(&area.bytes.lock().expect("no panic inside")[from]));
            }
        }
    }
}
