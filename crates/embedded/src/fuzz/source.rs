//! Bytes as a sequence of choices, so that most inputs are meaningful.

/// Rest of an input; after its end every byte is 0.
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

    /// A number: usually small, sometimes at an edge, sometimes any.
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

    /// One of two.
    pub(super) fn flip(&mut self) -> bool {
        self.byte() < 128
    }

    /// A number below `of`.
    pub(super) fn choose(&mut self, of: usize) -> usize {
        usize::from(self.byte()) % of.max(1)
    }
}

/// The bytes of a seed: up to `longest`.
#[cfg(test)]
pub(super) fn noise(seed: u64, longest: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; rng.usize(..longest)];
    rng.fill(&mut bytes);
    bytes
}
