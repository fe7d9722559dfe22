//! The checksum of a record, which tells an edited or damaged file from the one that was written.
//! Not here: what a reader does about it (`crate::read`).
//!
//! It guards against accidents and careless edits, not against intent: anyone can compute it anew.
//!
//! It is computed from the values of the document, not from its bytes, so it survives another layout, another order of
//! fields and another spelling of numbers. Each value is hashed by FNV-1a (64 bits): a tag for its type, then its
//! content. docs/formats.md has the exact rules.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The field of a document that holds its checksum.
pub(crate) const FIELD: &str = "checksum";
/// How many significant digits of a number with a fraction count; programs differ in those behind.
const DIGITS: usize = 12;

/// Computes the checksum of a JSON document, without its own field.
pub(crate) fn of(document: &[u8]) -> serde_json::Result<String> {
    let Hashed { unsigned, .. } = serde_json::from_slice(document)?;
    Ok(format!("fnv1a64:{unsigned:016x}"))
}

/// Adds the checksum to a document that was just written: an indented object, with its closing brace in the last line.
pub(crate) fn added(document: &str) -> String {
    let sum = of(document.as_bytes()).expect("the document is JSON");
    let fields = document.trim_end().strip_suffix('}').expect("the document is an object").trim_end();
    format!("{fields},\n  \"{FIELD}\": \"{sum}\"\n}}\n")
}

/// The hash of a JSON value.
struct Hashed {
    hash: u64,
    /// The hash without the field of the checksum, if the value is an object that has it; else the same.
    unsigned: u64,
}

impl Hashed {
    fn of(fnv: Fnv) -> Hashed {
        Hashed { hash: fnv.0, unsigned: fnv.0 }
    }
}

impl<'de> Deserialize<'de> for Hashed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hashed, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

/// Hashes whatever value the parser meets, without keeping it.
struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Hashed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Hashed, E> {
        Ok(Hashed::of(Fnv::tagged(b'n')))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Hashed, E> {
        Ok(Hashed::of(Fnv::tagged(b'b').bytes(&[u8::from(value)])))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Hashed, E> {
        Ok(Hashed::of(Fnv::tagged(b'i').bytes(&i128::from(value).to_le_bytes())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Hashed, E> {
        Ok(Hashed::of(Fnv::tagged(b'i').bytes(&i128::from(value).to_le_bytes())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Hashed, E> {
        // 2.0 is 2: many programs write it so.
        let whole = value as i128;
        if whole as f64 == value {
            return Ok(Hashed::of(Fnv::tagged(b'i').bytes(&whole.to_le_bytes())));
        }
        let digits = format!("{value:.*e}", DIGITS - 1);
        Ok(Hashed::of(Fnv::tagged(b'f').bytes(digits.as_bytes())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Hashed, E> {
        Ok(Hashed::of(Fnv::tagged(b's').bytes(value.as_bytes())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Hashed, A::Error> {
        let mut fnv = Fnv::tagged(b'l');
        while let Some(item) = list.next_element::<Hashed>()? {
            fnv = fnv.bytes(&item.hash.to_le_bytes());
        }
        Ok(Hashed::of(fnv))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Hashed, A::Error> {
        let mut fields: Vec<(String, u64)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Hashed>()? {
            fields.push((name, value.hash));
        }
        fields.sort_unstable();
        let of = |counts: &dyn Fn(&str) -> bool| {
            let counted = fields.iter().filter(|(name, _)| counts(name));
            let whole = counted.fold(Fnv::tagged(b'o'), |fnv, (name, hash)| {
                fnv.bytes(name.as_bytes()).bytes(&[0]).bytes(&hash.to_le_bytes())
            });
            whole.0
        };
        Ok(Hashed { hash: of(&|_| true), unsigned: of(&|name| name != FIELD) })
    }
}

/// FNV-1a of 64 bits.
/// Facts: <http://www.isthe.com/chongo/tech/comp/fnv/>, with its offset basis and prime.
struct Fnv(u64);

impl Fnv {
    fn tagged(tag: u8) -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325).bytes(&[tag])
    }

    fn bytes(self, bytes: &[u8]) -> Fnv {
        Fnv(bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)))
    }
}

#[cfg(test)]
mod tests;
