//! Text that stands as one string in a file: the trace in a page of old systrace (`var linuxPerfData = "..."`), the kernel's
//! events in a trace of Chrome (`"systemTraceEvents": "..."`).
//! Facts: RFC 8259, section 7, for the escapes; JavaScript also has a backslash before the end of a line, which goes.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Bytes read at once.
const WINDOW: usize = 256 << 10;

/// The string's text, up to its closing quotation mark.
#[derive(Debug)]
pub(crate) struct Quoted<R> {
    input: BufReader<R>,
    /// Decoded bytes that had no room.
    left: Vec<u8>,
    ended: bool,
}

impl<R: Read + Seek> Quoted<R> {
    /// Finds the string that `key`, then `sign`, stands before, and begins behind its quotation mark; `None` if there is none.
    ///
    /// # Errors
    /// I/O errors of the input.
    pub(crate) fn find(mut input: R, key: &[u8], sign: u8) -> io::Result<Result<Self, R>> {
        input.rewind()?;
        let mut from = 0;
        while let Some(behind) = find_from(&mut input, from, key)? {
            let mut next = Vec::new();
            input.seek(SeekFrom::Start(behind))?;
            (&mut input).take(64).read_to_end(&mut next)?;
            let rest = next.trim_ascii_start().strip_prefix(&[sign]).map(<[u8]>::trim_ascii_start);
            if let Some(text) = rest.and_then(|rest| rest.strip_prefix(b"\"")) {
                input.seek(SeekFrom::Start(behind + (next.len() - text.len()) as u64))?;
                let input = BufReader::with_capacity(WINDOW, input);
                return Ok(Ok(Self { input, left: Vec::new(), ended: false }));
            }
            from = behind;
        }
        Ok(Err(input))
    }
}

/// Offset behind the first place of `what` from `from` on.
pub(crate) fn find_from(input: &mut (impl Read + Seek), from: u64, what: &[u8]) -> io::Result<Option<u64>> {
    input.seek(SeekFrom::Start(from))?;
    let (mut window, mut at) = (Vec::new(), from);
    loop {
        if input.by_ref().take(WINDOW as u64).read_to_end(&mut window)? == 0 {
            return Ok(None);
        }
        if let Some(found) = window.windows(what.len()).position(|bytes| bytes == what) {
            return Ok(Some(at + (found + what.len()) as u64));
        }
        // What was found in part goes on in the next window.
        let gone = window.len().saturating_sub(what.len() - 1);
        window.drain(..gone);
        at += gone as u64;
    }
}

impl<R: Read> Quoted<R> {
    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.input.fill_buf()?.first().copied();
        self.input.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// Decodes the next character into `self.left`.
    fn decode(&mut self) -> io::Result<()> {
        let broken = || io::Error::new(io::ErrorKind::UnexpectedEof, "the string has no end");
        match self.byte()?.ok_or_else(broken)? {
            b'"' => self.ended = true,
            b'\\' => match self.byte()?.ok_or_else(broken)? {
                b'n' => self.left.push(b'\n'),
                b't' => self.left.push(b'\t'),
                b'r' | b'b' | b'f' | b'\n' => {}
                b'u' => {
                    let mut digits = Vec::new();
                    for _ in 0..4 {
                        digits.push(self.byte()?.ok_or_else(broken)?);
                    }
                    let code = crate::number::hex(&digits).and_then(|code| u32::try_from(code).ok());
                    let decoded = code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.left.extend(decoded.encode_utf8(&mut [0; 4]).as_bytes());
                }
                other => self.left.push(other),
            },
            other => self.left.push(other),
        }
        Ok(())
    }
}

impl<R: Read> Read for Quoted<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        while !self.ended && self.left.len() < space.len() {
            self.decode()?;
        }
        let taken = self.left.len().min(space.len());
        space[..taken].copy_from_slice(&self.left[..taken]);
        self.left.drain(..taken);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_string_is_found_wherever_it_is_and_decoded() {
        for before in [0, 10, WINDOW - 7, WINDOW, 3 * WINDOW + 5] {
            let file = format!("{}key x \"key\" : \"a\\n\\t\\\"\\u00e4\\\nb\", \"c\"", " ".repeat(before));
            let quoted = Quoted::find(Cursor::new(file), b"\"key\"", b':').expect("memory");
            let mut text = String::new();
            quoted.expect("it is there").read_to_string(&mut text).expect("UTF-8");
            assert_eq!(text, "a\n\t\"\u{e4}b", "{before}");
        }
        let none = Quoted::find(Cursor::new("\"key\": [1]"), b"\"key\"", b':').expect("memory");
        assert!(none.is_err());
    }

    #[test]
    fn a_string_that_breaks_off_is_an_error_behind_its_text() {
        let mut quoted = Quoted::find(Cursor::new("k=\"abc"), b"k", b'=').expect("memory").expect("there");
        let (mut text, mut byte) = (Vec::new(), [0]);
        let error = loop {
            match quoted.read(&mut byte) {
                Ok(0) => break None,
                Ok(_) => text.extend(byte),
                Err(error) => break Some(error),
            }
        };
        assert_eq!(
            (text.as_slice(), error.map(|error| error.kind())),
            (b"abc".as_slice(), Some(io::ErrorKind::UnexpectedEof))
        );
    }
}
