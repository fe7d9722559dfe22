//! Codec of messages: a number for the kind, then each field as words of 8 bytes.
//! Not here: what they mean (`protocol`).
//! Nothing allocates; decoding takes any bytes and never panics.

/// Words of the longest message: its kind and 63 fields.
pub const WORDS: usize = 64;

/// Bytes of an encoded message.
pub const RECORD_SIZE: usize = WORDS * 8;

/// Error: the bytes are no valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bytes that are no message of this protocol")
    }
}

impl std::error::Error for Malformed {}

/// Writes the words of a message in order.
#[derive(Debug)]
pub struct Writer {
    words: [u64; WORDS],
    len: usize,
}

impl Writer {
    pub(super) fn put(&mut self, word: u64) {
        // No message is longer; a unit test encodes the longest of each kind.
        self.words[self.len] = word;
        self.len += 1;
    }
}

/// Reads the words of a message in order.
#[derive(Debug)]
pub struct Reader<'b> {
    bytes: &'b [u8],
}

impl Reader<'_> {
    pub(super) fn take(&mut self) -> Result<u64, Malformed> {
        let (word, rest) = self.bytes.split_first_chunk::<8>().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(u64::from_ne_bytes(*word))
    }
}

/// A value that is encoded as words.
pub trait Field: Sized {
    /// Appends the value's words.
    fn put(&self, to: &mut Writer);
    /// Reads the value back.
    ///
    /// # Errors
    /// [`Malformed`]: no value has these words.
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// A message: a field that fills a record of its own.
pub trait Message: Field {
    /// Encodes the message.
    fn encode(&self) -> [u8; RECORD_SIZE] {
        let mut to = Writer { words: [0; WORDS], len: 0 };
        self.put(&mut to);
        let mut bytes = [0; RECORD_SIZE];
        for (place, word) in bytes.chunks_exact_mut(8).zip(to.words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Decodes a message; bytes behind it are ignored.
    ///
    /// # Errors
    /// [`Malformed`]: an unknown kind, too few bytes, or a word that no value has.
    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::take(&mut Reader { bytes })
    }
}

/// Declares an enum with the numbers of its variants, which is encoded as the number and then the fields.
macro_rules! variants {
    ($(#[$doc:meta])* pub enum $name:ident {
        $($(#[$vdoc:meta])* $number:literal $variant:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty),* $(,)? },)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "a variant's text says what its fields are")]
        #[allow(clippy::large_enum_variant, reason = "messages pass through once and must not allocate")]
        pub enum $name { $($(#[$vdoc])* $variant { $($(#[$fdoc])* $field: $ty),* },)* }

        impl $crate::rpc::codec::Field for $name {
            fn put(&self, to: &mut $crate::rpc::codec::Writer) {
                match self {
                    $(Self::$variant { $($field),* } => {
                        $crate::rpc::codec::Field::put(&($number as u64), to);
                        $($crate::rpc::codec::Field::put($field, to);)*
                    })*
                }
            }

            fn take(from: &mut $crate::rpc::codec::Reader<'_>) -> Result<Self, $crate::rpc::codec::Malformed> {
                let kind: u64 = $crate::rpc::codec::Field::take(from)?;
                Ok(match kind {
                    $($number => Self::$variant {
                        $($field: $crate::rpc::codec::Field::take(from)?),*
                    },)*
                    _ => return Err($crate::rpc::codec::Malformed),
                })
            }
        }
    };
}
pub(crate) use variants;

/// Fields of one integer word.
macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Field for $ty {
            fn put(&self, to: &mut Writer) {
                // Signed values travel sign-extended, and `try_from` below takes them back.
                to.put(*self as i128 as u64);
            }
            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let word = from.take()?;
                <$ty>::try_from(word).or_else(|_| <$ty>::try_from(word as i64)).map_err(|_| Malformed)
            }
        }
    )*};
}
integers!(u64 u32 i32);

impl Field for bool {
    fn put(&self, to: &mut Writer) {
        to.put(u64::from(*self));
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match from.take()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, to: &mut Writer) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<const N: usize> Field for [u64; N] {
    fn put(&self, to: &mut Writer) {
        self.iter().for_each(|word| to.put(*word));
    }
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut all = [0; N];
        for word in &mut all {
            *word = from.take()?;
        }
        Ok(all)
    }
}
