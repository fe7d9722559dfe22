//! The executed instructions of a case, call by call.
//! Not here: what they belong to (`super::stacks`).
//! Facts: QEMU's log item `exec`: `Trace CPU: HOST [CS-BASE/PC/FLAGS/CFLAGS] SYMBOL`, a line for each translated block;
//! with one instruction in a block, a line for each instruction.

/// Longest instruction in bytes.
const LONGEST: u64 = 16;

/// Instructions of calls, by address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The case.
    pub case: String,
    mark: u64,
    addresses: Vec<u64>,
    /// Where each call begins in `addresses`.
    begins: Vec<usize>,
    /// Marks that were not followed by the next instruction of the same function.
    jumps: usize,
}

impl Capture {
    /// Nothing yet. `mark`: the instruction before each call.
    #[must_use]
    pub fn new(case: String, mark: u64) -> Self {
        Self { case, mark, addresses: Vec::new(), begins: Vec::new(), jumps: 0 }
    }

    /// Adds an executed instruction. What comes before the first mark is dropped.
    pub fn add(&mut self, address: u64) {
        if self.addresses.last() == Some(&self.mark) && !(self.mark..self.mark + LONGEST).contains(&address) {
            self.jumps += 1;
        }
        if address == self.mark {
            self.begins.push(self.addresses.len());
        }
        if !self.begins.is_empty() {
            self.addresses.push(address);
        }
    }

    /// The number of complete calls: each ends where the next begins.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// The number of instructions that are kept.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.addresses.len()
    }

    /// Whether the log has each instruction. One that has a line for each block of them jumps from every mark.
    #[must_use]
    pub fn has_each_instruction(&self) -> bool {
        2 * self.jumps <= self.calls()
    }

    /// The complete calls.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u64]> {
        self.begins.windows(2).map(|ends| &self.addresses[ends[0]..ends[1]])
    }
}

/// The guest's address in a line of QEMU's log; `None` for other lines.
#[must_use]
pub fn program_counter(line: &[u8]) -> Option<u64> {
    if !line.starts_with(b"Trace ") {
        return None;
    }
    let open = line.iter().position(|byte| *byte == b'[')?;
    let mut fields = line[open + 1..].split(|byte| *byte == b'/');
    let field = fields.nth(1)?;
    if field.is_empty() || field.len() > 16 {
        return None;
    }
    field
        .iter()
        .try_fold(0u64, |address, digit| Some(address << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_has_an_address() {
        let line =
            b"Trace 0: 0x7f4c24000100 [0000000000000000/ffffffff81e00080/0040c0b0/ff000201] entry_SYSCALL_64";
        assert_eq!(program_counter(line), Some(0xffff_ffff_81e0_0080));
        for other in
            [&b"IN: main"[..], b"Trace 0: 0x1", b"Trace 0: [0/zz/0/0]", b"Trace 0: [0//0]", b"", b"[1/2/3]"]
        {
            assert_eq!(program_counter(other), None, "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn calls_lie_between_marks() {
        let mut capture = Capture::new("c".to_owned(), 7);
        for address in [1, 2, 7, 3, 4, 7, 5, 7, 6] {
            capture.add(address);
        }
        assert_eq!(capture.calls(), 2);
        assert_eq!(capture.each().collect::<Vec<_>>(), [&[7, 3, 4][..], &[7, 5]]);
        assert_eq!(Capture::new("c".to_owned(), 7).calls(), 0);
    }

    #[test]
    fn a_log_of_blocks_is_told_from_one_of_instructions() {
        let of = |next: u64| {
            let mut capture = Capture::new("c".to_owned(), 0x1000);
            (0..9).flat_map(|_| [0x1000, next, 0x9000]).for_each(|address| capture.add(address));
            capture
        };
        assert!(of(0x1004).has_each_instruction());
        assert!(!of(0x2000).has_each_instruction());
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read_or_passed_over(line in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = program_counter(&line);
        }
    }
}
