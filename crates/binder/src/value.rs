//! Types of the arguments and results of an [`interface!`](crate::interface): how each is written and read.
//! Not here: the bytes themselves (`ipc::binder`).
//! Facts: AIDL's types and their layout in a parcel, Android's `Parcel.cpp`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};

use crate::Binder;

/// A type that an interface's methods may have as argument or result. With AIDL's names: `bool`, `i8` (`byte`), `u16`
/// (`char`), `i32` (`int`), `i64` (`long`), `f32` (`float`), `f64` (`double`), [`String`], [`Binder`] (`IBinder`), [`OwnedFd`]
/// (`FileDescriptor`); `Option` of a string, a binder or bytes (`@nullable`); `Vec` of a bool, number, string or binder
/// (`T[]`), where `Vec<u8>` is `byte[]`.
pub trait Value: Sized {
    /// The value as a caller gives it: borrowed where that saves a copy.
    type Given<'a>: Copy;

    /// Appends it.
    ///
    /// # Errors
    /// `NO_MEMORY`: a descriptor cannot be duplicated.
    fn write(given: Self::Given<'_>, parcel: &mut Parcel) -> Result<(), StatusCode>;

    /// Reads it.
    ///
    /// # Errors
    /// It does not stand there: `NOT_ENOUGH_DATA`, `BAD_VALUE`, `BAD_TYPE`, `UNEXPECTED_NULL`.
    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode>;

    /// The value as one that is given.
    fn given(&self) -> Self::Given<'_>;
}

/// Implements [`Value`]: the type, what is given, how that is written, how it is read, how it is given.
macro_rules! values {
    ($($ty:ty, $given:ty, |$parcel:ident, $value:ident| $write:expr, $read:ident, |$this:ident| $give:expr;)*) => {$(
        impl Value for $ty {
            type Given<'a> = $given;

            fn write($value: Self::Given<'_>, $parcel: &mut Parcel) -> Result<(), StatusCode> {
                $write;
                Ok(())
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
                reader.$read()
            }

            fn given(&self) -> Self::Given<'_> {
                let $this = self;
                $give
            }
        }
    )*};
}

values! {
    bool, bool, |parcel, value| parcel.write_bool(value), read_bool, |this| *this;
    i8, i8, |parcel, value| parcel.write_i8(value), read_i8, |this| *this;
    u16, u16, |parcel, value| parcel.write_char(value), read_char, |this| *this;
    i32, i32, |parcel, value| parcel.write_i32(value), read_i32, |this| *this;
    i64, i64, |parcel, value| parcel.write_i64(value), read_i64, |this| *this;
    f32, f32, |parcel, value| parcel.write_f32(value), read_f32, |this| *this;
    f64, f64, |parcel, value| parcel.write_f64(value), read_f64, |this| *this;
    String, &'a str, |parcel, value| parcel.write_str(value), read_str, |this| this;
    Binder, &'a Binder, |parcel, value| parcel.write_binder(value), read_binder, |this| this;
    OwnedFd, BorrowedFd<'a>,
        |parcel, value| parcel.write_fd(value.try_clone_to_owned().map_err(|_| StatusCode::NO_MEMORY)?),
        read_fd, |this| this.as_fd();
    Option<String>, Option<&'a str>, |parcel, value| parcel.write_nullable_str(value), read_nullable_str,
        |this| this.as_deref();
    Option<Binder>, Option<&'a Binder>, |parcel, value| parcel.write_nullable_binder(value), read_nullable_binder,
        |this| this.as_ref();
    Vec<bool>, &'a [bool], |parcel, value| parcel.write_bool_slice(value), read_bool_vec, |this| this;
    Vec<i32>, &'a [i32], |parcel, value| parcel.write_i32_slice(value), read_i32_vec, |this| this;
    Vec<i64>, &'a [i64], |parcel, value| parcel.write_i64_slice(value), read_i64_vec, |this| this;
    Vec<f32>, &'a [f32], |parcel, value| parcel.write_f32_slice(value), read_f32_vec, |this| this;
    Vec<f64>, &'a [f64], |parcel, value| parcel.write_f64_slice(value), read_f64_vec, |this| this;
    Vec<String>, &'a [String], |parcel, value| parcel.write_str_slice(value), read_str_vec, |this| this;
}

/// No result.
impl Value for () {
    type Given<'a> = ();

    fn write(_given: (), _parcel: &mut Parcel) -> Result<(), StatusCode> {
        Ok(())
    }

    fn read(_reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Ok(())
    }

    fn given(&self) {}
}

impl Value for Vec<u8> {
    type Given<'a> = &'a [u8];

    fn write(given: &[u8], parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_byte_slice(given);
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        reader.read_byte_slice().map(<[u8]>::to_vec)
    }

    fn given(&self) -> &[u8] {
        self
    }
}

impl Value for Option<Vec<u8>> {
    type Given<'a> = Option<&'a [u8]>;

    fn write(given: Option<&[u8]>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_nullable_byte_slice(given);
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Ok(reader.read_nullable_byte_slice()?.map(<[u8]>::to_vec))
    }

    fn given(&self) -> Option<&[u8]> {
        self.as_deref()
    }
}

impl Value for Vec<Binder> {
    type Given<'a> = &'a [Binder];

    fn write(given: &[Binder], parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_slice(given, |parcel, binder| parcel.write_binder(binder));
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        reader.read_vec(Reader::read_binder)
    }

    fn given(&self) -> &[Binder] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: Value>(value: &T) -> T {
        let mut parcel = Parcel::new();
        T::write(value.given(), &mut parcel).expect("written");
        let mut reader = parcel.reader();
        let read = T::read(&mut reader).expect("it stands there");
        assert_eq!(reader.remaining(), 0, "all of it was read");
        read
    }

    #[test]
    fn values_come_back_as_they_were_given() {
        macro_rules! same {
            ($($value:expr),* $(,)?) => {$(assert_eq!(there_and_back(&$value), $value);)*};
        }
        same!(true, -5_i8, 0xd83d_u16, i32::MIN, i64::MAX, 1.5_f32, -0.1_f64, "näh".to_owned(), ());
        same!(None::<String>, Some(String::new()), None::<Binder>, None::<Vec<u8>>, Some(vec![1_u8, 2, 3]));
        same!(vec![true, false], vec![1_i32, -1], vec![1_i64 << 40], vec![0.5_f32], vec![f64::MAX]);
        same!(vec![String::new(), "x".to_owned()], vec![9_u8; 5]);
    }

    #[test]
    fn what_does_not_stand_there_is_an_error() {
        let mut null = Parcel::new();
        null.write_nullable_str(None);
        assert_eq!(String::read(&mut null.reader()), Err(StatusCode::UNEXPECTED_NULL));
        assert_eq!(Vec::<i64>::read(&mut null.reader()), Err(StatusCode::UNEXPECTED_NULL));
        assert_eq!(i32::read(&mut Parcel::new().reader()), Err(StatusCode::NOT_ENOUGH_DATA));
        assert!(OwnedFd::read(&mut null.reader()).is_err());
    }
}
