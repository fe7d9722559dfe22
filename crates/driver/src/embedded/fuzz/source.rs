//! Room: bytes as a sequence of choices, so that most inputs mean something.

/// What is left of an input. An input that has ended goes on with 0.
#[derive(Debug)]
pub(super) struct Source<'b> {
    bytes: &'b [u8],
}

impl<'b> Source<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                *byte
            }
            None => 0,
        }
    }

    /// Up to `most` bytes.
    pub(super) fn bytes(&mut self, most: usize) -> &'b [u8] {
        let (taken, rest) = self.bytes.split_at(most.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    /// A number: most often a small one, sometimes one at an edge, sometimes any.
    pub(super) fn word(&mut self) -> u64 {
        let first = self.byte();
        match first {
            0..=199 => u64::from(first % 25),
            200..=219 => 1 << (first - 200),
            220..=229 => u64::MAX - u64::from(first - 220),
            230..=239 => u64::from(u32::MAX) - u64::from(first - 230),
            _ => {
                let mut whole = [0; 8];
                let taken = self.bytes(if first < 248 { 4 } else { 8 });
                whole[..taken.len()].copy_from_slice(taken);
                u64::from_le_bytes(whole)
            }
        }
    }

    /// One of so many.
    pub(super) fn choose(&mut self, of: usize) -> usize {
        usize::from(self.byte()) % of.max(1)
    }
}

/// The bytes of a seed: up to `longest`.
#[cfg(test)]
pub(super) fn noise(seed: u64, longest: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    };
    let len = next() as usize % longest;
    (0..len).map(|_| next() as u8).collect()
}
