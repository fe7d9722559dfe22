//! Decoder of protobuf's wire format.
//! Not here: field numbers.

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'b> {
    /// Varint or fixed-size number.
    Number(u64),
    /// Text, bytes, nested message, or packed numbers.
    Bytes(&'b [u8]),
}

impl<'b> Value<'b> {
    /// The number; 0 for bytes.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => 0,
        }
    }

    /// The bytes; none for a number.
    pub(super) fn bytes(self) -> &'b [u8] {
        match self {
            Self::Number(_) => &[],
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Low 32 bits of the number.
    #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are meant")]
    pub(super) fn word(self) -> u32 {
        self.number() as u32
    }

    /// Low 32 bits of the number, with their sign.
    pub(super) fn int(self) -> i32 {
        self.word().cast_signed()
    }

    /// The bytes as text.
    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

/// Takes a varint from the front.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            *bytes = bytes.get(at + 1..)?;
            return Some(value);
        }
    }
    None
}

/// Iterator of a message's fields. It ends early if the message is damaged.
#[derive(Clone, Debug)]
pub(super) struct Fields<'b> {
    rest: &'b [u8],
    broken: bool,
}

impl<'b> Fields<'b> {
    pub(super) fn of(message: &'b [u8]) -> Self {
        Self { rest: message, broken: false }
    }

    /// Whether the message is damaged; known at its end.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Number of bytes that remain.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn field(&mut self) -> Option<(u32, Value<'b>)> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
        let mut fixed = |size: usize| {
            let (bytes, rest) = self.rest.split_at_checked(size)?;
            self.rest = rest;
            Some(bytes)
        };
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.rest)?),
            1 => Value::Number(u64::from_le_bytes(fixed(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Number(u32::from_le_bytes(fixed(4)?.try_into().ok()?).into()),
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = (u32, Value<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.broken = true;
            self.rest = &[];
        }
        field
    }
}

/// First field of this number.
pub(super) fn first(message: &[u8], number: u32) -> Option<Value<'_>> {
    Fields::of(message).find(|(found, _)| *found == number).map(|(_, value)| value)
}

/// Position of a nested slice in the bytes that it was cut from.
pub(super) fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_wire_type_are_read() {
        let message = b"\x08\x96\x01\x12\x07testing\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0";
        let fields: Vec<_> = Fields::of(message).collect();
        let want = [
            (1, Value::Number(150)),
            (2, Value::Bytes(b"testing")),
            (3, Value::Number(1)),
            (4, Value::Number(2)),
        ];
        assert_eq!(fields, want);
        assert_eq!(offset_in(message, fields[1].1.bytes()), 5);
        assert_eq!(Value::Number(u64::MAX).int(), -1);
    }

    #[test]
    fn damage_ends_a_message() {
        for bad in [
            b"\x08".as_slice(),
            b"\x0a\x05abc",
            b"\x0b",
            b"\x00\x00",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x09\0\0\0",
        ] {
            let mut fields = Fields::of(bad);
            assert_eq!(fields.by_ref().count(), 0, "{bad:?}");
            assert!(fields.is_broken(), "{bad:?}");
        }
        let mut empty = Fields::of(b"");
        assert!(empty.next().is_none() && !empty.is_broken());
    }
}
