//! The output of a command in lines: the last one, and the folders that lines announce.
//! Not here: passing it on (`device`).

use intake::Name;

/// Maximum length of a line that is kept, in bytes.
const LONGEST_LINE: usize = 4096;

/// Output so far.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    part: Vec<u8>,
    /// The last whole line that is not empty.
    pub(crate) last: String,
    /// Names that lines ended in, behind a colon and a blank.
    pub(crate) announced: Vec<String>,
}

impl Lines {
    /// Takes a part of it.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.part.len());
            self.part.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.part)).trim().to_owned();
                let name = line.rsplit_once(": ").map(|(_, name)| name.to_owned());
                self.announced.extend(name.filter(|name| Name::parse(name).is_ok()));
                if !line.is_empty() {
                    self.last = line;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_and_what_lines_announce() {
        let mut lines = Lines::default();
        for piece in ["caught a: b: out/1", "\ncaught c: ../up\n", "caught d: /etc\n\n", "half: of it"] {
            lines.add(piece.as_bytes());
        }
        assert_eq!(
            (lines.last.as_str(), &lines.announced[..]),
            ("caught d: /etc", &["out/1".to_owned()][..])
        );
        lines.add(&vec![b'x'; 2 * LONGEST_LINE]);
        lines.add(b"\n");
        assert_eq!(lines.last.len(), LONGEST_LINE);
    }
}
