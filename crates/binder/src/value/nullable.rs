//! Values that may be null, and values on the heap, by which a parcelable can hold its own kind.

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};

use super::{Element, Nullable, Value};

impl<T: Nullable> Value for Option<T> {
    type Given<'a> = Option<T::Given<'a>>;

    fn write(given: Self::Given<'_>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        T::write_nullable(given, parcel)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        T::read_nullable(reader)
    }

    fn given(&self) -> Self::Given<'_> {
        self.as_ref().map(T::given)
    }
}

impl<T: Nullable + Element> Element for Option<T> {}

impl<T: Value> Value for Box<T> {
    type Given<'a> = T::Given<'a>;

    fn write(given: Self::Given<'_>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        T::write(given, parcel)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        T::read(reader).map(Box::new)
    }

    fn given(&self) -> Self::Given<'_> {
        (**self).given()
    }
}

impl<T: Nullable> Nullable for Box<T> {
    fn write_nullable(given: Option<Self::Given<'_>>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        T::write_nullable(given, parcel)
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, StatusCode> {
        Ok(T::read_nullable(reader)?.map(Box::new))
    }
}
