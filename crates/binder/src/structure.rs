//! The macros that make AIDL's structures of Rust's: parcelables and unions.
//! Not here: single values ([`crate::Value`]), enums (`enumeration`).
//! Facts: AIDL's Rust and C++ back ends: a word that says "not null", then a size and the fields, or a tag and the member.

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};

use crate::value::Value;

/// A structure of AIDL, as [`parcelable!`](crate::parcelable!) and [`union!`](crate::union) make it.
pub trait Parcelable: Sized + Default + 'static {
    /// AIDL's name of it.
    const DESCRIPTOR: &'static str;

    /// Appends what follows the word that says "not null".
    ///
    /// # Errors
    /// See [`Value::write`].
    fn write_body(&self, parcel: &mut Parcel) -> Result<(), StatusCode>;

    /// Reads what follows that word.
    ///
    /// # Errors
    /// See [`Value::read`].
    fn read_body(reader: &mut Reader<'_>) -> Result<Self, StatusCode>;
}

/// Appends a structure, or null.
///
/// # Errors
/// See [`Value::write`].
pub fn write<P: Parcelable>(given: Option<&P>, parcel: &mut Parcel) -> Result<(), StatusCode> {
    parcel.write_bool(given.is_some());
    given.map_or(Ok(()), |given| given.write_body(parcel))
}

/// Reads a structure, or null.
///
/// # Errors
/// See [`Value::read`].
pub fn read<P: Parcelable>(reader: &mut Reader<'_>) -> Result<Option<P>, StatusCode> {
    if reader.read_bool()? { reader.read_within(P::read_body).map(Some) } else { Ok(None) }
}

/// Appends a field that AIDL does not allow to be null.
///
/// # Errors
/// `UNEXPECTED_NULL`, and see [`Value::write`].
pub fn write_required<T: Value>(field: Option<&T>, parcel: &mut Parcel) -> Result<(), StatusCode> {
    T::write(field.ok_or(StatusCode::UNEXPECTED_NULL)?.given(), parcel)
}

/// Makes a parcelable: a structure with public fields that is an argument, a result or a field of others.
///
/// A field that AIDL knows and this program's version does not is skipped, and one that the sender did not know yet has its default:
/// what follows `=`, or else that of its type. Fields of a type without a default (objects, descriptors) are `as required`: they are an
/// [`Option`] here. `None` is not sent and null is not received; a sender that does not know the field leaves it `None`.
///
/// ```
/// binder::parcelable! {
///     /// A place.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Place = "example.Place" {
///         /// Degrees to the north.
///         latitude: f64,
///         longitude: f64,
///         zoom: i32 = 5,
///         name: Option<String>,
///         owner: binder::Binder as required,
///     }
/// }
///
/// let here = Place { latitude: 52.5, ..Place::default() };
/// assert_eq!((here.zoom, here.owner), (5, None));
/// ```
#[macro_export]
macro_rules! parcelable {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident = $descriptor:literal {
            $($(#[$doc:meta])* $field:ident: $ty:ty $(as $kind:ident)? $(= $default:expr)?),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$doc])* pub $field: $crate::parcelable! { @held [$($kind)?] $ty },)*
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::parcelable! { @default [$($default)?] },)* }
            }
        }

        #[allow(unused_variables, unused_mut, reason = "a structure may have no fields")]
        impl $crate::Parcelable for $name {
            const DESCRIPTOR: &'static str = $descriptor;

            fn write_body(
                &self,
                parcel: &mut $crate::Parcel,
            ) -> ::core::result::Result<(), $crate::StatusCode> {
                parcel.write_sized(|parcel| {
                    $($crate::parcelable! { @write [$($kind)?] [$ty] self.$field, parcel })*
                    ::core::result::Result::Ok(())
                })
            }

            fn read_body(
                reader: &mut $crate::Reader<'_>,
            ) -> ::core::result::Result<Self, $crate::StatusCode> {
                reader.read_sized(|fields| {
                    let mut value = Self::default();
                    $(
                        // An older sender.
                        if fields.remaining() == 0 {
                            return ::core::result::Result::Ok(value);
                        }
                        value.$field = $crate::parcelable! { @read [$($kind)?] [$ty] fields };
                    )*
                    ::core::result::Result::Ok(value)
                })
            }
        }

        $crate::parcelable! { @value $name }
    };
    // A field: its type, its default, how it is written and read.
    (@held [] $ty:ty) => { $ty };
    (@held [required] $ty:ty) => { ::core::option::Option<$ty> };
    (@default []) => { ::core::default::Default::default() };
    (@default [$default:expr]) => { $default };
    (@write [] [$ty:ty] $field:expr, $parcel:ident) => {
        <$ty as $crate::Value>::write($crate::Value::given(&$field), $parcel)?;
    };
    (@write [required] [$ty:ty] $field:expr, $parcel:ident) => {
        $crate::structure::write_required::<$ty>($field.as_ref(), $parcel)?;
    };
    (@read [] [$ty:ty] $fields:ident) => {
        <$ty as $crate::Value>::read($fields)?
    };
    (@read [required] [$ty:ty] $fields:ident) => {
        ::core::option::Option::Some(<$ty as $crate::Value>::read($fields)?)
    };
    // What every structure is.
    (@value $name:ident) => {
        impl $crate::Value for $name {
            type Given<'a> = &'a Self;

            fn write(
                given: &Self,
                parcel: &mut $crate::Parcel,
            ) -> ::core::result::Result<(), $crate::StatusCode> {
                $crate::structure::write(::core::option::Option::Some(given), parcel)
            }

            fn read(reader: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::StatusCode> {
                $crate::structure::read(reader)?.ok_or($crate::StatusCode::UNEXPECTED_NULL)
            }

            fn given(&self) -> &Self {
                self
            }
        }

        impl $crate::value::Element for $name {}

        impl $crate::value::Nullable for $name {
            fn write_nullable(
                given: ::core::option::Option<&Self>,
                parcel: &mut $crate::Parcel,
            ) -> ::core::result::Result<(), $crate::StatusCode> {
                $crate::structure::write(given, parcel)
            }

            fn read_nullable(
                reader: &mut $crate::Reader<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, $crate::StatusCode> {
                $crate::structure::read(reader)
            }
        }

        impl $crate::value::Out for $name {
            fn prepare(
                _reader: &mut $crate::Reader<'_>,
            ) -> ::core::result::Result<Self, $crate::StatusCode> {
                ::core::result::Result::Ok(::core::default::Default::default())
            }
        }
    };
}

/// Makes a union: one of several values. The first member is the default, with what follows its `=` or else the default of its type.
///
/// ```
/// binder::union! {
///     #[derive(Clone, Debug, PartialEq)]
///     pub enum Shape = "example.Shape" {
///         /// Its radius.
///         Circle(f32) = 1.0,
///         Name(String),
///     }
/// }
///
/// assert_eq!(Shape::default(), Shape::Circle(1.0));
/// ```
#[macro_export]
macro_rules! union {
    (
        $(#[$meta:meta])* $vis:vis enum $name:ident = $descriptor:literal {
            $(#[$first_doc:meta])* $first:ident($first_ty:ty) $(= $default:expr)?
            $(, $(#[$doc:meta])* $member:ident($ty:ty))* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $(#[$first_doc])*
            $first($first_ty),
            $($(#[$doc])* $member($ty),)*
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self::$first($crate::union! { @default $($default)? })
            }
        }

        const _: () = {
            /// The members in the order of their numbers.
            enum __Tag {
                $first,
                $($member,)*
            }

            impl $crate::Parcelable for $name {
                const DESCRIPTOR: &'static str = $descriptor;

                fn write_body(
                    &self,
                    parcel: &mut $crate::Parcel,
                ) -> ::core::result::Result<(), $crate::StatusCode> {
                    match self {
                        Self::$first(value) => {
                            parcel.write_i32(__Tag::$first as i32);
                            <$first_ty as $crate::Value>::write($crate::Value::given(value), parcel)
                        }
                        $(Self::$member(value) => {
                            parcel.write_i32(__Tag::$member as i32);
                            <$ty as $crate::Value>::write($crate::Value::given(value), parcel)
                        })*
                    }
                }

                fn read_body(
                    reader: &mut $crate::Reader<'_>,
                ) -> ::core::result::Result<Self, $crate::StatusCode> {
                    let tag = reader.read_i32()?;
                    if tag == __Tag::$first as i32 {
                        return <$first_ty as $crate::Value>::read(reader).map(Self::$first);
                    }
                    $(
                        if tag == __Tag::$member as i32 {
                            return <$ty as $crate::Value>::read(reader).map(Self::$member);
                        }
                    )*
                    ::core::result::Result::Err($crate::StatusCode::BAD_VALUE)
                }
            }
        };

        $crate::parcelable! { @value $name }
    };
    (@default) => {
        ::core::default::Default::default()
    };
    (@default $default:expr) => {
        $default
    };
}

#[cfg(test)]
mod tests {
    use crate::value::Value;
    use crate::{Parcel, Reader, StatusCode};

    crate::parcelable! {
        /// The first version.
        #[derive(Clone, Debug, PartialEq)]
        struct Old = "example.Record" {
            number: i32,
        }
    }

    crate::parcelable! {
        /// The second one.
        #[derive(Clone, Debug, PartialEq)]
        struct New = "example.Record" {
            number: i32,
            name: String = "nobody".to_owned(),
            shape: Shape,
            next: Option<Box<New>>,
        }
    }

    crate::parcelable! {
        #[derive(Debug)]
        struct Empty = "example.Empty" {}
    }

    crate::parcelable! {
        #[derive(Debug)]
        struct Owned = "example.Owned" {
            owner: crate::Binder as required,
            file: crate::ParcelFileDescriptor as required,
        }
    }

    crate::union! {
        #[derive(Clone, Debug, PartialEq)]
        enum Shape = "example.Shape" {
            Circle(f32) = 1.0,
            Names(Vec<String>),
        }
    }

    fn parcel<T: Value>(value: &T) -> Parcel {
        let mut parcel = Parcel::new();
        T::write(value.given(), &mut parcel).expect("written");
        parcel
    }

    fn read<T: Value>(parcel: &Parcel) -> Result<T, StatusCode> {
        let mut reader = parcel.reader();
        let value = T::read(&mut reader);
        assert!(value.is_err() || reader.remaining() == 0, "all of it was read");
        value
    }

    #[test]
    fn the_bytes_are_those_of_aidl() {
        assert_eq!(parcel(&Old { number: 7 }).data(), [1, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(parcel(&Empty {}).data(), [1, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(parcel(&Shape::Names(Vec::new())).data(), [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parcel(&None::<Old>).data(), [0; 4]);
        assert_eq!(parcel(&vec![Old { number: 7 }]).data()[..8], [1, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn each_version_reads_the_other() {
        let sent = parcel(&Old { number: 7 });
        let new: New = read(&sent).expect("an older sender");
        assert_eq!(new, New { number: 7, ..New::default() });
        assert_eq!((new.name.as_str(), &new.shape), ("nobody", &Shape::Circle(1.0)));
        let next = Some(Box::new(New { name: "after".to_owned(), ..New::default() }));
        let sent =
            parcel(&New { number: 8, shape: Shape::Names(vec!["x".to_owned()]), next, ..New::default() });
        assert_eq!(read(&sent), Ok(Old { number: 8 }), "a newer sender");
        let again: New = read(&sent).expect("the same version");
        assert_eq!(again.next.expect("a next one").name, "after");
        assert_eq!(read::<Option<Old>>(&parcel(&None::<New>)), Ok(None));
        assert_eq!(read::<Old>(&parcel(&None::<New>)), Err(StatusCode::UNEXPECTED_NULL));
    }

    #[test]
    fn a_required_field_is_neither_sent_nor_received_as_null() {
        let mut sent = Parcel::new();
        assert_eq!(Owned::write(&Owned::default(), &mut sent), Err(StatusCode::UNEXPECTED_NULL));
        let mut sent = Parcel::new();
        sent.write_bool(true);
        sent.write_sized(|parcel| parcel.write_nullable_binder(None));
        assert_eq!(Owned::read(&mut sent.reader()).expect_err("null"), StatusCode::UNEXPECTED_NULL);
    }

    #[test]
    fn large_structures_may_stand_within_each_other_less_deep() {
        crate::parcelable! {
            struct Large = "example.Large" {
                data: [u8; 8192] = [0; 8192],
                next: Option<Box<Large>>,
            }
        }
        let nested = |levels: usize| {
            let mut value = Large::default();
            for _ in 0..levels {
                value = Large { next: Some(Box::new(value)), ..Large::default() };
            }
            read::<Large>(&parcel(&value)).map(drop)
        };
        assert_eq!(nested(3), Ok(()));
        assert_eq!(nested(20), Err(StatusCode::BAD_VALUE));
    }

    #[test]
    fn an_older_sender_leaves_a_required_field_out() {
        let mut sent = Parcel::new();
        sent.write_bool(true);
        sent.write_sized(|_| ());
        assert!(Owned::read(&mut sent.reader()).expect("an older version").owner.is_none());
    }

    #[test]
    fn a_member_that_is_not_known_is_refused() {
        let mut sent = Parcel::new();
        for word in [1, 2, 0] {
            sent.write_i32(word);
        }
        assert_eq!(Shape::read(&mut sent.reader()), Err(StatusCode::BAD_VALUE));
    }

    /// One word for each level would end the reader's stack long before the parcel ends.
    #[test]
    fn what_is_nested_deeper_than_anybody_needs_is_refused() {
        let nested = |levels: usize| {
            let mut value = New::default();
            for _ in 0..levels {
                value = New { next: Some(Box::new(value)), ..New::default() };
            }
            parcel(&value)
        };
        assert!(read::<New>(&nested(60)).is_ok());
        assert_eq!(read::<New>(&nested(100)), Err(StatusCode::BAD_VALUE));
        // The refusal counts for that reader only.
        let sent = nested(100);
        let mut reader: Reader<'_> = sent.reader();
        assert!(New::read(&mut reader).is_err());
        assert!(sent.reader().read_within(|reader| New::read(reader).or(Ok(New::default()))).is_ok());
    }
}
