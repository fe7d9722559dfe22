//! Lines of an input of any size and content, in bounded memory.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

/// Maximum length of a line in bytes; the rest of a longer one is skipped.
const LONGEST: usize = 64 << 10;

/// Reader of lines.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    buffer: Vec<u8>,
    number: u32,
    cut: u64,
}

/// A line without its end.
pub(super) struct Line<'l> {
    pub(super) text: Cow<'l, str>,
    /// From 1.
    pub(super) number: u32,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(256 << 10, input), buffer: Vec::new(), number: 0, cut: 0 }
    }

    /// Lines that were longer than the maximum.
    pub(super) fn cut(&self) -> u64 {
        self.cut
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let (mut any, mut is_cut) = (false, false);
        loop {
            let part = match self.input.fill_buf() {
                Ok(part) => part,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if part.is_empty() {
                break;
            }
            any = true;
            let end = part.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(part.len());
            let room = LONGEST - self.buffer.len();
            is_cut |= taken > room;
            self.buffer.extend_from_slice(&part[..taken.min(room)]);
            self.input.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.cut += u64::from(is_cut);
        self.number = self.number.saturating_add(1);
        let bytes = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        Ok(Some(Line { text: String::from_utf8_lossy(bytes), number: self.number }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_and_content_are_read() {
        let mut input = b"one\r\n\xff\n".to_vec();
        input.extend(vec![b'x'; 3 * LONGEST]);
        input.extend(b"\n\nlast");
        let mut lines = Lines::new(&input[..]);
        let mut read = Vec::new();
        while let Some(line) = lines.next().expect("memory") {
            read.push((line.number, line.text.len(), line.text.chars().next()));
        }
        let want = [
            (1, 3, Some('o')),
            (2, 3, Some('\u{fffd}')),
            (3, LONGEST, Some('x')),
            (4, 0, None),
            (5, 4, Some('l')),
        ];
        assert_eq!((read.as_slice(), lines.cut()), (&want[..], 1));
    }
}
