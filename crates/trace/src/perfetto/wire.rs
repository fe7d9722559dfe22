//! Protobuf wire format, as far as a trace needs it; and the output for packets.
//! Not here: field numbers.
//! Facts: protobuf.dev, "Encoding": a field's key is its number and wire type, lengths are varints, a negative
//! `int32` is written as a 64-bit number.

use std::io::{self, Write};

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const BYTES: u32 = 2;

/// Value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'t> {
    /// `string`.
    Text(&'t str),
    /// `int32` or `int64`.
    Signed(i64),
    /// Unsigned number, enum or `bool`.
    Unsigned(u64),
}

impl<'t> From<&'t str> for Value<'t> {
    fn from(text: &'t str) -> Self {
        Self::Text(text)
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Self::Signed(number.into())
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Unsigned(number.into())
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Unsigned(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Unsigned(value.into())
    }
}

/// Message under construction.
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

    /// Clears the message and keeps its memory.
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

    /// Adds a field whose wire type is that of the value.
    pub(super) fn field<'t>(&mut self, field: u32, value: impl Into<Value<'t>>) {
        match value.into() {
            Value::Text(text) => self.raw(field, text.as_bytes()),
            Value::Signed(number) => {
                self.key(field, VARINT);
                self.put(number.cast_unsigned());
            }
            Value::Unsigned(number) => {
                self.key(field, VARINT);
                self.put(number);
            }
        }
    }

    /// Adds a nested message whose fields 1, 2, ... have these values.
    pub(super) fn message(&mut self, field: u32, values: &[Value<'_>]) {
        self.nested(field, |out| (1..).zip(values).for_each(|(field, value)| out.field(field, *value)));
    }

    /// Adds a `fixed64` field.
    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a bytes field, or an encoded message.
    pub(super) fn raw(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, BYTES);
        self.put(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds encoded fields of this message.
    pub(super) fn fields(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a nested message. One byte is reserved for its length, since most are shorter than 128 bytes; longer ones
    /// are moved.
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
        // The longer length was appended; rotate it in front of the message, over the reserved byte.
        self.bytes[length_at..].rotate_right(more);
        self.bytes.remove(length_at + more);
    }
}

/// Packet output; keeps the first write error and writes nothing after it.
#[derive(Debug)]
pub(super) struct Output<W> {
    writer: W,
    error: Option<io::Error>,
    scratch: Message,
    /// Packets written.
    pub(super) packets: u64,
    /// Bytes written.
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

    /// Whether a write failed.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Flushes; returns the first error.
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
        // Examples of protobuf's encoding description: field 1 with 150, field 2 with "testing".
        assert_eq!(written(|message| message.field(1, 150_u32)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|message| message.field(2, "testing")), *b"\x12\x07testing");
        assert_eq!(
            written(|message| message.field(1, -2)),
            [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
        assert_eq!(written(|message| message.fixed(47, 1)), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn messages_of_every_length_have_it_before_them() {
        for length in [0_usize, 1, 127, 128, 129, 16_383, 16_384, 100_000] {
            let inner = vec![7_u8; length];
            let outer = written(|message| {
                message.field(1, 5_u32);
                message.nested(3, |message| message.fields(&inner));
                message.field(2, 6_u32);
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
        output.packet(|message| message.field(2, "fits"));
        assert!(!output.has_failed());
        output.packet(|message| message.field(2, "does not"));
        output.packet(|message| message.field(2, "nor this"));
        assert!(output.has_failed() && output.packets == 2);
        assert_eq!(output.finish().expect_err("full").kind(), io::ErrorKind::WriteZero);
    }
}
