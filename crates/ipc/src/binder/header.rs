//! The header of an AIDL call: the words before its arguments.
//! Not here: the arguments (`writer`, `reader`), codes without a header (`special`).
//! Facts: `Parcel::writeInterfaceToken` of Android 8 to 16; libgbinder's names for the generations.

use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::release::Generation;
use crate::status_code::StatusCode;

/// Strict mode's "gather violations" bit up to Android 9.
const POLICY_OLD: u32 = 0x0040_0000;
/// Strict mode's "gather violations" bit since Android 10.
const POLICY: u32 = 0x8000_0000;
/// "Nobody else's work."
const NO_WORK_SOURCE: i32 = -1;
/// The mark of a system build; the one that every known receiver takes.
const MARK_SYSTEM: u32 = u32::from_be_bytes(*b"SYST");

impl Parcel {
    /// Writes the header of this parcel's release for an interface.
    pub fn write_header(&mut self, descriptor: &str) {
        let generation = self.release().generation();
        self.write_u32(if generation == Generation::Aidl { POLICY_OLD } else { POLICY });
        if generation != Generation::Aidl {
            self.write_i32(NO_WORK_SOURCE);
        }
        if matches!(generation, Generation::Aidl3 | Generation::Aidl4) {
            self.write_u32(MARK_SYSTEM);
        }
        self.write_str(descriptor);
    }
}

impl Reader<'_> {
    /// Steps over the header of a call to an interface, in whichever form the caller wrote it: the form
    /// is the one in which the descriptor stands where it should. Receivers check nothing else.
    ///
    /// # Errors
    /// `BAD_TYPE`: the call is for another interface, or there is no header.
    pub fn read_header(&mut self, descriptor: &str) -> Result<(), StatusCode> {
        let start = self.position();
        for words in [3, 2, 1] {
            if self.seek(start + 4 * words).is_ok() && self.eat_str(descriptor) {
                return Ok(());
            }
        }
        self.seek(start)?;
        Err(StatusCode::BAD_TYPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Release;

    const DESCRIPTOR: &str = "a.IB";

    fn header(release: Release) -> Vec<u8> {
        let mut parcel = Parcel::for_release(release);
        parcel.write_header(DESCRIPTOR);
        parcel.data().to_vec()
    }

    #[test]
    fn each_generation_has_its_words() {
        let text = [&4u32.to_le_bytes()[..], b"a\0.\0I\0B\0\0\0\0\0"].concat();
        let with = |words: &[u32]| {
            let words = words.iter().flat_map(|word| word.to_le_bytes());
            words.chain(text.iter().copied()).collect::<Vec<u8>>()
        };
        assert_eq!(header(Release::Android9), with(&[0x0040_0000]));
        assert_eq!(header(Release::Android10), with(&[0x8000_0000, u32::MAX]));
        for release in [Release::Android11, Release::Android12, Release::Android13, Release::Android16] {
            assert_eq!(header(release), with(&[0x8000_0000, u32::MAX, u32::from_le_bytes(*b"TSYS")]));
        }
    }

    #[test]
    fn a_reader_takes_every_generation_and_mark() {
        for release in Release::ALL {
            let mut bytes = header(release);
            let marked = matches!(release.generation(), Generation::Aidl3 | Generation::Aidl4);
            if marked {
                bytes[8..12].copy_from_slice(&u32::from_be_bytes(*b"VNDR").to_le_bytes());
            }
            bytes.extend_from_slice(&7i32.to_le_bytes());
            let mut reader = Reader::of_bytes(&bytes);
            assert_eq!(reader.read_header(DESCRIPTOR), Ok(()), "{release}");
            assert_eq!(reader.read_i32(), Ok(7), "{release}");
        }
    }

    #[test]
    fn another_interface_is_refused_and_nothing_is_consumed() {
        let bytes = header(Release::Android16);
        let mut reader = Reader::of_bytes(&bytes);
        for descriptor in ["a.IC", "a.I", "a.IBB", ""] {
            assert_eq!(reader.read_header(descriptor), Err(StatusCode::BAD_TYPE), "{descriptor}");
            assert_eq!(reader.position(), 0);
        }
        assert_eq!(Reader::of_bytes(&[]).read_header(DESCRIPTOR), Err(StatusCode::BAD_TYPE));
    }
}
