//! Room: what a guest tells its host over the one channel between them, as bytes.
//! Not here: who writes (`guest::outbox`) and who reads (`session`).
//! A frame is a tag byte, a little-endian `u32` length, and that many bytes. Host and guest are the
//! same binary, so the form has no version.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

/// Longest payload: what one virtio buffer comfortably takes.
pub(super) const LONGEST: usize = 32 * 1024;

/// The guest is up and about to start the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// `uname -r`.
    pub(super) release: String,
}

/// A file follows, in [`Frame::Content`] frames up to the next other frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileHead {
    /// Relative to the folder that the command ran in.
    pub(super) path: String,
    /// Permission bits.
    pub(super) mode: u32,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It exited with this code.
    Code(u8),
    /// This signal ended it.
    Signal(i32),
}

impl Status {
    /// The shell's number for it: the code, or 128 + the signal.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

/// Why a guest could not start the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Trouble {
    /// No driver, after every way to get one.
    NoBinder { said: String, release: String },
    /// Anything else.
    Other(String),
}

/// One thing said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Hello(Hello),
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    File(FileHead),
    Content(Vec<u8>),
    Trouble(Trouble),
    Done(Status),
}

fn json<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::from)
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(io::Error::from)
}

impl Frame {
    /// Writes the frame in one call, so that writers which share a lock never interleave.
    ///
    /// # Errors
    /// As the sink's; `InvalidInput` for a payload over [`LONGEST`].
    pub(super) fn write(&self, mut sink: impl Write) -> io::Result<()> {
        let (tag, payload) = match self {
            Self::Hello(hello) => (b'H', json(hello)?),
            Self::Stdout(bytes) => (b'O', bytes.clone()),
            Self::Stderr(bytes) => (b'E', bytes.clone()),
            Self::File(head) => (b'F', json(head)?),
            Self::Content(bytes) => (b'C', bytes.clone()),
            Self::Trouble(trouble) => (b'T', json(trouble)?),
            Self::Done(status) => (b'D', json(status)?),
        };
        if payload.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a frame over 32 KiB"));
        }
        let mut bytes = Vec::with_capacity(5 + payload.len());
        bytes.push(tag);
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        sink.write_all(&bytes)
    }

    /// Reads the next frame; `None` at a clean end.
    ///
    /// # Errors
    /// As the source's; `UnexpectedEof` inside a frame; `InvalidData` for bytes no guest writes.
    pub(super) fn read(mut source: impl Read) -> io::Result<Option<Self>> {
        let mut tag = [0u8; 1];
        if source.read(&mut tag)? == 0 {
            return Ok(None);
        }
        let mut len = [0u8; 4];
        source.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {len} bytes")));
        }
        let mut payload = vec![0; len];
        source.read_exact(&mut payload)?;
        Ok(Some(match tag[0] {
            b'H' => Self::Hello(parse(&payload)?),
            b'O' => Self::Stdout(payload),
            b'E' => Self::Stderr(payload),
            b'F' => Self::File(parse(&payload)?),
            b'C' => Self::Content(payload),
            b'T' => Self::Trouble(parse(&payload)?),
            b'D' => Self::Done(parse(&payload)?),
            tag => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame tagged {tag:#04x}")));
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_comes_back_as_it_was_sent() {
        let frames = [
            Frame::Hello(Hello { release: "7.2.13".into() }),
            Frame::Stdout(vec![0, 255, 10]),
            Frame::Stderr(Vec::new()),
            Frame::File(FileHead { path: "a/b".into(), mode: 0o644 }),
            Frame::Content(vec![7; LONGEST]),
            Frame::Trouble(Trouble::NoBinder { said: "none".into(), release: "6.1".into() }),
            Frame::Done(Status::Signal(9)),
        ];
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes).expect("memory takes it"));
        let mut source = bytes.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut source).expect("well formed"), Some(frame));
        }
        assert_eq!(Frame::read(&mut source).expect("well formed"), None);
    }

    #[test]
    fn a_cut_or_foreign_stream_is_an_error() {
        for (why, bytes, want) in [
            ("cut in the length", &b"O\x01\0"[..], io::ErrorKind::UnexpectedEof),
            ("cut in the payload", b"O\x02\0\0\0x", io::ErrorKind::UnexpectedEof),
            ("a length no guest sends", b"O\xff\xff\xff\xff", io::ErrorKind::InvalidData),
            ("a tag no guest sends", b"?\0\0\0\0", io::ErrorKind::InvalidData),
        ] {
            assert_eq!(Frame::read(bytes).expect_err(why).kind(), want, "{why}");
        }
        assert!(Frame::read(&b"D\x01\0\0\0x"[..]).is_err(), "a payload that is no JSON");
    }

    #[test]
    fn a_signal_becomes_the_shells_number() {
        assert_eq!(Status::Code(3).exit_code(), 3);
        assert_eq!(Status::Signal(11).exit_code(), 139);
    }
}
