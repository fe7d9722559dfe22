//! Room: names as small numbers, so that an event carries no strings.
//! Not here: printed text, which is seldom the same twice (`Kind::Print`).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A name in a reader's [`Names`]. Numbers of two readers are not comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

impl Name {
    /// No name is known. Its text is empty.
    pub const NONE: Self = Self(0);

    /// Whether a name is known.
    #[must_use]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// Its number, for tables beside [`Names`]: dense, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most bytes of one name that are kept. Names of threads have 15, symbols rarely over 60.
const LONGEST: usize = 256;

/// The most names that are kept; only a forged trace has more. What comes later is nameless.
const MOST: usize = 1 << 20;

/// Every name that a reader met.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<Box<str>>,
    by_bytes: HashMap<Box<[u8]>, Name, BuildHasherDefault<Fnv>>,
}

impl Default for Names {
    fn default() -> Self {
        Self { texts: vec!["".into()], by_bytes: HashMap::default() }
    }
}

impl Names {
    /// The number of this name; a new one if it was never met. The empty name is [`Name::NONE`].
    pub fn intern(&mut self, name: &str) -> Name {
        self.intern_bytes(name.as_bytes())
    }

    /// As [`Names::intern`], for bytes of which nobody knows that they are text: what is no UTF-8 is
    /// replaced, what is too long is cut.
    pub fn intern_bytes(&mut self, name: &[u8]) -> Name {
        let name = &name[..name.len().min(LONGEST)];
        if name.is_empty() {
            return Name::NONE;
        }
        if let Some(found) = self.by_bytes.get(name) {
            return *found;
        }
        let Some(next) = u32::try_from(self.texts.len()).ok().filter(|_| self.texts.len() < MOST) else {
            return Name::NONE;
        };
        self.texts.push(String::from_utf8_lossy(name).into());
        self.by_bytes.insert(name.into(), Name(next));
        Name(next)
    }

    /// The number of a name that was met, without adding it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Name> {
        if name.is_empty() { Some(Name::NONE) } else { self.by_bytes.get(name.as_bytes()).copied() }
    }

    /// A name's text; empty for [`Name::NONE`].
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.index()).map_or("", |text| text)
    }
}

/// FNV-1a. Names are short, and looked up for every event; the default hasher costs more than the rest
/// of the look-up. Collisions by malice cost the one who reads a forged file some time, within [`MOST`].
#[derive(Clone, Copy, Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let mut names = Names::default();
        assert_eq!(names.intern(""), Name::NONE);
        let one = names.intern("Binder:12_1");
        let two = names.intern("kworker/0:2");
        assert_ne!(one, two);
        assert_eq!(names.intern("Binder:12_1"), one);
        assert_eq!(names.text(two), "kworker/0:2");
        assert_eq!(names.find("kworker/0:2"), Some(two));
        assert_eq!(names.find("nobody"), None);
        assert!(one.is_some() && !Name::NONE.is_some());
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_apart() {
        let mut names = Names::default();
        let one = names.intern_bytes(b"a\xff");
        let two = names.intern_bytes(b"a\xfe");
        assert_ne!(one, two);
        assert_eq!(names.text(one), "a\u{fffd}");
        let long = names.intern_bytes(&[b'x'; 1000]);
        assert_eq!(names.text(long).len(), LONGEST);
    }
}
