//! The stability word after each binder in a payload.
//! Facts: Android's `Stability.h`, releases 11 to 16; absent before 11, with a version byte in 12.

use crate::release::Generation;
use crate::status_code::StatusCode;

/// A stability level. One binder keeps the level it was first sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// 0: not declared; the level of a null binder.
    Undeclared,
    /// 3: stable within the vendor image.
    Vendor,
    /// 0xc: stable within the system image; what libbinder gives an object by default.
    System,
    /// 0x3f: stable between the two.
    Vintf,
}

/// The first byte of Android 12's form.
const VERSION_12: i32 = 1;

impl Stability {
    const fn level(self) -> i32 {
        match self {
            Self::Undeclared => 0,
            Self::Vendor => 0x03,
            Self::System => 0x0c,
            Self::Vintf => 0x3f,
        }
    }

    /// The word as a generation writes it; `None` where there is none.
    #[must_use]
    pub const fn word(self, generation: Generation) -> Option<i32> {
        match generation {
            Generation::Aidl | Generation::Aidl2 => None,
            Generation::Aidl3 => Some(self.level()),
            Generation::Aidl4 => Some(self.level() << 24 | VERSION_12),
        }
    }

    /// The level behind a word, in either form, whichever generation reads it.
    ///
    /// # Errors
    /// `BAD_TYPE`: no level at all; the stream is not what the reader takes it for.
    pub fn from_word(word: i32) -> Result<Self, StatusCode> {
        let level = if word & 0x00ff_ffff == VERSION_12 { word >> 24 } else { word };
        match level {
            0 => Ok(Self::Undeclared),
            0x03 => Ok(Self::Vendor),
            0x0c => Ok(Self::System),
            0x3f => Ok(Self::Vintf),
            _ => Err(StatusCode::BAD_TYPE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_changed_in_12_and_changed_back() {
        let words = [Generation::Aidl, Generation::Aidl2, Generation::Aidl3, Generation::Aidl4]
            .map(|generation| Stability::System.word(generation));
        assert_eq!(words, [None, None, Some(0x0c), Some(0x0c00_0001)]);
        assert_eq!(Stability::from_word(0x0c00_0001), Ok(Stability::System));
        assert_eq!(Stability::from_word(0x3f), Ok(Stability::Vintf));
        assert_eq!(Stability::from_word(0x7f), Err(StatusCode::BAD_TYPE));
        assert_eq!(Stability::from_word(0x73), Err(StatusCode::BAD_TYPE));
    }
}
