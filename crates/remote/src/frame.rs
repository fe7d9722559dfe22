//! Lines of `remote.sh`, with the bytes that follow some of them.
//! Not here: the program that carries them (`exchange`).

use std::io::{self, BufRead, Read};

/// The line that begins an answer.
const BEGIN: &str = "@binderperf";
/// Longest line that is read.
const LONGEST: u64 = 64 * 1024;
/// Largest piece that is passed on.
const PIECE: u64 = 64 * 1024;

/// A line, or a piece of what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A fact: name and value.
    Fact(String, String),
    /// A piece of the command's standard output.
    Out(Vec<u8>),
    /// A piece of its standard error.
    Err(Vec<u8>),
    /// A folder: its path.
    Folder(String),
    /// A file begins: its path and length.
    File(String, u64),
    /// A piece of that file.
    Content(Vec<u8>),
    /// The command runs.
    Beat,
    /// The other side failed: the word for it, and the text.
    Failed(String, String),
    /// The end of the answer, with the command's status where one was followed.
    End(String),
    /// A line that means nothing.
    Garbled(String),
}

/// Reads an answer to its end, and gives away each frame; stops if the taker does. Gives what stood before the answer.
pub(crate) fn read(mut from: impl BufRead, mut take: impl FnMut(Frame) -> bool) -> io::Result<String> {
    let mut chatter = String::new();
    loop {
        let Some((line, _)) = line(&mut from)? else { return Ok(chatter) };
        if line == BEGIN {
            break;
        }
        if chatter.len() < LONGEST as usize {
            chatter += &line;
            chatter.push('\n');
        }
    }
    while let Some((line, true)) = line(&mut from)? {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let number = |text: &str| text.parse::<u64>().ok();
        let goes_on = match (word, number(rest.split(' ').next().unwrap_or_default())) {
            ("O", Some(length)) => pass(&mut from, length, Frame::Out, &mut take)?,
            ("E", Some(length)) => pass(&mut from, length, Frame::Err, &mut take)?,
            ("F", Some(length)) => {
                let path = rest.split_once(' ').map_or("", |(_, path)| path).to_owned();
                take(Frame::File(path, length)) && pass(&mut from, length, Frame::Content, &mut take)?
            }
            ("D", _) => take(Frame::Folder(rest.to_owned())),
            (".", _) => take(Frame::Beat),
            ("!", _) => {
                let (code, text) = rest.split_once(' ').unwrap_or((rest, ""));
                take(Frame::Failed(code.to_owned(), text.to_owned()))
            }
            ("X", _) => {
                take(Frame::End(rest.to_owned()));
                false
            }
            _ => match word.strip_prefix('=') {
                Some(name) => take(Frame::Fact(name.to_owned(), rest.trim().to_owned())),
                None => {
                    take(Frame::Garbled(line));
                    false
                }
            },
        };
        if !goes_on {
            break;
        }
    }
    Ok(chatter)
}

/// One line without its end, and whether it has one; none at the end of the stream.
fn line(from: &mut impl BufRead) -> io::Result<Option<(String, bool)>> {
    let mut bytes = Vec::new();
    from.take(LONGEST).read_until(b'\n', &mut bytes)?;
    let is_whole = bytes.pop_if(|last| *last == b'\n').is_some() || bytes.len() as u64 == LONGEST;
    let text = || String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned();
    Ok((is_whole || !bytes.is_empty()).then(|| (text(), is_whole)))
}

/// Passes on this many bytes.
fn pass(
    from: &mut impl BufRead,
    mut left: u64,
    frame: impl Fn(Vec<u8>) -> Frame,
    take: &mut impl FnMut(Frame) -> bool,
) -> io::Result<bool> {
    while left > 0 {
        let mut piece = Vec::new();
        let got = from.take(left.min(PIECE)).read_to_end(&mut piece)? as u64;
        if got == 0 {
            return Ok(false);
        }
        left -= got;
        if !take(frame(piece)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &[u8]) -> (String, Vec<Frame>) {
        let mut all = Vec::new();
        let chatter = read(text, |frame| {
            all.push(frame);
            true
        });
        (chatter.expect("memory"), all)
    }

    #[test]
    fn an_answer_is_taken_apart_behind_the_chatter() {
        let text =
            b"Welcome!\n@binderperf\n=home /a b\nD x y\nO 3\na\nb.\nF 2 x y\n\0\nF 0 empty\nE 0\nX 7\nmore\n";
        let (chatter, all) = frames(text);
        assert_eq!(chatter, "Welcome!\n");
        let file = |path: &str, length| Frame::File(path.to_owned(), length);
        assert_eq!(
            all,
            [
                Frame::Fact("home".to_owned(), "/a b".to_owned()),
                Frame::Folder("x y".to_owned()),
                Frame::Out(b"a\nb".to_vec()),
                Frame::Beat,
                file("x y", 2),
                Frame::Content(b"\0\n".to_vec()),
                file("empty", 0),
                Frame::End("7".to_owned()),
            ]
        );
    }

    #[test]
    fn an_answer_that_is_cut_has_no_end() {
        let whole = b"@binderperf\nO 5\nabcde.\n! space none left\nX 0\n";
        for cut in 0..whole.len() - 1 {
            let (_, all) = frames(&whole[..cut]);
            assert!(!all.iter().any(|frame| matches!(frame, Frame::End(_))), "{cut}: {all:?}");
        }
        assert_eq!(frames(b"error: device offline").0, "error: device offline\n");
        let (_, all) = frames(b"@binderperf\nwhat?\nX 0\n");
        assert_eq!(all, [Frame::Garbled("what?".to_owned())]);
        let huge = [b"@binderperf\n".to_vec(), vec![b'x'; 200_000]].concat();
        assert!(matches!(frames(&huge).1[..], [Frame::Garbled(_)]));
        assert!(matches!(&frames(b"@binderperf\nO 99999999999999999999\n").1[..], [Frame::Garbled(_)]));
    }
}
