//! Types of the arguments and results of an [`interface!`](crate::interface), and of the fields of a
//! [`parcelable!`](crate::parcelable!): how each is written and read.
//! Not here: arrays (`array`), null (`nullable`), descriptors (`descriptor`), the bytes themselves (`ipc::binder`).
//! Facts: AIDL's types and their layout in a parcel, Android's `Parcel.cpp`.

mod array;
mod descriptor;
mod nullable;
#[cfg(test)]
mod tests;

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};

pub use descriptor::ParcelFileDescriptor;

use crate::Binder;

/// A type that an interface's methods may have as argument or result:
///
/// | AIDL | here |
/// |---|---|
/// | `boolean`, `byte`, `char`, `int`, `long`, `float`, `double` | `bool`, `i8`, `u16`, `i32`, `i64`, `f32`, `f64` |
/// | `String` | [`String`] |
/// | `IBinder` | [`Binder`] |
/// | an interface | its module's `Client` |
/// | `ParcelFileDescriptor`, `FileDescriptor` | [`ParcelFileDescriptor`], [`OwnedFd`](std::os::fd::OwnedFd) |
/// | a parcelable, a union, an enum | what [`parcelable!`](crate::parcelable!), [`union!`](crate::union), [`enumeration!`](crate::enumeration) make |
/// | `T[]`, `List<T>`; `byte[]` | `Vec<T>`; `Vec<u8>` |
/// | `T[N]` | `[T; N]` |
/// | `@nullable T` | `Option<T>` |
/// | `@nullable T[]` of objects | `Option<Vec<Option<T>>>` |
/// | `@nullable(heap=true) T` | `Option<Box<T>>` |
///
/// AIDL's maps exist for Java only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument, a result or a field of AIDL",
    label = "not one of AIDL's types",
    note = "the table at `binder::Value` has the types: numbers, `bool`, `String`, `Vec<T>`, `[T; N]`, `Option<T>`, objects, descriptors",
    note = "`binder::parcelable!` makes one of a structure; for a map pass a `Vec` of a parcelable with key and value"
)]
pub trait Value: Sized + 'static {
    /// The value as a caller gives it: borrowed where that saves a copy.
    type Given<'a>: Copy;

    /// Appends it.
    ///
    /// # Errors
    /// `NO_MEMORY`: a descriptor cannot be duplicated. `UNEXPECTED_NULL`: a required field of a parcelable is `None`.
    fn write(given: Self::Given<'_>, parcel: &mut Parcel) -> Result<(), StatusCode>;

    /// Reads it.
    ///
    /// # Errors
    /// It is not there: `NOT_ENOUGH_DATA`, `BAD_VALUE`, `BAD_TYPE`, `UNEXPECTED_NULL`.
    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode>;

    /// The value as one that is given.
    fn given(&self) -> Self::Given<'_>;
}

/// A [`Value`] that an array may hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the element of an AIDL array",
    note = "numbers, strings, objects, parcelables, enums, descriptors, and options of these can; arrays of arrays cannot, but \
            `[[T; N]; M]`"
)]
pub trait Element: Value {
    /// Appends the length and the elements.
    ///
    /// # Errors
    /// See [`Value::write`].
    fn write_all(elements: &[Self], parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_length(elements.len());
        elements.iter().try_for_each(|element| Self::write(element.given(), parcel))
    }

    /// Reads the length and the elements; `None` for null.
    ///
    /// # Errors
    /// See [`Value::read`].
    fn read_all(reader: &mut Reader<'_>) -> Result<Option<Vec<Self>>, StatusCode> {
        reader.read_nullable_vec(Self::read)
    }

    /// Elements in place of a null array where none is allowed.
    ///
    /// # Errors
    /// `UNEXPECTED_NULL`
    fn in_place_of_null() -> Result<Vec<Self>, StatusCode> {
        Err(StatusCode::UNEXPECTED_NULL)
    }
}

/// A [`Value`] that may be null: AIDL's `@nullable`, here [`Option`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be null in AIDL",
    note = "strings, objects, arrays, parcelables and `ParcelFileDescriptor`s can be null; numbers and enums cannot: pass a parcelable \
            that holds one, an array of none or one, or a `bool` as well"
)]
pub trait Nullable: Value {
    /// Appends the value, or null.
    ///
    /// # Errors
    /// See [`Value::write`].
    fn write_nullable(given: Option<Self::Given<'_>>, parcel: &mut Parcel) -> Result<(), StatusCode>;

    /// Reads the value, or null.
    ///
    /// # Errors
    /// See [`Value::read`].
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, StatusCode>;
}

/// A [`Value`] that an `out` argument may have: the service fills in what its caller passed by reference.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an `out` argument",
    note = "arrays and parcelables can"
)]
pub trait Out: Value {
    /// Appends what the service needs to know of it: the length of an array.
    fn announce(&self, parcel: &mut Parcel) {
        let _ = parcel;
    }

    /// Makes the value that the service gets.
    ///
    /// # Errors
    /// `NO_MEMORY`: no reply could hold an array of this length.
    fn prepare(reader: &mut Reader<'_>) -> Result<Self, StatusCode>;
}

/// Implements [`Value`] and [`Element`] for numbers: type, how it is written and read, and how an array of it is.
macro_rules! numbers {
    ($($ty:ty, $write:ident, $read:ident, $array:tt;)*) => {$(
        impl Value for $ty {
            type Given<'a> = Self;

            fn write(given: Self, parcel: &mut Parcel) -> Result<(), StatusCode> {
                parcel.$write(given);
                Ok(())
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
                reader.$read()
            }

            fn given(&self) -> Self {
                *self
            }
        }

        impl Element for $ty {
            numbers! { @$array }
        }
    )*};
    (@packed) => {
        fn write_all(elements: &[Self], parcel: &mut Parcel) -> Result<(), StatusCode> {
            parcel.write_packed(elements);
            Ok(())
        }

        fn read_all(reader: &mut Reader<'_>) -> Result<Option<Vec<Self>>, StatusCode> {
            reader.read_packed_vec()
        }
    };
    (@words) => {};
}

numbers! {
    bool, write_bool, read_bool, words;
    i8, write_i8, read_i8, packed;
    u16, write_char, read_char, words;
    i32, write_i32, read_i32, packed;
    i64, write_i64, read_i64, packed;
    f32, write_f32, read_f32, packed;
    f64, write_f64, read_f64, packed;
}

/// A `byte` without a sign, for `byte[]`.
impl Value for u8 {
    type Given<'a> = Self;

    fn write(given: Self, parcel: &mut Parcel) -> Result<(), StatusCode> {
        i8::write(given.cast_signed(), parcel)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        i8::read(reader).map(i8::cast_unsigned)
    }

    fn given(&self) -> Self {
        *self
    }
}

impl Element for u8 {
    fn write_all(elements: &[Self], parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_byte_slice(elements);
        Ok(())
    }

    fn read_all(reader: &mut Reader<'_>) -> Result<Option<Vec<Self>>, StatusCode> {
        Ok(reader.read_nullable_byte_slice()?.map(<[u8]>::to_vec))
    }

    /// libgbinder writes an empty array so.
    fn in_place_of_null() -> Result<Vec<Self>, StatusCode> {
        Ok(Vec::new())
    }
}

impl Value for String {
    type Given<'a> = &'a str;

    fn write(given: &str, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_str(given);
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        reader.read_str()
    }

    fn given(&self) -> &str {
        self
    }
}

impl Element for String {}

impl Nullable for String {
    fn write_nullable(given: Option<&str>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_nullable_str(given);
        Ok(())
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, StatusCode> {
        reader.read_nullable_str()
    }
}

impl Value for Binder {
    type Given<'a> = &'a Self;

    fn write(given: &Self, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_binder(given);
        Ok(())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        reader.read_binder()
    }

    fn given(&self) -> &Self {
        self
    }
}

impl Element for Binder {}

impl Nullable for Binder {
    fn write_nullable(given: Option<&Self>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_nullable_binder(given);
        Ok(())
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, StatusCode> {
        reader.read_nullable_binder()
    }
}

/// No result.
impl Value for () {
    type Given<'a> = ();

    fn write((): (), _parcel: &mut Parcel) -> Result<(), StatusCode> {
        Ok(())
    }

    fn read(_reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        Ok(())
    }

    fn given(&self) {}
}
