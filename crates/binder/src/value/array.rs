//! Arrays: `T[]` as `Vec<T>`, `T[N]` as `[T; N]`.

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};

use super::{Element, Nullable, Out, Value};

/// Largest `out` array that a service gets, in bytes: no reply holds more.
const LARGEST: usize = 1 << 20;

impl<T: Element> Value for Vec<T> {
    type Given<'a> = &'a [T];

    fn write(given: &[T], parcel: &mut Parcel) -> Result<(), StatusCode> {
        T::write_all(given, parcel)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        T::read_all(reader)?.map_or_else(T::in_place_of_null, Ok)
    }

    fn given(&self) -> &[T] {
        self
    }
}

impl<T: Element> Nullable for Vec<T> {
    fn write_nullable(given: Option<&[T]>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        match given {
            Some(given) => T::write_all(given, parcel),
            None => {
                parcel.write_null();
                Ok(())
            }
        }
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, StatusCode> {
        T::read_all(reader)
    }
}

impl<T: Element + Default> Out for Vec<T> {
    fn announce(&self, parcel: &mut Parcel) {
        parcel.write_length(self.len());
    }

    fn prepare(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Option::prepare(reader)?.ok_or(StatusCode::UNEXPECTED_NULL)
    }
}

impl<T: Element + Default> Out for Option<Vec<T>> {
    fn announce(&self, parcel: &mut Parcel) {
        match self {
            Some(elements) => elements.announce(parcel),
            None => parcel.write_null(),
        }
    }

    fn prepare(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        let Ok(length) = usize::try_from(reader.read_i32()?) else { return Ok(None) };
        if length.saturating_mul(size_of::<T>().max(1)) > LARGEST {
            return Err(StatusCode::NO_MEMORY);
        }
        Ok(Some(std::iter::repeat_with(T::default).take(length).collect()))
    }
}

impl<T: Element, const N: usize> Value for [T; N] {
    type Given<'a> = &'a Self;

    fn write(given: &Self, parcel: &mut Parcel) -> Result<(), StatusCode> {
        T::write_all(given, parcel)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Vec::<T>::read(reader)?.try_into().map_err(|_| StatusCode::BAD_VALUE)
    }

    fn given(&self) -> &Self {
        self
    }
}

impl<T: Element, const N: usize> Element for [T; N] {}

impl<T: Element, const N: usize> Nullable for [T; N] {
    fn write_nullable(given: Option<&Self>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        Vec::<T>::write_nullable(given.map(|elements| &elements[..]), parcel)
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, StatusCode> {
        let elements = T::read_all(reader)?;
        elements.map(|elements| elements.try_into().map_err(|_| StatusCode::BAD_VALUE)).transpose()
    }
}

impl<T: Element + Default, const N: usize> Out for [T; N] {
    fn prepare(_reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Ok(std::array::from_fn(|_| T::default()))
    }
}
