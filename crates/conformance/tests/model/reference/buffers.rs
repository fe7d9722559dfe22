//! Permitted pointers between scattered buffers.
//! Facts: contract OBJ-16, OBJ-17. None of them is at offset 0 (OBJ-18): the number comes first.

/// A buffer into which pointers may still be written.
#[derive(Clone, Copy, Debug)]
struct Open {
    index: usize,
    len: u64,
    /// Lowest offset at which a pointer may be written.
    free: u64,
}

/// The last buffer of a payload and its ancestors, outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain(Vec<Open>);

impl Chain {
    /// Whether a buffer of `len` bytes with this index may come next; `parent`: the index and offset of the pointer
    /// to it.
    pub(super) fn add(&mut self, index: usize, len: u64, parent: Option<(usize, u64)>) -> bool {
        let Some((parent, offset)) = parent else {
            self.0 = vec![Open { index, len, free: 0 }];
            return true;
        };
        let Some(place) = self.0.iter().position(|open| open.index == parent) else { return false };
        self.0.truncate(place + 1);
        let open = &mut self.0[place];
        if offset < open.free || !offset.is_multiple_of(4) || offset + 8 > open.len {
            return false;
        }
        open.free = offset + 8;
        self.0.push(Open { index, len, free: 0 });
        true
    }
}
