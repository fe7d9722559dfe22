//! Messages from the guest to the host, as bytes.
//! Not here: the writer (`guest::outbox`), the reader (`session`).
//! A frame is a tag byte, a little-endian `u32` length, and the payload. Host and guest run the same binary, so the
//! format has no version.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

/// Longest payload, in bytes; fits one virtio buffer.
pub(super) const LONGEST: usize = 32 * 1024;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It exited with this code.
    Code(u8),
    /// A signal killed it.
    Signal(i32),
}

impl Status {
    /// The shell's exit status: the code, or 128 + the signal.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

/// A message. Output and the content of files are raw bytes, all others JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// A part of the last [`Event::File`].
    Content(Vec<u8>),
    Event(Event),
}

/// What happens in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Event {
    /// The guest, a kernel of this release (`uname -r`), is up and about to start the command.
    Hello { release: String },
    /// A file follows, in [`Frame::Content`] up to the next other frame: path relative to the command's folder, and
    /// permission bits.
    File { path: String, mode: u32 },
    /// The command could not be started: no binder driver was found.
    NoBinder { said: String, release: String },
    /// The command could not be started for another reason.
    Failed(String),
    /// The command ended.
    Done(Status),
}

impl Frame {
    /// Writes the frame in one call, so that frames of several writers do not interleave.
    ///
    /// # Errors
    /// The sink's error; `InvalidInput`: the payload exceeds [`LONGEST`].
    pub(super) fn write(&self, mut sink: impl Write) -> io::Result<()> {
        let json;
        let (tag, payload) = match self {
            Self::Stdout(bytes) => (b'O', bytes),
            Self::Stderr(bytes) => (b'E', bytes),
            Self::Content(bytes) => (b'C', bytes),
            Self::Event(event) => {
                json = serde_json::to_vec(event)?;
                (b'J', &json)
            }
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

    /// Reads the next frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// The source's error; `UnexpectedEof` inside a frame; `InvalidData`: not a frame.
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
            b'O' => Self::Stdout(payload),
            b'E' => Self::Stderr(payload),
            b'C' => Self::Content(payload),
            b'J' => Self::Event(serde_json::from_slice(&payload)?),
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
            Frame::Stdout(vec![0, 255, 10]),
            Frame::Stderr(Vec::new()),
            Frame::Event(Event::File { path: "a/b".into(), mode: 0o644 }),
            Frame::Content(vec![7; LONGEST]),
            Frame::Event(Event::NoBinder { said: "none".into(), release: "6.1".into() }),
            Frame::Event(Event::Done(Status::Signal(9))),
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
        assert!(Frame::read(&b"J\x01\0\0\0x"[..]).is_err(), "a payload that is no JSON");
    }

    #[test]
    fn a_signal_becomes_the_shells_number() {
        assert_eq!(Status::Code(3).exit_code(), 3);
        assert_eq!(Status::Signal(11).exit_code(), 139);
    }
}
