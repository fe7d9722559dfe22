//! The macro that makes AIDL's enums.

/// Makes an enum of AIDL: a number with names. A newer peer may send one that has no name here, so it is no `enum` of Rust. Its
/// default is 0, as AIDL has it, whether that has a name or not.
///
/// ```
/// binder::enumeration! {
///     /// What a light shows.
///     pub struct Light: i8 = "example.Light" {
///         RED = 0,
///         GREEN = 5,
///     }
/// }
///
/// assert_eq!(Light::default(), Light::RED);
/// assert_eq!(format!("{:?} {:?}", Light::GREEN, Light(7)), "GREEN Light(7)");
/// ```
#[macro_export]
macro_rules! enumeration {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident: $backing:ident = $descriptor:literal {
            $(#[$first_doc:meta])* $first:ident = $first_value:expr
            $(, $(#[$doc:meta])* $member:ident = $value:expr)* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(pub $backing);

        #[allow(dead_code, unreachable_pub, reason = "not every program needs all of them")]
        impl $name {
            /// AIDL's name of it.
            pub const DESCRIPTOR: &'static str = $descriptor;
            $(#[$first_doc])*
            pub const $first: Self = Self($first_value);
            $($(#[$doc])* pub const $member: Self = Self($value);)*
            /// All that have a name.
            pub const ALL: &'static [Self] = &[Self::$first $(, Self::$member)*];
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self(0)
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                const NAMES: &[&str] = &[stringify!($first) $(, stringify!($member))*];
                match Self::ALL.iter().zip(NAMES).find(|(member, _)| *member == self) {
                    ::core::option::Option::Some((_, name)) => f.write_str(name),
                    ::core::option::Option::None => {
                        f.debug_tuple(stringify!($name)).field(&self.0).finish()
                    }
                }
            }
        }

        impl $crate::Value for $name {
            type Given<'a> = Self;

            fn write(
                given: Self,
                parcel: &mut $crate::Parcel,
            ) -> ::core::result::Result<(), $crate::StatusCode> {
                <$backing as $crate::Value>::write(given.0, parcel)
            }

            fn read(reader: &mut $crate::Reader<'_>) -> ::core::result::Result<Self, $crate::StatusCode> {
                <$backing as $crate::Value>::read(reader).map(Self)
            }

            fn given(&self) -> Self {
                *self
            }
        }

        impl $crate::value::Element for $name {
            fn write_all(
                elements: &[Self],
                parcel: &mut $crate::Parcel,
            ) -> ::core::result::Result<(), $crate::StatusCode> {
                parcel.write_packed_from(elements.iter().map(|element| element.0));
                ::core::result::Result::Ok(())
            }

            fn read_all(
                reader: &mut $crate::Reader<'_>,
            ) -> ::core::result::Result<
                ::core::option::Option<::std::vec::Vec<Self>>,
                $crate::StatusCode,
            > {
                let numbers = <$backing as $crate::value::Element>::read_all(reader)?;
                ::core::result::Result::Ok(numbers.map(|numbers| numbers.into_iter().map(Self).collect()))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Parcel, Value};

    crate::enumeration! {
        struct Small: i8 = "example.Small" { A = -1, B = 5 }
    }

    crate::enumeration! {
        struct Large: i64 = "example.Large" { A = 1 << 40 }
    }

    fn bytes<T: Value>(value: &T) -> Vec<u8> {
        let mut parcel = Parcel::new();
        T::write(value.given(), &mut parcel).expect("written");
        parcel.data().to_vec()
    }

    /// `Parcel.cpp`: an enum of one byte is a word on its own and a byte in an array.
    #[test]
    fn a_small_one_is_a_word_alone_and_a_byte_in_an_array() {
        assert_eq!(bytes(&Small::A), [0xff; 4]);
        assert_eq!(bytes(&vec![Small::A, Small::B]), [2, 0, 0, 0, 0xff, 5, 0, 0]);
        assert_eq!(bytes(&vec![Large::A]), [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_number_without_a_name_arrives() {
        let mut parcel = Parcel::new();
        Vec::<Small>::write(&[Small(9), Small::B], &mut parcel).expect("written");
        Small::write(Small(9), &mut parcel).expect("written");
        let mut reader = parcel.reader();
        assert_eq!(Vec::<Small>::read(&mut reader), Ok(vec![Small(9), Small::B]));
        assert_eq!(Small::read(&mut reader), Ok(Small(9)));
        assert_eq!((Small::ALL.len(), Small::DESCRIPTOR), (2, "example.Small"));
    }
}
