//! Reading binders and file descriptors from a payload.
//! Not here: plain values (`reader`), who owns what was delivered (`runtime::received`).
//! Facts: contract OBJ-03, OBJ-06, OBJ-11, OBJ-20; a null binder is not listed in the offsets.

use std::os::fd::{AsFd, OwnedFd};

use abi::codes::object;
use abi::layout::{FdObject, FlatBinderObject};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::{Read, Reader, Source};
use crate::binder::parcel::Held;
use crate::binder::stability::Stability;
use crate::runtime::target::{Binder, is_null};
use crate::status_code::StatusCode;

impl Reader<'_> {
    /// Whether the sender listed an object here; only listed ones are translated.
    fn is_listed(&self, at: usize) -> bool {
        match self.source {
            Source::Received(received) => {
                // They ascend (contract OBJ-01), and a payload may have thousands.
                let offset = |word: &[u8; 8]| u64::from_ne_bytes(*word);
                let words = received.offsets().as_chunks().0;
                let place = words.partition_point(|word| offset(word) < at as u64);
                words.get(place).is_some_and(|word| offset(word) == at as u64)
            }
            Source::Parcel(parcel) => parcel.held(at as u64).is_some(),
            Source::Nothing => false,
        }
    }

    fn take_object<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Read<T> {
        T::read_from_bytes(self.take(size_of::<T>())?).map_err(|_| StatusCode::NOT_ENOUGH_DATA)
    }

    /// A binder.
    ///
    /// # Errors
    /// `BAD_TYPE`: none stands here. `UNEXPECTED_NULL`. `NOT_ENOUGH_DATA`.
    pub fn read_binder(&mut self) -> Read<Binder> {
        self.read_nullable_binder()?.ok_or(StatusCode::UNEXPECTED_NULL)
    }

    /// A nullable binder.
    ///
    /// # Errors
    /// See [`Self::read_binder`].
    pub fn read_nullable_binder(&mut self) -> Read<Option<Binder>> {
        Ok(self.read_nullable_binder_as()?.0)
    }

    /// A nullable binder and its stability, for passing both on.
    ///
    /// # Errors
    /// See [`Self::read_binder`].
    pub fn read_nullable_binder_as(&mut self) -> Read<(Option<Binder>, Stability)> {
        let start = self.at;
        let result = self.read_flat().and_then(|binder| {
            let generation = self.release.generation();
            let stability = match Stability::System.word(generation) {
                Some(_) => Stability::from_word(self.read_i32()?)?,
                None => Stability::System,
            };
            Ok((binder, stability))
        });
        result.or_else(|status| self.fail(start, status))
    }

    fn read_flat(&mut self) -> Read<Option<Binder>> {
        let at = self.at;
        let flat: FlatBinderObject = self.take_object()?;
        if !self.is_listed(at) {
            return if is_null(&flat) { Ok(None) } else { Err(StatusCode::BAD_TYPE) };
        }
        match self.source {
            Source::Parcel(parcel) => match parcel.held(at as u64) {
                Some(Held::Binder(binder)) if [object::BINDER, object::HANDLE].contains(&flat.kind) => {
                    Ok(Some(binder.clone()))
                }
                _ => Err(StatusCode::BAD_TYPE),
            },
            Source::Received(received) => Binder::delivered(received.runtime, &flat).map(Some),
            Source::Nothing => Err(StatusCode::BAD_TYPE),
        }
    }

    /// A file descriptor: a duplicate, the reader's own.
    ///
    /// # Errors
    /// `BAD_TYPE`: none stands here. `NO_MEMORY`: no descriptor is free. `NOT_ENOUGH_DATA`.
    pub fn read_fd(&mut self) -> Read<OwnedFd> {
        let start = self.at;
        let object: FdObject = self.take_object()?;
        let found = match self.source {
            _ if object.kind != object::FD => None,
            Source::Received(received) => received.fd(start as u64),
            Source::Parcel(parcel) => match parcel.held(start as u64) {
                Some(Held::Fd(fd)) => Some(fd.as_fd()),
                _ => None,
            },
            Source::Nothing => None,
        };
        match found.map(|fd| fd.try_clone_to_owned()) {
            Some(Ok(fd)) => Ok(fd),
            Some(Err(_)) => self.fail(start, StatusCode::NO_MEMORY),
            None => self.fail(start, StatusCode::BAD_TYPE),
        }
    }
}
