//! The test's interfaces, and the compound values in their parcels.
//! Not here: serving them (`service`, `token`), calling them (`calls`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ipc::binder::{Parcel, Reader};
use ipc::{Binder, StatusCode};
use sys::shared_memory::SharedMemory;

use crate::content::content;
use crate::instance::Instance;

/// Interface of the registered objects.
pub(super) const SERVICE: &str = "binderperf.IChaosService";
/// Returns the member's identity.
pub(super) const WHO: u32 = 1;
/// Returns a checksum of the request, and bytes of the requested length.
pub(super) const ECHO: u32 = 2;
/// Forwards the call along a route of members.
pub(super) const NEST: u32 = 3;
/// Oneway call of a numbered stream.
pub(super) const NOTE: u32 = 4;
/// Returns the last number of a stream.
pub(super) const SEEN: u32 = 5;
/// Takes an object.
pub(super) const KEEP: u32 = 6;
/// Returns an object.
pub(super) const GIVE: u32 = 7;
/// Takes a file and returns another.
pub(super) const FILE: u32 = 8;

/// Interface of objects that are passed around.
pub(super) const TOKEN: &str = "binderperf.IChaosToken";
/// Returns the object's owner and number.
pub(super) const ASK: u32 = 1;

/// Registered name of a member's service.
pub(super) fn service_name(index: usize, service: usize) -> String {
    format!("binderperf.chaos.{index}.{service}")
}

/// An object that is passed around, with its announced owner and number.
#[derive(Clone)]
pub(super) struct ClaimedObject {
    pub(super) owner: Instance,
    pub(super) number: u64,
    pub(super) binder: Binder,
}

impl ClaimedObject {
    pub(super) fn write(&self, parcel: &mut Parcel) {
        self.owner.write(parcel);
        parcel.write_u64(self.number);
        parcel.write_binder(&self.binder);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Ok(Self { owner: Instance::read(reader)?, number: reader.read_u64()?, binder: reader.read_binder()? })
    }
}

/// Content of a test file. Its length is never a multiple of the page size, unlike the memory files of an embedded
/// driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TestFile {
    pub(super) key: u64,
    pub(super) len: usize,
}

/// Length of the largest file.
const LARGEST: usize = 20_000;

impl TestFile {
    pub(super) fn of(key: u64) -> Self {
        let len = key as usize % LARGEST;
        Self { key, len: if len.is_multiple_of(sys::page::size()) { len + 1 } else { len } }
    }

    /// Writes the description, and a file with the content of key `filled`.
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

    /// Error in a file's content, if any.
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
            TestFile::of(77).write(&mut parcel, filled).expect("a file");
            let (file_spec, file) = TestFile::read(&mut parcel.reader()).expect("as written");
            assert_eq!((file_spec, file_spec.check(&file).is_none()), (TestFile::of(77), fine));
            assert!(TestFile::of(79).check(&file).is_some());
        }
    }

    #[test]
    fn no_file_is_whole_pages() {
        assert!((0..30_000).all(|key| !TestFile::of(key).len.is_multiple_of(sys::page::size())));
    }
}
