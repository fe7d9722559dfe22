//! Room: the test's interfaces: their methods, and what travels in them besides plain values.
//! Not here: serving them (`door`, `token`), calling them (`calls`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ipc::binder::{Parcel, Reader};
use ipc::{Binder, StatusCode};
use sys::shared_memory::SharedMemory;

use crate::chaos::instance::Instance;
use crate::dice::content;

/// A process's own objects, which the service manager knows.
pub(super) const DOOR: &str = "binderperf.IChaosDoor";
/// Says which process it is.
pub(super) const WHO: u32 = 1;
/// Answers a sum of what it got, and bytes of the wanted length.
pub(super) const ECHO: u32 = 2;
/// Passes the call on along a route of places.
pub(super) const NEST: u32 = 3;
/// Oneway: one of a numbered stream.
pub(super) const NOTE: u32 = 4;
/// The last number of a stream.
pub(super) const SEEN: u32 = 5;
/// Takes an object.
pub(super) const KEEP: u32 = 6;
/// Gives an object.
pub(super) const GIVE: u32 = 7;
/// Takes a file and gives another.
pub(super) const FILE: u32 = 8;

/// An object that is passed around.
pub(super) const TOKEN: &str = "binderperf.IChaosToken";
/// Says whose it is, and which.
pub(super) const ASK: u32 = 1;

/// The name under which a process registers one of its doors.
pub(super) fn door_name(place: usize, door: usize) -> String {
    format!("binderperf.chaos.{place}.{door}")
}

/// An object that is passed around, with what its owner said it is.
#[derive(Clone)]
pub(super) struct Claim {
    pub(super) owner: Instance,
    pub(super) number: u64,
    pub(super) binder: Binder,
}

impl Claim {
    pub(super) fn write(&self, parcel: &mut Parcel) {
        self.owner.write(parcel);
        parcel.write_u64(self.number);
        parcel.write_binder(&self.binder);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Ok(Self { owner: Instance::read(reader)?, number: reader.read_u64()?, binder: reader.read_binder()? })
    }
}

/// What a file of the test shall hold. Its length is no whole number of pages, by which such files
/// are told from the memory of an embedded driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) key: u64,
    pub(super) len: usize,
}

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// The largest file.
const LARGEST: usize = 20_000;

impl Sheet {
    pub(super) fn of(key: u64) -> Self {
        let len = key as usize % LARGEST;
        Self { key, len: if (len as u64).is_multiple_of(PAGE) { len + 1 } else { len } }
    }

    /// Writes the file's description and the file, with the bytes of key `filled`.
    ///
    /// # Errors
    /// `EMFILE`, `ENOMEM`.
    pub(super) fn write(self, parcel: &mut Parcel, filled: u64) -> io::Result<()> {
        let mut memory = SharedMemory::create(self.len)?;
        memory.copy_in(0, &content(filled, self.len));
        parcel.write_u64(self.key);
        parcel.write_fd(memory.descriptor().try_clone_to_owned()?);
        Ok(())
    }

    /// Reads a description and its file.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<(Self, File), StatusCode> {
        Ok((Self::of(reader.read_u64()?), File::from(reader.read_fd()?)))
    }

    /// What is wrong with a file, if anything is.
    pub(super) fn check(self, file: &File) -> Option<String> {
        let mut bytes = vec![0; self.len];
        let have = file.metadata().map_or(0, |metadata| metadata.len());
        if have != self.len as u64 {
            return Some(format!("a file of {have} bytes instead of {}", self.len));
        }
        match file.read_exact_at(&mut bytes, 0) {
            Err(error) => Some(format!("a file that cannot be read: {error}")),
            Ok(()) if bytes == content(self.key, self.len) => None,
            Ok(()) => Some(format!("a file of {have} bytes with other content")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_other_content_or_length_is_noticed() {
        for (filled, fine) in [(77, true), (78, false)] {
            let mut parcel = Parcel::new();
            Sheet::of(77).write(&mut parcel, filled).expect("a file");
            let (sheet, file) = Sheet::read(&mut parcel.reader()).expect("as written");
            assert_eq!((sheet, sheet.check(&file).is_none()), (Sheet::of(77), fine));
            assert!(Sheet::of(79).check(&file).is_some());
        }
    }

    #[test]
    fn no_file_is_whole_pages() {
        assert!((0..30_000).all(|key| !(Sheet::of(key).len as u64).is_multiple_of(PAGE)));
    }
}
