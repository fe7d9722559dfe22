//! Room: protobuf's wire format, as much of it as a trace needs; and the place that packets go to.
//! Not here: which fields there are.
//! Facts: protobuf.dev, "Encoding": a field's key is its number and its wire type, lengths are varints, an
//! `int32` below 0 is written as the 64-bit number.

use std::io::{self, Write};

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;

/// A message being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.put(u64::from(field << 3 | wire));
    }

    /// An unsigned number, an enumerator or a truth value.
    pub(super) fn unsigned(&mut self, field: u32, value: impl Into<u64>) {
        self.key(field, VARINT);
        self.put(value.into());
    }

    /// A signed number, `int32` or `int64`.
    pub(super) fn signed(&mut self, field: u32, value: impl Into<i64>) {
        self.key(field, VARINT);
        self.put(value.into().cast_unsigned());
    }

    /// A `fixed64`.
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A text.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.raw(field, text.as_bytes());
    }

    /// Bytes, or a message that is written already.
    pub(super) fn raw(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, BYTES);
        self.put(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Fields that are written already, of this message itself.
    pub(super) fn fields(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A message within this one. Most are shorter than 128 bytes, so that one byte for their length is
    /// left free; longer ones are moved.
    pub(super) fn nested(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.key(field, BYTES);
        let length_at = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - length_at - 1;
        if length < 0x80 {
            self.bytes[length_at] = length as u8;
            return;
        }
        let end = self.bytes.len();
        self.put(length as u64);
        let more = self.bytes.len() - end;
        // The length stands behind the message now; rotated, it stands before it, over the free byte.
        self.bytes[length_at..].rotate_right(more);
        self.bytes.remove(length_at + more);
    }
}

/// Where the packets go; after the first error it takes no more, and the error is kept.
#[derive(Debug)]
pub(super) struct Output<W> {
    writer: W,
    error: Option<io::Error>,
    scratch: Message,
    /// Packets written.
    pub(super) packets: u64,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// `Trace.packet`.
const PACKET: u32 = 1;

impl<W: Write> Output<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer, error: None, scratch: Message::default(), packets: 0, bytes: 0 }
    }

    /// Writes one packet.
    pub(super) fn packet(&mut self, write: impl FnOnce(&mut Message)) {
        if self.error.is_some() {
            return;
        }
        self.scratch.clear();
        self.scratch.nested(PACKET, write);
        self.packets += 1;
        self.bytes += self.scratch.len() as u64;
        self.error = self.writer.write_all(self.scratch.bytes()).err();
    }

    /// Whether nothing more can be written.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// All is written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::default();
        write(&mut message);
        message.bytes
    }

    #[test]
    fn numbers_are_as_protobuf_has_them() {
        // The examples of protobuf's own description: field 1 with 150, field 2 with "testing".
        assert_eq!(written(|message| message.unsigned(1, 150_u32)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|message| message.text(2, "testing")), *b"\x12\x07testing");
        assert_eq!(
            written(|message| message.signed(1, -2)),
            [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
        assert_eq!(written(|message| message.fixed(47, 1)), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn messages_of_every_length_have_it_before_them() {
        for length in [0_usize, 1, 127, 128, 129, 16_383, 16_384, 100_000] {
            let inner = vec![7_u8; length];
            let outer = written(|message| {
                message.unsigned(1, 5_u32);
                message.nested(3, |message| message.fields(&inner));
                message.unsigned(2, 6_u32);
            });
            let mut want = vec![0x08, 5, 0x1a];
            let mut length = Message::default();
            length.put(inner.len() as u64);
            want.extend_from_slice(length.bytes());
            want.extend_from_slice(&inner);
            want.extend_from_slice(&[0x10, 6]);
            assert_eq!(outer, want, "a message of {} bytes", inner.len());
        }
    }

    #[test]
    fn the_first_error_stays() {
        let mut room = [0_u8; 10];
        let mut output = Output::new(&mut room[..]);
        output.packet(|message| message.text(2, "fits"));
        assert!(!output.has_failed());
        output.packet(|message| message.text(2, "does not"));
        output.packet(|message| message.text(2, "nor this"));
        assert!(output.has_failed() && output.packets == 2);
        assert_eq!(output.finish().expect_err("full").kind(), io::ErrorKind::WriteZero);
    }
}
