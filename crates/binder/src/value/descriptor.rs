//! File descriptors: AIDL's `ParcelFileDescriptor`, and the bare one of its `FileDescriptor`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};

use super::{Element, Nullable, Value};

/// AIDL's `ParcelFileDescriptor`: what interfaces pass files by.
#[derive(Debug)]
pub struct ParcelFileDescriptor(OwnedFd);

impl<F: Into<OwnedFd>> From<F> for ParcelFileDescriptor {
    fn from(file: F) -> Self {
        Self(file.into())
    }
}

impl ParcelFileDescriptor {
    /// The descriptor, for `File::from` and the like.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for ParcelFileDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Value for OwnedFd {
    type Given<'a> = BorrowedFd<'a>;

    fn write(given: BorrowedFd<'_>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_fd(given.try_clone_to_owned().map_err(|_| StatusCode::NO_MEMORY)?);
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        reader.read_fd()
    }

    fn given(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Value for ParcelFileDescriptor {
    type Given<'a> = BorrowedFd<'a>;

    fn write(given: BorrowedFd<'_>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        Self::write_nullable(Some(given), parcel)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Self::read_nullable(reader)?.ok_or(StatusCode::UNEXPECTED_NULL)
    }

    fn given(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Element for ParcelFileDescriptor {}

/// A descriptor follows a word that says so, and one that says whether a second descriptor reports errors (Java).
impl Nullable for ParcelFileDescriptor {
    fn write_nullable(given: Option<BorrowedFd<'_>>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_bool(given.is_some());
        let Some(given) = given else { return Ok(()) };
        parcel.write_bool(false);
        OwnedFd::write(given, parcel)
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, StatusCode> {
        if !reader.read_bool()? {
            return Ok(None);
        }
        let reports = reader.read_bool()?;
        let descriptor = reader.read_fd()?;
        if reports {
            drop(reader.read_fd()?);
        }
        Ok(Some(Self(descriptor)))
    }
}
